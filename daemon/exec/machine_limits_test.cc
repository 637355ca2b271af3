// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/machine_limits.h"

#include <gtest/gtest.h>

#include "common/base/paths.h"
#include "tests/support/mem_env.h"

namespace kernix::exec {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

class MachineLimitsTest : public ::testing::Test {
 protected:
  MachineLimitsTest() {
    Write("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree:         1000000 kB\n");
    Write("/proc/self/status", "Name:\tkernixd\nCpus_allowed:\tff0f\nCpus_allowed_list:\t0-3,8-15\n");
  }

  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(env_.CreateDirectories(Dirname(path), 0755).ok());
    ASSERT_TRUE(env_.WriteFile(path, text, 0644).ok());
  }

  MemEnv env_;
};

TEST_F(MachineLimitsTest, WithoutCgroupsTheMachineCounts) {
  EXPECT_EQ(UsableMemory(env_), 16 * kGiB);
  EXPECT_EQ(UsableProcessors(env_), 12);
}

TEST_F(MachineLimitsTest, AFileMayBeAsLargeAsIsWantedWithinTheHardLimit) {
  EXPECT_EQ(FileSizeLimit(env_, 0), std::nullopt);
  EXPECT_EQ(FileSizeLimit(env_, 7'000), 7'000u);
  const std::string header = "Limit                     Soft Limit           Hard Limit           Units     \n";
  Write("/proc/self/limits",
        header + "Max file size             unlimited            unlimited            bytes     \n");
  EXPECT_EQ(FileSizeLimit(env_, 0), std::nullopt);
  EXPECT_EQ(FileSizeLimit(env_, 7'000), 7'000u);
  Write("/proc/self/limits",
        header + "Max file size             5000                 6000                 bytes     \n");
  EXPECT_EQ(FileSizeLimit(env_, 0), 5'000u);
  EXPECT_EQ(FileSizeLimit(env_, 5'500), 5'500u);
  EXPECT_EQ(FileSizeLimit(env_, 7'000), 6'000u);
}

TEST_F(MachineLimitsTest, TheHardLimitOfProcessorTime) {
  EXPECT_EQ(HardCpuLimit(env_), std::nullopt);
  Write("/proc/self/limits", "Max cpu time              unlimited            unlimited            seconds   \n");
  EXPECT_EQ(HardCpuLimit(env_), std::nullopt);
  Write("/proc/self/limits", "Max cpu time              5                    60                   seconds   \n");
  EXPECT_EQ(HardCpuLimit(env_), 60u);
}

TEST_F(MachineLimitsTest, Version2TheTightestOfAllParentsCounts) {
  Write("/proc/self/cgroup", "0::/user.slice/kernix.service\n");
  Write("/sys/fs/cgroup/user.slice/kernix.service/memory.max", "max\n");
  Write("/sys/fs/cgroup/user.slice/memory.max", "2147483648\n");
  Write("/sys/fs/cgroup/user.slice/kernix.service/cpu.max", "150000 100000\n");
  Write("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
  EXPECT_EQ(UsableMemory(env_), 2 * kGiB);
  EXPECT_EQ(UsableProcessors(env_), 2);
}

// The path belongs to the host: only the mount's root is visible.
TEST_F(MachineLimitsTest, Version2InAContainer) {
  Write("/proc/self/cgroup", "0::/docker/0123456789ab\n");
  Write("/sys/fs/cgroup/memory.max", "4294967296\n");
  EXPECT_EQ(UsableMemory(env_), 4 * kGiB);
}

TEST_F(MachineLimitsTest, Version1) {
  Write("/proc/self/cgroup", "9:memory:/docker/ab\n4:cpu,cpuacct:/docker/ab\n1:name=systemd:/docker/ab\n");
  Write("/sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes", "1073741824\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/cpu/docker/ab/cpu.cfs_quota_us", "300000\n");
  Write("/sys/fs/cgroup/cpu/docker/ab/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(UsableMemory(env_), kGiB);
  EXPECT_EQ(UsableProcessors(env_), 3);
}

TEST_F(MachineLimitsTest, NoLimitIsNone) {
  Write("/proc/self/cgroup", "9:memory:/\n4:cpu,cpuacct:/\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(UsableMemory(env_), 16 * kGiB);
  EXPECT_EQ(UsableProcessors(env_), 12);
}

TEST(MachineLimitsNothingTest, UnreadableMeansOneProcessorAndNoKnownMemory) {
  MemEnv env;
  EXPECT_EQ(UsableProcessors(env), 1);
  EXPECT_EQ(UsableMemory(env), 0u);
}

TEST(MachineLimitsRealTest, ThisMachineHasSomeOfBoth) {
  EXPECT_GE(UsableProcessors(Env::Posix()), 1);
  EXPECT_GT(UsableMemory(Env::Posix()), uint64_t{1} << 20);
}

}  // namespace
}  // namespace kernix::exec
