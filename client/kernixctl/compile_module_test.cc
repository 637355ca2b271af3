// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/compile_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernix::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FunctionArgumentTest, NameAndTokens) {
  const Function function = ParseFunction("add=arg,args..., ret ,attr.n:float32[]");
  EXPECT_EQ(function.name, "add");
  EXPECT_THAT(function.tokens, ElementsAre("arg", "args...", "ret", "attr.n:float32[]"));
}

TEST(FunctionArgumentTest, ANameAloneHasNoTokens) {
  EXPECT_EQ(ParseFunction("add").name, "add");
  EXPECT_THAT(ParseFunction("add").tokens, IsEmpty());
  EXPECT_THAT(ParseFunction("add=").tokens, IsEmpty());
}

TEST(FunctionArgumentTest, CommasWithinBracketsAreNone) {
  EXPECT_THAT(ParseFunction("f=arg,scratch:max(4*arg0.numel(),lut[i,j]),ret").tokens,
              ElementsAre("arg", "scratch:max(4*arg0.numel(),lut[i,j])", "ret"));
  EXPECT_THAT(ParseFunction("f=scratch:n==1?a(1,2):b,ret").tokens, ElementsAre("scratch:n==1?a(1,2):b", "ret"));
}

TEST(FunctionArgumentTest, AnyTextIsTaken) {
  EXPECT_THAT(ParseFunction("f=scratch:max(1,2,ret").tokens, ElementsAre("scratch:max(1,2,ret"));
  EXPECT_THAT(ParseFunction("f=scratch:),arg,],ret").tokens, ElementsAre("scratch:)", "arg", "]", "ret"));
  EXPECT_THAT(ParseFunction("=,,").tokens, IsEmpty());
}

}  // namespace

}  // namespace kernix::ctl
