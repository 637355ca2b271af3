// SPDX-License-Identifier: Apache-2.0
#include "tests/support/engine/casd_process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/unix_socket.h"
#include "tests/support/await.h"

namespace kernix::testing {
namespace {

const char kFolder[] = KERNIX_ENGINES "/buildbox";

// What the sandbox has of this machine. The runner does not take links: /lib is one to /usr/lib.
std::vector<std::string> Sandbox(const std::string& shared, bool has_tools, const std::vector<std::string>& folders) {
  std::vector<std::string> arguments = {StrCat("--runner-arg=--bind-mount=", shared, ":/shared")};
  if (!has_tools) return arguments;
  for (const char* mount :
       {"/usr:/usr", "/usr/bin:/bin", "/usr/lib:/lib", "/usr/lib64:/lib64", "/etc/alternatives:/etc/alternatives"}) {
    arguments.push_back(StrCat("--runner-arg=--ro-bind-mount=", mount));
  }
  for (const std::string& folder : folders) {
    arguments.push_back(StrCat("--runner-arg=--ro-bind-mount=", folder, ":", folder));
  }
  return arguments;
}

}  // namespace

bool SandboxWorks() {
  static const bool works = [] {
    ProcessSpec spec;
    spec.argv = {"/usr/bin/bwrap", "--ro-bind", "/", "/", "--unshare-all", "/bin/true"};
    spec.working_directory = "/";
    const auto result = Env::Posix().RunProcess(spec, nullptr, nullptr);
    return result.ok() && result->exit_code == 0;
  }();
  return works;
}

// A killed one leaves what it has started, and perhaps a mounted folder. One that runs nothing takes seconds to end.
CasdProcess::~CasdProcess() { executes_ ? Stop() : Kill(); }

void CasdProcess::Kill() { process_->End(SIGKILL); }
void CasdProcess::Stop() { process_->End(SIGTERM); }

void CasdProcess::LoseEverything() {
  Stop();
  EXPECT_TRUE(Env::Posix().RemoveTree(folder_.File("cache")).ok());
  Start();
}

void CasdProcess::Start() {
  const std::string bin = kFolder;
  std::vector<std::string> argv = {bin + "/buildbox-casd",
                                   "--bind=unix:" + socket(),
                                   "--quota-high=1G",
                                   "--reserved=0",
                                   "--shutdown-deadline=2",
                                   "--log-level=warning",
                                   "--buildbox-run=" + bin + "/buildbox-run"};
  if (executes_) {
    const std::vector<std::string> sandbox = Sandbox(shared(), has_tools_, folders_);
    argv.insert(argv.end(), sandbox.begin(), sandbox.end());
    EXPECT_TRUE(Env::Posix().CreateDirectories(shared()).ok());
  }
  argv.push_back(folder_.File("cache"));
  process_ = std::make_unique<ChildProcess>(
      ChildCommand{.argv = argv,
                   .environment = {{"PATH", bin + ":/usr/local/bin:/usr/bin:/bin"}, {"HOME", folder_.path()}},
                   .log = folder_.File("casd.log")});
  Await("buildbox-casd (deploy/setup.sh installs it)", [this] {
    EXPECT_TRUE(process_->IsRunning()) << process_->Log();
    return ConnectTo(socket()).ok() || !process_->IsRunning();
  });
}

}  // namespace kernix::testing
