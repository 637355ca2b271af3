// SPDX-License-Identifier: Apache-2.0
//
// Stores that somebody else can exchange, since a folder above them is his.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "common/base/strings.h"
#include "tests/security/security_fixture.h"
#include "tests/support/test_util.h"

namespace kernix::security {
namespace {

constexpr char kAncestors[] = "8 folders above a store";
constexpr int kStoreCannotBeUsed = 3;

class StoreTest : public SecurityTest {
 protected:
  // "" when kernixd has refused a store there as it should, else what it did.
  std::string Serves(const std::string& folder) {
    const auto daemon = Start(Config(folder, "", /*with_nvcc=*/false));
    if (daemon->AwaitReady().ok()) return "kernixd serves it";
    const int code = daemon->AwaitExit();
    return code == kStoreCannotBeUsed ? "" : StrCat("kernixd ended with ", code, ": ", daemon->Log());
  }

  // A folder of the service's in `parent`.
  std::string StoreIn(const std::string& parent) const { return MakeFolder(parent + "/s", TheUsers().service, 0750); }

  // kernixctl of a user with a kernixd of his own.
  ProgramOutcome CompileWithStore(const std::string& folder) const {
    const std::string home = Path("home");
    const std::map<std::string, std::string> environment = {
        {"HOME", home}, {"XDG_RUNTIME_DIR", home + "/run"}, {"KERNIXD", kernixd_program()}};
    const std::string program = Stage(KERNIXCTL_PROGRAM);
    const uid_t user = TheUsers().member;
    ProgramOutcome compiled = RunAs(user, {program, "--store", folder, "compile", home + "/k.cpp"}, environment);
    RunAs(user, {program, "--store", folder, "shutdown"}, environment);
    return compiled;
  }

  void MakeHome() const {
    const uid_t user = TheUsers().member;
    MakeFolder("home", user, 0700);
    MakeFolder("home/run", user, 0700);
    WriteAs(user, "home/k.cpp", CppKernel("// @BE add arg ret").request.source(0).text(), 0600);
  }
};

TEST_F(StoreTest, TheDaemonRefusesAStoreThatOthersCanExchange) {
  const Users& users = TheUsers();
  const auto refuse = [this](const std::string& what, const std::string& store) {
    Judge(kAncestors, what, Serves(store));
  };
  MakeFolder("of-stranger", users.stranger, 0755);
  refuse("a stranger's folder", StoreIn("of-stranger"));
  MakeFolder("of-member", users.member, 0755);
  refuse("a member's folder", StoreIn("of-member"));
  MakeFolder("of-stranger/deeper", 0, 0755);
  refuse("a stranger's folder further up", StoreIn("of-stranger/deeper"));
  MakeFolder("open", 0, 0777);
  refuse("a folder that everybody may write to", StoreIn("open"));
  MakeFolder("group", 0, 0775);
  ASSERT_EQ(chown(Path("group").c_str(), 0, users.service), 0);
  refuse("a folder that the members may write to", StoreIn("group"));
  MakeFolder("stickily", users.stranger, 01777);
  refuse("a stranger's sticky folder", StoreIn("stickily"));
  ASSERT_EQ(symlink(Path("of-stranger").c_str(), Path("link").c_str()), 0);
  refuse("a link into a stranger's folder", Path("link/s"));
}

TEST_F(StoreTest, TheDaemonTakesAStoreThatIsSafe) {
  const auto take = [this](const std::string& what, const std::string& store) {
    const std::string outcome = Serves(store);
    JudgeTwin(kAncestors, what, outcome == "kernixd serves it" ? "" : "exit code 3");
  };
  take("root's folder", store());
  MakeFolder("sticky", 0, 01777);
  take("root's sticky folder", StoreIn("sticky"));
  MakeFolder("of-service", TheUsers().service, 0755);
  take("the service's folder", StoreIn("of-service"));
}

TEST_F(StoreTest, AUsersOwnKernixRefusesAStoreThatOthersCanExchange) {
  MakeHome();
  MakeFolder("of-stranger", TheUsers().stranger, 0755);
  const std::string unsafe = MakeFolder("of-stranger/cache", TheUsers().member, 0700);
  const ProgramOutcome refused = CompileWithStore(unsafe);
  Judge(kAncestors, "a client's own store in a stranger's folder",
        refused.exit_code == 0 ? "it loads from there: " + refused.output : "");
  const ProgramOutcome taken = CompileWithStore(Path("home/cache"));
  JudgeTwin(kAncestors, "a client's own store in his home", taken.exit_code == 0 ? "" : taken.output);
}

}  // namespace
}  // namespace kernix::security
