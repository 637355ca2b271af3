// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/resolved_function.h"

#include <string>
#include <vector>

#include "common/base/strings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernix::build {
namespace {

using ::testing::ElementsAre;

// "ARGUMENT x float32[2]", with a mark for what is optional or variadic.
std::string Shown(const v1::Parameter& parameter) {
  return StrCat(v1::Parameter::Role_Name(parameter.role()), " ", parameter.name(), " ", parameter.type(),
                parameter.has_rank() ? StrCat("[", parameter.rank(), "]") : "", parameter.optional() ? " ?" : "",
                parameter.variadic() ? " ..." : "");
}

TEST(ResolvedFunctionTest, SaysWhatEachTokenMeans) {
  const cache::Function function = {
      .name = "f",
      .tokens = {"arg:float32[2]", "arg?", "args...", "ret", "rets...", "attr.n:int32", "attr.taps:int64[]?",
                 "arg.token", "ret.token", "stream", "device_ordinal", "scratch:arg0.nbytes()"},
      .handler_symbol = "kernix_handler_f",
      .parameter_names = {"x", "mask", "all", "y"}};
  const v1::ResolvedFunction proto = ResolvedFunctionOf(function);
  EXPECT_EQ(proto.handler_symbol(), "kernix_handler_f");
  EXPECT_THAT(proto.tokens(), ::testing::ElementsAreArray(function.tokens));
  std::vector<std::string> shown;
  for (const v1::Parameter& parameter : proto.parameter()) shown.push_back(Shown(parameter));
  EXPECT_THAT(shown, ElementsAre("ARGUMENT x float32[2]", "ARGUMENT mask  ?", "ARGUMENT all  ...", "RESULT y ",
                                 "RESULT   ...", "ATTRIBUTE n int32", "ATTRIBUTE taps int64[] ?", "ARGUMENT_TOKEN  ",
                                 "RESULT_TOKEN  ", "PROVIDED  ", "PROVIDED  ", "PROVIDED  "));
}

TEST(ResolvedFunctionTest, ATokenOfAnotherReleaseHasNoRole) {
  const v1::ResolvedFunction proto = ResolvedFunctionOf({.name = "f", .tokens = {"later:what"}, .handler_symbol = ""});
  EXPECT_EQ(proto.parameter(0).role(), v1::Parameter::ROLE_UNSPECIFIED);
}

}  // namespace
}  // namespace kernix::build
