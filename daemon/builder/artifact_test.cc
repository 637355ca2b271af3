// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/artifact.h"

#include <string>
#include <utility>
#include <vector>

#include "common/base/strings.h"
#include "daemon/language/spec/arg_spec.h"
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

TEST(ArtifactTest, SaysWhatEachTokenMeans) {
  const std::vector<std::string> tokens = {
      "arg:float32[2]",     "arg?",      "args...",   "ret",    "rets...",        "attr.n:int32",
      "attr.taps:int64[]?", "arg.token", "ret.token", "stream", "device_ordinal", "scratch:arg0.nbytes()"};
  const std::vector<std::string> names = {"x", "mask", "all", "y"};
  language::FunctionSpec function{.name = "f"};
  for (const std::string& token : tokens) {
    language::Parameter parameter = language::ParseToken("f", token)->parameter;
    if (function.parameters.size() < names.size()) parameter.declared_name = names[function.parameters.size()];
    function.parameters.push_back(std::move(parameter));
  }
  const v1::ResolvedFunction proto = ResolvedFunctions({function}).at(0);
  EXPECT_EQ(proto.handler_symbol(), "kernix_handler_f");
  EXPECT_THAT(proto.tokens(), ::testing::ElementsAreArray(tokens));
  std::vector<std::string> shown;
  for (const v1::Parameter& parameter : proto.parameter()) shown.push_back(Shown(parameter));
  EXPECT_THAT(shown, ElementsAre("ARGUMENT x float32[2]", "ARGUMENT mask  ?", "ARGUMENT all  ...", "RESULT y ",
                                 "RESULT   ...", "ATTRIBUTE n int32", "ATTRIBUTE taps int64[] ?", "ARGUMENT_TOKEN  ",
                                 "RESULT_TOKEN  ", "PROVIDED  ", "PROVIDED  ", "PROVIDED  "));
}

}  // namespace
}  // namespace kernix::build
