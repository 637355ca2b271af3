// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/function_name.h"

#include "common/base/error.h"
#include "tests/support/test_util.h"

namespace kernix::language {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(FunctionNameTest, ReadsQualifiedNamesAndInstances) {
  const FunctionName plain = ParseFunctionName("f").value();
  EXPECT_EQ(plain.base, "f");
  EXPECT_EQ(plain.scope, "");
  EXPECT_FALSE(plain.is_template);
  const FunctionName qualified = ParseFunctionName("::a::b::f").value();
  EXPECT_EQ(qualified.scope, "a::b::");
  EXPECT_EQ(qualified.base, "f");
  const FunctionName instance = ParseFunctionName("a::f<float, 4>").value();
  EXPECT_EQ(instance.base, "f");
  EXPECT_TRUE(instance.is_template);
  EXPECT_THAT(instance.template_arguments, ElementsAre("float", "4"));
  EXPECT_THAT(ParseFunctionName("f<A<int, 3>, (1 < 2), sizeof(B<C>)>").value().template_arguments,
              ElementsAre("A<int, 3>", "(1 < 2)", "sizeof(B<C>)"));
  EXPECT_THAT(ParseFunctionName("f<>").value().template_arguments, IsEmpty());
  EXPECT_TRUE(ParseFunctionName("f<>").value().is_template);
}

TEST(FunctionNameTest, ExportsAnIdentifier) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"f", "f"},
      {"_f__1", "_f__1"},
      {"::f", "f"},
      {"a::b::f", "a_b_f"},
      {"f<float>", "f_float"},
      {"f<float, 4>", "f_float_4"},
      {"f<const float*, A<-1>>", "f_const_float_A_1"},
      {"f<>", "f"},
  };
  for (const auto& [text, exported] : cases) EXPECT_EQ(ParseFunctionName(text).value().Exported(), exported) << text;
}

TEST(FunctionNameTest, RefusesWhatIsNoName) {
  for (const char* text :
       {"",        " ",     "9f",      "f;",       "f g",      "f(",       "f()",        "f<",    "f<int",
        "f<int>>", "f>",    "f<int>g", "a::",      "::",       "f<\"x\">", "f<'x'>",     "f<{}>", "f<;>",
        "f\n",     "f<\n>", "f// x",   "class::f", "f::class", "f<#>",     "f<float> f", "a..f",  "f<int>::g"}) {
    EXPECT_THAT(ParseFunctionName(text), HasError(absl::StatusCode::kInvalidArgument, HasSubstr("the function name")))
        << text;
  }
}

TEST(FunctionNameTest, SaysHowToWriteAnExpression) {
  for (const char* text : {"f<1 << 2>", "f<'x'>", "f<,>", "f<int,>", "f<, int>", "f<int,, int>"}) {
    EXPECT_THAT(ParseFunctionName(text),
                HasError(absl::StatusCode::kInvalidArgument, HasSubstr("put an expression in parentheses")))
        << text;
  }
}

TEST(FunctionNameTest, EndsAtWhiteSpaceOutsideItsBrackets) {
  EXPECT_EQ(FunctionNameLength("f arg ret"), 1u);
  EXPECT_EQ(FunctionNameLength("f<int, 4> arg"), 9u);
  EXPECT_EQ(FunctionNameLength("f<(1 > 2)> arg"), 10u);
  EXPECT_EQ(FunctionNameLength("f"), 1u);
  EXPECT_EQ(FunctionNameLength("f<int arg"), 9u);
}

}  // namespace

}  // namespace kernix::language
