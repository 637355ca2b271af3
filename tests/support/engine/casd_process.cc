// SPDX-License-Identifier: Apache-2.0
#include "tests/support/engine/casd_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/base/strings.h"
#include "common/os/unique_fd.h"
#include "tests/support/await.h"

namespace kernix::testing {
namespace {

const char kFolder[] = KERNIX_ENGINES "/buildbox";

bool Accepts(const std::string& path) {
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

CasdProcess::CasdProcess(std::vector<std::string> arguments) : arguments_(std::move(arguments)) { Start(); }

CasdProcess::~CasdProcess() {
  // A killed one leaves what it has started, and perhaps a mounted folder. One that runs nothing takes seconds to end.
  process_->End(arguments_.empty() ? SIGKILL : SIGTERM);
}

void CasdProcess::Kill() { process_->End(SIGKILL); }

void CasdProcess::Start() {
  const std::string bin = kFolder;
  std::vector<std::string> argv = {bin + "/buildbox-casd",
                                   "--bind=unix:" + socket(),
                                   "--quota-high=1G",
                                   "--reserved=0",
                                   "--shutdown-deadline=2",
                                   "--log-level=warning",
                                   "--buildbox-run=" + bin + "/buildbox-run"};
  argv.insert(argv.end(), arguments_.begin(), arguments_.end());
  argv.push_back(folder_.File("cache"));
  process_ = std::make_unique<ChildProcess>(
      ChildCommand{.argv = argv,
                   .environment = {{"PATH", bin + ":/usr/local/bin:/usr/bin:/bin"}, {"HOME", folder_.path()}},
                   .log = folder_.File("casd.log")});
  Await("buildbox-casd (deploy/setup.sh installs it)", [this] {
    EXPECT_TRUE(process_->IsRunning()) << process_->Log();
    return Accepts(socket()) || !process_->IsRunning();
  });
}

}  // namespace kernix::testing
