// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "common/os/env.h"
#include "common/os/spawner.h"
#include "tests/support/need_right.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

namespace fs = std::filesystem;
using spawn::Rung;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ContentOf(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

fs::path FindTree() {
  for (const char* path : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    struct statfs info = {};
    if (statfs(path, &info) == 0 && info.f_type == CGROUP2_SUPER_MAGIC) return path;
  }
  return {};
}

// kernix-spawn has a cgroup for its jobs, as systemd would make one.
class CgroupTest : public testing::TestWithParam<Rung> {
 protected:
  void SetUp() override {
    const fs::path tree = FindTree();
    KERNIX_NEED_ROOT("needs root, to make a cgroup");
    KERNIX_NEED_RIGHT(!tree.empty(), "there are no cgroups of version 2");
    Write(tree / "cgroup.subtree_control", "+memory");
    Write(tree / "cgroup.subtree_control", "+pids");
    cgroup_ = tree / ("kernix-test-" + std::to_string(getpid()));
    KERNIX_NEED_RIGHT(mkdir(cgroup_.c_str(), 0755) == 0, "cannot make a cgroup: " + cgroup_.string());
    const std::string program = top_.path() + "/kernix-spawn";
    Write(program,
          "#!/bin/sh\necho $$ > " + cgroup_.string() + "/cgroup.procs\nexec " KERNIX_SPAWN_PROGRAM " --cgroup\n");
    fs::permissions(program, fs::perms::owner_all);
    spawn::Spawner::Get().SetProgram(program);
    const auto probe = Run("true");
    KERNIX_NEED_RIGHT(probe.ok(), "there is no such enclosure here: " + std::string(probe.status().message()));
  }

  void TearDown() override {
    spawn::Spawner::Get().SetProgram(KERNIX_SPAWN_PROGRAM);
    // The one with the cgroup ends because nobody is connected to it any more.
    for (int tries = 0; rmdir((cgroup_ / "spawn").c_str()) != 0 && errno == EBUSY && tries < 1000; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(cgroup_.empty() || rmdir(cgroup_.c_str()) == 0 || errno == ENOENT)
        << "something is left in " << cgroup_;
  }

  static ProcessSpec Shell(const std::string& script) {
    return {.argv = {"/bin/bash", "-c", script},
            .environment = {{"PATH", "/usr/bin:/bin"}},
            .enclosure = {.rung = GetParam(), .readable = {"/"}}};
  }

  static absl::StatusOr<ProcessResult> Run(const std::string& script) { return Run(Shell(script)); }
  static absl::StatusOr<ProcessResult> Run(const ProcessSpec& spec) {
    return Env::Posix().RunProcess(spec, nullptr, nullptr);
  }

  bool Has(const std::string& controller) const {
    return ContentOf(cgroup_ / "cgroup.controllers").find(controller) != std::string::npos;
  }

  std::vector<std::string> CgroupsOfJobs() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(cgroup_)) {
      if (entry.is_directory() && entry.path().filename() != "spawn") names.push_back(entry.path().filename());
    }
    return names;
  }

  const ScratchDirectory top_;
  fs::path cgroup_;
};

INSTANTIATE_TEST_SUITE_P(Rungs, CgroupTest, testing::Values(Rung::kNone, Rung::kLandlock, Rung::kWall));

TEST_P(CgroupTest, AJobHasOneThatGoesWithAllOfItsProcesses) {
  const auto result = Run("cat /proc/$PPID/cgroup /proc/self/cgroup; setsid sh -c 'sleep 1000 & sleep 1000' &");
  ASSERT_THAT(result, IsOk());
  if (GetParam() != Rung::kWall) {  // where /proc shows other namespaces' processes
    EXPECT_THAT(result->output, AllOf(HasSubstr(cgroup_.filename().string() + "/spawn\n"),
                                      HasSubstr(cgroup_.filename().string() + "/job-0\n")));
  }
  EXPECT_THAT(CgroupsOfJobs(), testing::IsEmpty());
}

TEST_P(CgroupTest, JobsAtTheSameTimeHaveOneEach) {
  std::thread other([] { EXPECT_THAT(Run("sleep 1"), IsOk()); });
  while (CgroupsOfJobs().empty()) std::this_thread::yield();
  EXPECT_THAT(Run("true"), IsOk());
  EXPECT_EQ(CgroupsOfJobs().size(), 1u);
  other.join();
}

// Each of them has less than a process may have.
TEST_P(CgroupTest, ProcessesThatTakeTooMuchMemoryTogetherEndTheJobAlone) {
  if (!Has("memory")) GTEST_SKIP() << "the controller of memory is not to be had in " << cgroup_.parent_path();
  std::thread other([] { EXPECT_THAT(Run("sleep 3; echo ended"), IsOk()); });
  ProcessSpec spec = Shell("for i in {1..8}; do head -c 100M /dev/zero | tail | sleep 1000 & done; wait; echo ended");
  spec.max_address_space_bytes = 400 << 20;
  spec.timeout = std::chrono::seconds(60);
  const auto result = Run(spec);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->excess, ProcessResult::Excess::kMemory) << result->output;
  EXPECT_EQ(result->signal, SIGKILL);
  other.join();
}

TEST_P(CgroupTest, MemoryThatTheServiceLacksIsNotTheJobsLimit) {
  if (!Has("memory")) GTEST_SKIP() << "the controller of memory is not to be had in " << cgroup_.parent_path();
  Write(cgroup_ / "memory.max", "150M");
  ProcessSpec spec = Shell("for i in {1..8}; do head -c 100M /dev/zero | tail | sleep 1000 & done; wait");
  spec.max_address_space_bytes = 400 << 20;
  spec.timeout = std::chrono::seconds(60);
  const auto result = Run(spec);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->excess, ProcessResult::Excess::kNone);
  EXPECT_EQ(result->signal, SIGKILL);
}

TEST_P(CgroupTest, ThreadsHaveALimit) {
  if (!Has("pids")) GTEST_SKIP() << "the controller of processes is not to be had in " << cgroup_.parent_path();
  ProcessSpec spec = Shell("for i in {1..1000}; do sleep 1000 & done");
  spec.max_processes = 2;
  std::thread run([&] {
    const auto result = Run(spec);
    ASSERT_THAT(result, IsOk());
    EXPECT_EQ(result->excess, ProcessResult::Excess::kProcesses);
  });
  while (CgroupsOfJobs().empty()) std::this_thread::yield();
  EXPECT_EQ(ContentOf(cgroup_ / "job-0" / "pids.max"), "1024\n");
  run.join();
}

}  // namespace
}  // namespace kernix
