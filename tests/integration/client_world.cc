// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/client_world.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "client/tools/environment.h"
#include "common/os/folders.h"
#include "common/os/unique_fd.h"

namespace kernix {
namespace {

int ExitCodeOf(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) return -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) text.append(buffer, n);
  return text;
}

}  // namespace

ProgramOutcome RunProgram(const std::vector<std::string>& arguments) {
  std::vector<std::string> texts = arguments;
  std::vector<char*> argv;
  for (std::string& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);
  int pipe_fds[2];
  EXPECT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  UniqueFd read_end(pipe_fds[0]);
  UniqueFd write_end(pipe_fds[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  pid_t pid = 0;
  EXPECT_EQ(posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ), 0) << argv[0];
  posix_spawn_file_actions_destroy(&actions);
  write_end.reset();
  std::string output = ReadAll(read_end.get());
  return {ExitCodeOf(pid), std::move(output)};
}

int ForkAndRun(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    _exit(body());
  }
  return ExitCodeOf(pid);
}

bool Eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

ClientWorld::ClientWorld() {
  root_ = Env::Posix().CreateTempDirectory("/tmp/kernix-client-").value();
  for (const char* name : {"KERNIX_ADDRESS", "KERNIX_CACHE_DIR", "XDG_CACHE_HOME", "CXX", "CPATH", "CPLUS_INCLUDE_PATH",
                           "LIBRARY_PATH", "NVCC_CCBIN", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"}) {
    Unset(name);
  }
  SetVariable("HOME", root_);
  SetVariable("XDG_RUNTIME_DIR", root_);
  // Not the default store's variable: with it a service of the machine that runs the test is left alone.
  SetVariable("KERNIX_CACHE_DIR", Path("store"));
  SetVariable("KERNIXD", KERNIXD_PROGRAM);
  // A daemon that a failed test leaves behind goes by itself.
  SetVariable("KERNIX_IDLE_TIMEOUT", "60s");
}

ClientWorld::~ClientWorld() {
  // By its store, so that it cannot be a service of the machine that runs the test.
  ClientOptions own;
  own.store_directory = DefaultStoreDirectory(Env::Posix(), ProcessGetEnv, geteuid()).value();
  if (auto client = Client::Create(own); client.ok()) static_cast<void>((*client)->Shutdown());
  RestoreVariables();
  if (HasFailure()) {
    fprintf(stderr, "kept for a look: %s\n", root_.c_str());
  } else {
    static_cast<void>(Env::Posix().RemoveTree(root_));
  }
}

std::unique_ptr<DaemonClient> ClientWorld::MakeClient(ClientOptions options) {
  options.start_timeout = std::chrono::minutes(2);
  absl::StatusOr<std::unique_ptr<DaemonClient>> client = DaemonClient::Create({}, std::move(options));
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? *std::move(client) : nullptr;
}

RunFolder ClientWorld::RunFolderOfStore() const {
  return RunFolderForStore(Env::Posix(), ProcessGetEnv, geteuid(), Path("store")).value();
}

void ClientWorld::Unset(const std::string& name) {
  variables_.emplace(name, ProcessGetEnv(name));
  unsetenv(name.c_str());
}

void ClientWorld::RestoreVariables() {
  for (const auto& [name, value] : variables_) {
    if (value) {
      setenv(name.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
}

void ClientWorld::SetVariable(const std::string& name, const std::string& value) {
  variables_.emplace(name, ProcessGetEnv(name));
  ASSERT_EQ(setenv(name.c_str(), value.c_str(), 1), 0);
}

std::string ClientWorld::WriteScript(const std::string& name, const std::string& text) {
  const std::string path = Path(name);
  EXPECT_TRUE(Env::Posix().WriteFile(path, "#!/bin/sh\n" + text, 0755).ok());
  return path;
}

absl::StatusOr<std::shared_ptr<Module>> ClientWorld::LoadKernel(Client& client, int number,
                                                                const LoadOptions& options) {
  const std::string source =
      "#include \"brainevent/common.h\"\n// @BE fill ret\nvoid fill(BE::Tensor out) {\n"
      "  for (int64_t i = 0; i < out.numel(); ++i) static_cast<float*>(out.data_ptr())[i] = " +
      std::to_string(number) + ";\n}\n";
  // To this process' memo of loads each is another one, which asks a daemon.
  static std::atomic<int> loads = 0;
  LoadOptions fresh = options;
  if (!fresh.environment) fresh.environment = ProcessVariables();
  fresh.environment->push_back("KERNIX_TEST_LOAD=" + std::to_string(++loads));
  return LoadCppInline(client, "fill", {source}, fresh);
}

}  // namespace kernix
