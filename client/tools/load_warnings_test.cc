// SPDX-License-Identifier: Apache-2.0
#include "client/tools/load_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/tools/environment.h"

namespace kernix {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;

GetEnv With(const std::string& switches) { return GetEnvOf({"KERNIX_WARNINGS=" + switches}); }

TEST(ShownWarningTest, SaysHowToSwitchItOff) {
  EXPECT_THAT(ShownWarning(GetEnvOf({}), warning::kCudaHome, "text."),
              Optional(std::string("text. [KERNIX_WARNINGS=no-cuda-home]")));
}

TEST(ShownWarningTest, IsNotShownIfItIsSwitchedOff) {
  for (const char* switches :
       {"no-cuda-home", "no-only-results,no-cuda-home", "no-only-results, no-cuda-home", "none"}) {
    EXPECT_EQ(ShownWarning(With(switches), warning::kCudaHome, "text"), std::nullopt) << switches;
  }
  for (const char* switches : {"", "no-only-results", "cuda-home"}) {
    EXPECT_NE(ShownWarning(With(switches), warning::kCudaHome, "text"), std::nullopt) << switches;
  }
}

TEST(WarningsAboutSwitchesTest, NameWhatSwitchesNothingOff) {
  EXPECT_THAT(WarningsAboutSwitches(With("none,no-cuda-home")), IsEmpty());
  EXPECT_THAT(WarningsAboutSwitches(With("no-cuda-hom")),
              ElementsAre(AllOf(HasSubstr("\"no-cuda-hom\""), HasSubstr("Did you mean no-cuda-home?"),
                                HasSubstr("no-writable-input"))));
}

}  // namespace
}  // namespace kernix
