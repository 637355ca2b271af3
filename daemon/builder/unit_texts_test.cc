// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/unit_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/strings.h"
#include "daemon/exec/blob.h"
#include "tests/support/mem_env.h"

namespace kernix::build {
namespace {

using ::testing::HasSubstr;

// Why a unit gets the whole header if the preprocessor says that it has read `file`.
std::string WhyWhole(Env& env, const std::string& file) {
  toolchain::Toolchain toolchain;
  toolchain.host.system_include_directories = {"/usr/include"};
  toolchain.cuda.emplace().root = "/cuda";
  KnownRuntime known;
  known.passes = {0};
  Phases phases;
  phases.preprocess.emplace_back().action.outputs = {"text", "files"};
  const PlanOutputs outputs = {{"text", exec::MakeContent("")},
                               {"files", exec::MakeContent(StrCat("unit.o: ", file, "\n"))}};
  const language::RuntimeChoice choice = ChooseRuntime(env, known, phases, outputs, toolchain);
  return choice.full ? choice.why : "";
}

// A tool may say anything, and kernixd may read more than it.
TEST(UnitTextsTest, NoOtherFileIsReadBecauseAToolNamesIt) {
  MemEnv env;
  for (const char* folder : {"/usr/include", "/secret"}) ASSERT_TRUE(env.CreateDirectories(folder, 0755).ok());
  const std::string borrows = "#line 1 \"/cuda/x.h\"\n";  // what kernixd says of a text that it has read
  for (const char* file : {"/usr/include/x.h", "/secret/x.h"}) ASSERT_TRUE(env.WriteFile(file, borrows, 0644).ok());
  EXPECT_THAT(WhyWhole(env, "/usr/include/x.h"), HasSubstr("/cuda/x.h"));
  for (const char* file : {"/secret/x.h", "/secret/none.h", "/usr/include/../../secret/x.h", "secret/x.h"}) {
    EXPECT_THAT(WhyWhole(env, file), HasSubstr("is in no known place")) << file;
  }
}

}  // namespace
}  // namespace kernix::build
