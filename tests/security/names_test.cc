// SPDX-License-Identifier: Apache-2.0
//
// What one user's names do to another's terminal, and a folder that somebody else made first.
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "common/base/strings.h"
#include "common/os/env.h"
#include "tests/security/security_fixture.h"
#include "tests/support/need_right.h"
#include "tests/support/test_util.h"

namespace kernix::security {
namespace {

constexpr char kNames[] = "9 control characters";
constexpr char kSquatted[] = "10 /tmp/kernix-<uid>";

// `script` in a private mount namespace. Its output begins with "MOUNTED" where this machine lets us have one.
ProgramOutcome InPrivateMounts(const std::string& script) {
  return RunAs(0, {"/usr/bin/unshare", "--mount", "/bin/sh", "-ec", script});
}

bool HasMounts(const ProgramOutcome& outcome) { return outcome.output.starts_with("MOUNTED\n"); }

class NamesTest : public SecurityTest {
 protected:
  // kernixctl of root, who believes a service of the account "kernix" alone: it has one in there.
  ProgramOutcome List(const std::string& more) {
    WriteAs(0, "passwd", StrCat("root:x:0:0::/:/bin/sh\nkernix:x:", TheUsers().service, ":0::/:/bin/sh\n"), 0644);
    return InPrivateMounts(StrCat("mount --bind ", Path("passwd"), " /etc/passwd\necho MOUNTED\nHOME=", Path("run"),
                                  " ", Stage(KERNIXCTL_PROGRAM), " --address ", socket(), " cache list ", more, "\n"));
  }
};

TEST_F(NamesTest, NoTerminalGetsThem) {
  Serve();
  const std::vector<std::pair<std::string, std::string>> characters = {
      {"ESC", "\x1b[2J"},
      {"BEL", "\a"},
      {"C1 CSI", "\u009b2J"},
      {"C1 OSC", "\u009d0;x\u009c"},
      {"DEL", "\x7f"},
      {"RLO", "\u202e"},
      {"RLI", "\u2067"},
      {"LRM", "\u200e"},
      {"ALM", "\u061c"},
      {"line end", "\n"},
      {"LINE SEPARATOR", "\u2028"},
  };
  for (const auto& [what, text] : characters) {
    Kernel kernel = CppKernel();
    kernel.request.set_name(StrCat("evil", text, "name"));
    Load(member(), kernel);
  }
  const ProgramOutcome listed = List("");
  KERNIX_NEED_RIGHT(HasMounts(listed), "no mount namespaces here: " + listed.output);
  ASSERT_EQ(listed.exit_code, 0) << listed.output;
  const std::string table = listed.output;
  const std::string json = List("--json").output;
  const auto shown = [](const std::string& where, const std::string& text) {
    return where.find(StrCat("evil", text, "name")) != std::string::npos;
  };
  for (const auto& [what, text] : characters) {
    Judge(kNames, what + " in a list", shown(table, text) ? "it is printed as it is" : "");
    Judge(kNames, what + " in a list as JSON", shown(json, text) ? "it is printed as it is" : "");
    Judge(kNames, what + " in the log", shown(daemon().Log(), text) ? "it is printed as it is" : "");
  }
  Kernel twin = CppKernel();
  twin.request.set_name("größe_核_κ");
  Twin(kNames, "letters of the world", twin);
  const std::string with_twin = List("").output;
  const bool found = with_twin.find("größe_核_κ") != std::string::npos;
  JudgeTwin(kNames, "letters of the world, listed", found ? "" : with_twin);
}

// A machine on which a member's place in /tmp is somebody else's: /tmp is an empty one of its own there.
class SquattedTest : public SecurityTest {
 protected:
  SquattedTest() {
    const uid_t user = TheUsers().member;
    MakeFolder("home", user, 0700);
    WriteAs(user, "home/k.cpp", CppKernel("// @BE add arg ret").request.source(0).text(), 0600);
    MakeFolder("bin", 0, 0755);
    WriteAs(0, "bin/kernixd", Env::Posix().ReadFile(KERNIXD_PROGRAM).value(), 0755);
    WriteAs(0, "bin/kernix-spawn", Env::Posix().ReadFile(KERNIX_SPAWN_PROGRAM).value(), 0755);
    WriteAs(0, "bin/kernixctl", Env::Posix().ReadFile(KERNIXCTL_PROGRAM).value(), 0755);
  }

  static std::string Joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) StrAppend(&text, word, " ");
    return text;
  }

  // kernixctl compile there, after `first`.
  ProgramOutcome CompileAfter(const std::string& first) const {
    const std::string ctl =
        Joined(CommandAs(TheUsers().member, {"/usr/bin/env", "HOME=/mnt/place/home", "KERNIXD=/mnt/place/bin/kernixd",
                                             "KERNIX_CACHE_DIR=/mnt/place/home/cache", "/mnt/place/bin/kernixctl"}));
    const std::string script =
        StrCat("mount -t tmpfs tmpfs /mnt\necho MOUNTED\nmkdir /mnt/place\nmount --bind ", root(), " /mnt/place\n",
               "mount -t tmpfs -o mode=1777 tmpfs /tmp\ncd /\n", first, "\n", "if ", ctl,
               "compile /mnt/place/home/k.cpp --force; then code=0; else code=1; fi\n", ctl,
               "shutdown >/dev/null 2>&1 || true\nexit $code\n");
    return InPrivateMounts(script);
  }
};

TEST_F(SquattedTest, SomebodyElseWhoWasThereFirstKeepsNobodyFromLoading) {
  const uid_t user = TheUsers().member;
  const uid_t stranger = TheUsers().stranger;
  const ProgramOutcome free = CompileAfter(":");
  KERNIX_NEED_RIGHT(HasMounts(free), "no mount namespaces here: " + free.output);
  JudgeTwin(kSquatted, "nobody was there", free.exit_code == 0 ? "" : free.output);
  const std::string place = StrCat("/tmp/kernix-", user);
  const auto squat = [&](const std::string& what, const std::string& commands) {
    const ProgramOutcome outcome = CompileAfter(commands);
    Judge(kSquatted, what, outcome.exit_code == 0 ? "" : "no kernix for this user: " + outcome.output);
    if (what != "a stranger's folder") return;
    const bool named = outcome.output.find(std::to_string(stranger)) != std::string::npos;
    JudgeTwin(kSquatted, what + ": the owner is named", named ? "" : outcome.output);
  };
  const std::string chown = StrCat("chown -h ", stranger, ":", stranger, " ", place);
  squat("a stranger's folder", StrCat("mkdir -m 0777 ", place, "; ", chown));
  squat("a stranger's file", StrCat("touch ", place, "; ", chown));
  squat("a stranger's link", StrCat("ln -s /nowhere ", place, "; ", chown));
}

}  // namespace
}  // namespace kernix::security
