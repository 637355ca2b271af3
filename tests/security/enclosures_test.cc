// SPDX-License-Identifier: Apache-2.0
//
// What keeps compilers from the machine. The attacker is a registered compiler that is hostile, as if a text had taken
// over the real one: whenever it is run, it tries all that a program can try, and then does as the real one does.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/unique_fd.h"
#include "tests/security/security_fixture.h"
#include "tests/support/test_util.h"

namespace kernix::security {
namespace {

constexpr char kRow[] = "17 enclosures";

// What it tries each time. What works, it prints as a part of the secret.
constexpr char kMisdeeds[] = R"(#!/bin/bash
all=$*
exec 4>&2 2>/dev/null
worked() { echo "topsecretword: $1" >&4; }
cat {secret} >&4
cat {store}/*/* {store}/*/*/* | grep -a topsecretword >&4
for place in {canary} {store}/planted {own}/planted /tmp/planted /var/tmp/planted /dev/shm/planted ../planted; do
  echo >> "$place" && worked "wrote $place"
done
chmod 777 {store}; [[ $(stat -c %a {store}) == 777 ]] && worked "opened the store"
echo "touch {canary}" >> {own}/g++ && worked "changed the compiler"
(exec 3<>/dev/tcp/127.0.0.1/{port}) && worked "reached the network"
python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("{socket}")' && worked "reached kernixd"
[[ $(readlink /proc/{kernixd}/exe) ]] && worked "saw kernixd's process"
kill -STOP {kernixd} && worked "stopped kernixd"
renice 19 {kernixd} && worked "slowed kernixd down"
mount -t tmpfs none {own} && worked "mounted"
unshare --user true && worked "made a namespace"
cp /bin/sleep leftover && (setsid ./leftover 1000 &) && (./leftover 1000 &)
exec 2>&4
/usr/bin/g++ "$@" || exit
while [[ $# -gt 0 && $1 != -o ]]; do shift; done
output=$2
)";

// What it makes of its output.
struct Mode {
  std::string what;
  std::string script;
};

const std::vector<Mode>& Modes() {
  static const auto& modes = *new std::vector<Mode>{
      {"a link to the secret", "rm $output; ln -s {secret} $output"},
      {"a link to a device", "rm $output; ln -s /dev/zero $output"},
      {"a pipe", "rm $output; mkfifo $output"},
      {"a folder", "rm $output; mkdir $output"},
      {"an endless file", "cat /dev/zero > $output"},
      {"endless words", "tr '\\0' x < /dev/zero | fold | head -c 300000000 >&2"},
      {"nothing", "rm $output"},
      {"nonsense", "head -c 100000 /dev/urandom > $output"},
      {"a crash", "kill -SEGV $$"},
  };
  return modes;
}

// A flag that tells the compiler its mode, and is harmless.
std::string FlagOf(size_t mode) { return StrCat("-ftemplate-depth=90", mode); }

// Whether Landlock keeps signals from others here. Namespaces always do.
bool LandlockStopsSignals() {
  constexpr int kVersion = 1;  // LANDLOCK_CREATE_RULESET_VERSION
  return syscall(SYS_landlock_create_ruleset, nullptr, 0, kVersion) >= 6;
}

class EnclosuresTest : public SecurityTest {
 protected:
  v1::GetStatusResponse Status() {
    grpc::ClientContext context;
    v1::GetStatusResponse status;
    EXPECT_TRUE(member().stub().GetStatus(&context, {}, &status).ok());
    return status;
  }
};

TEST_F(EnclosuresTest, StatusNamesTheRung) {
  Serve();
  const v1::GetStatusResponse status = Status();
  EXPECT_EQ(status.sandbox(), Lacks().empty() ? "wall" : "landlock") << status.sandbox_lack();
  EXPECT_EQ(status.sandbox_lack().empty(), Lacks().empty());
}

TEST_F(EnclosuresTest, WhereThereIsNoneASharedKernixdDoesNotStart) {
  StageLesserMachine("namespaces,landlock");
  const auto refused = Start(Config(store(), "", /*with_nvcc=*/false));
  EXPECT_EQ(refused->AwaitExit(), 2);
  const std::string log = refused->Log();
  Judge(kRow, "a machine without enclosures",
        log.find("this machine has nothing to keep them in") == std::string::npos ? "it started: " + log : "");
  Serve("sandbox = \"none\"");
  EXPECT_EQ(Status().sandbox(), "none");
  Twin(kRow, "where the administrator has said so", CppKernel());
}

class HostileCompilerTest : public SecurityTest {
 protected:
  void SetUp() override {
    ListenOnNetwork();
    MakeFolder("evil", 0, 0755);
    MakeFolder("evil/bin", TheUsers().service, 0755);  // rights alone would let it change itself
    constexpr pid_t kNobody = 999'999'999;
    WriteCompiler(kNobody);
    Serve(StrCat("[[toolchain]]\nname = \"hostile\"\nhost_compiler = \"", compiler(), "\"\n"));
    if (Lacks().empty() || LandlockStopsSignals()) WriteCompiler(daemon().pid());
  }

  void ListenOnNetwork() {
    listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    ASSERT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(listen(listener_.get(), SOMAXCONN), 0);
    ASSERT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }

  std::string compiler() const { return Path("evil/bin/g++"); }

  void WriteCompiler(pid_t kernixd) {
    script_ = kMisdeeds;
    for (size_t i = 0; i < Modes().size(); ++i) {
      StrAppend(&script_, "[[ $all == *", FlagOf(i), "* && -f $output ]] && { ", Modes()[i].script, "; }\n");
    }
    script_ = Fill(absl::StrReplaceAll(script_ + "true\n", {{"{own}", Path("evil/bin")},
                                                            {"{store}", store()},
                                                            {"{socket}", socket()},
                                                            {"{port}", StrCat(port_)},
                                                            {"{kernixd}", StrCat(kernixd)}}));
    WriteAs(TheUsers().service, "evil/bin/g++", script_, 0755);
  }

  Kernel Compiled(const std::vector<std::string>& flags = {}) const {
    Kernel kernel = CppKernel("", flags);
    kernel.request.mutable_toolchain()->set_host_compiler(compiler());
    kernel.request.set_verbose(true);
    kernel.request.set_force_rebuild(true);
    return kernel;
  }

  // The digest of what another member gets, built anew.
  std::string OfTheOther() const {
    Kernel kernel = CppKernel("const char* const of_the_other = \"topsecretword\";");
    kernel.request.set_force_rebuild(true);
    const server::LoadOutcome outcome = Load(*Connect(TheUsers().other), kernel);
    EXPECT_TRUE(outcome.result) << Answer(outcome);
    return outcome.result ? outcome.result->artifact_digest() : "";
  }

  // "" or what it has left behind or changed.
  std::string Traces() const {
    std::string traces;
    const std::vector<std::string> numbers = Env::Posix().ListDirectory("/proc").value();
    for (const std::string& number : numbers) {
      const std::string name = Env::Posix().ReadFile(StrCat("/proc/", number, "/comm")).value_or("");
      if (name == "leftover\n") StrAppend(&traces, "process ", number, " is left; ");
    }
    for (const std::string& path : {store() + "/planted", Path("evil/bin/planted"), std::string("/tmp/planted"),
                                    std::string("/var/tmp/planted"), std::string("/dev/shm/planted")}) {
      if (Env::Posix().Stat(path).ok()) StrAppend(&traces, path, " was written; ");
    }
    if (Env::Posix().ReadFile(compiler()).value() != script_) traces += "it has changed itself; ";
    return traces;
  }

 private:
  UniqueFd listener_;
  int port_ = 0;
  std::string script_;
};

TEST_F(HostileCompilerTest, ItSpoilsNothingButItsOwnOutput) {
  const std::string before = OfTheOther();
  Attack(kRow, "a hostile compiler", Compiled(), Must::kBeHarmless);
  Judge(kRow, "its traces", Traces());
  for (size_t i = 0; i < Modes().size(); ++i) {
    Attack(kRow, StrCat("its output is ", Modes()[i].what), Compiled({FlagOf(i)}), Must::kBeHarmless);
    Judge(kRow, StrCat("its traces, when its output is ", Modes()[i].what), Traces());
  }
  Judge(kRow, "another member's kernel", OfTheOther() == before ? "" : "it is another one than before");
  Twin(kRow, "a kernel of the real compiler", CppKernel("#define NEXT"));
}

}  // namespace
}  // namespace kernix::security
