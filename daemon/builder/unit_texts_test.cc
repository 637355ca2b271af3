// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/unit_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/mem_env.h"
#include "tests/support/test_util.h"

namespace kernix::build {
namespace {

// A tool may say anything, and kernixd may read more than it.
TEST(UnitTextsTest, NoOtherFileIsReadBecauseAToolNamesIt) {
  MemEnv env;
  for (const char* folder : {"/usr/include", "/secret"}) ASSERT_TRUE(env.CreateDirectories(folder, 0755).ok());
  for (const char* file : {"/usr/include/x.h", "/secret/x.h"}) ASSERT_TRUE(env.WriteFile(file, "text", 0644).ok());
  toolchain::Toolchain toolchain;
  toolchain.host.system_include_directories = {"/usr/include"};
  toolchain.cuda.emplace().root = "/cuda";
  EXPECT_THAT(ReadFileOf(env, {}, toolchain, "/usr/include/x.h"), IsOk());
  for (const char* file : {"/secret/x.h", "/secret/none.h", "/usr/include/../../secret/x.h", "secret/x.h"}) {
    EXPECT_EQ(ReadFileOf(env, {}, toolchain, file).status().code(), absl::StatusCode::kNotFound) << file;
  }
}

}  // namespace
}  // namespace kernix::build
