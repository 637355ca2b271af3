// SPDX-License-Identifier: Apache-2.0
//
// For tests: a real kernixd for the test, and functions to query it.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/digest.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "daemon/transport/local_user.h"
#include "tests/support/kernixd_process.h"
#include "tests/support/test_client.h"
#include "tests/support/test_util.h"

namespace kernix::server {

class KernixdTest : public testing::Test {
 protected:
  std::unique_ptr<KernixdProcess> Launch(KernixdCommand command) {
    if (command.program.empty()) command.program = KERNIXD_PROGRAM;
    return KernixdProcess::Start(place_, command).value();
  }

  std::unique_ptr<KernixdProcess> LaunchWith(std::vector<std::string> arguments) {
    return Launch(KernixdCommand{.arguments = std::move(arguments)});
  }

  std::unique_ptr<KernixdProcess> Serve(std::vector<std::string> arguments = {}) {
    auto daemon = LaunchWith(std::move(arguments));
    EXPECT_THAT(daemon->AwaitReady(), IsOk());
    return daemon;
  }

  std::unique_ptr<TestClient> Connect() { return std::make_unique<TestClient>(place_.socket()); }

  KernixdPlace place_;
};

// A daemon that serves several users, with this machine's g++.
class SharedKernixdTest : public KernixdTest {
 protected:
  std::unique_ptr<KernixdProcess> ServeShared(std::vector<std::string> more = {}) {
    const std::string config = place_.root() + "/kernixd.toml";
    EXPECT_THAT(
        Env::Posix().WriteFile(
            config,
            "shared = true\nunknown_users = true\n[[toolchain]]\nname = \"system\"\nhost_compiler = \"/usr/bin/g++\"\n",
            0644),
        IsOk());
    more.insert(more.end(), {"--config", config});
    return Serve(std::move(more));
  }

  // Lets every user connect, whatever their groups.
  void OpenToAll() {
    EXPECT_EQ(chmod(place_.root().c_str(), 0755), 0);
    EXPECT_EQ(chmod(place_.socket().c_str(), 0666), 0);
  }

  // A client that connects as `user`. Requires root.
  std::unique_ptr<TestClient> ConnectAs(uid_t user) {
    // The raw system call changes only this thread, and the daemon sees the user that called connect().
    constexpr uid_t kSame = static_cast<uid_t>(-1);
    EXPECT_EQ(syscall(SYS_setresuid, kSame, user, kSame), 0);
    absl::StatusOr<UniqueFd> connection = ConnectTo(place_.socket());
    EXPECT_EQ(syscall(SYS_setresuid, kSame, 0, kSame), 0);
    EXPECT_THAT(connection, IsOk());
    return std::make_unique<TestClient>(*std::move(connection));
  }
};

// A request that cannot continue before it receives `header`, so a test decides how long the load runs.
inline v1::LoadRequest WithHeader(const std::string& header, int addend = 1) {
  v1::LoadRequest request = AddKernel(addend);
  *request.mutable_source(0)->mutable_text() = StrCat("#include \"mine.h\"\n", request.source(0).text());
  request.mutable_options()->set_include_root_count(1);
  v1::Header& entry = *request.add_header();
  entry.set_path("mine.h");
  entry.set_digest(DigestOf(header).Raw());
  entry.set_size(header.size());
  return request;
}

constexpr uid_t kNobody = 65534;

// Runs `body` in a child process as the user nobody, and returns its result. `body` may make only system calls, because
// this process has threads.
template <typename Body>
bool AsNobody(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(setgid(kNobody) == 0 && setuid(kNobody) == 0 && body() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace kernix::server
