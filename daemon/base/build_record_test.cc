// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/build_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/base/mem_env.h"
#include "daemon/base/strings.h"
#include "daemon/base/version.h"

namespace kernix {
namespace {

TEST(BuildRecordTest, LiesBesideTheSocket) {
  EXPECT_EQ(BuildRecordPath("/run/kernix/kernixd.sock"), "/run/kernix/kernixd.build");
  EXPECT_EQ(BuildRecordPath("/tmp/s"), "/tmp/s.build");
}

TEST(BuildRecordTest, IsOfOneProcess) {
  MemEnv env;
  ASSERT_TRUE(env.CreateDirectories("/run", 0755).ok());
  EXPECT_FALSE(IsOfThisBuild(env, "/run/k.sock", 7));
  ASSERT_TRUE(WriteBuildRecord(env, "/run/k.sock", 7).ok());
  EXPECT_TRUE(IsOfThisBuild(env, "/run/k.sock", 7));
  EXPECT_FALSE(IsOfThisBuild(env, "/run/k.sock", 8));
}

TEST(BuildRecordTest, OfAnotherBuildOrHalfWrittenSaysNo) {
  MemEnv env;
  ASSERT_TRUE(env.CreateDirectories("/run", 0755).ok());
  for (const std::string& record : {std::string("7 some-other-build\n"), StrCat("7 ", BuildId()), std::string("7")}) {
    ASSERT_TRUE(env.WriteFile("/run/k.build", record, 0644).ok());
    EXPECT_FALSE(IsOfThisBuild(env, "/run/k.sock", 7)) << record;
  }
}

}  // namespace
}  // namespace kernix
