// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/token_file.h"

#include <gtest/gtest.h>

#include "tests/support/fault_env.h"
#include "tests/support/mem_env.h"
#include "tests/support/test_util.h"

namespace kernix::remote {
namespace {

using ::testing::HasSubstr;

class TokenFileTest : public ::testing::Test {
 protected:
  void Write(std::string_view text) { ASSERT_THAT(memory_.WriteFile("/token", text, 0600), IsOk()); }
  // Longer than a file system needs to show a change.
  void Settle() { memory_.AdvanceClock(std::chrono::seconds(10)); }

  MemEnv memory_;
  FaultEnv env_{memory_};
  TokenFile file_{env_, "/token", {"x-key", ""}};
};

TEST_F(TokenFileTest, IsTheTextWithoutSpaceAroundIt) {
  Write(" abc.def-123\n");
  EXPECT_EQ(file_.Value().value(), "abc.def-123");
}

TEST_F(TokenFileTest, IsReadAgainOnlyWhenItHasChanged) {
  Write("one");
  Settle();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(file_.Value().value(), "one");
  EXPECT_EQ(env_.Calls(Operation::kReadFile), 1);
  Write("two");
  EXPECT_EQ(file_.Value().value(), "two");
}

TEST_F(TokenFileTest, AChangeInTheSameMomentIsSeen) {
  Write("one");
  EXPECT_EQ(file_.Value().value(), "one");
  EXPECT_EQ(file_.Value().value(), "one");
  EXPECT_EQ(env_.Calls(Operation::kReadFile), 2) << "the file is too young to tell a change by its state";
}

TEST_F(TokenFileTest, TheLastTokenServesWhileTheFileIsAwayOrEmpty) {
  Write("one");
  EXPECT_EQ(file_.Value().value(), "one");
  ASSERT_THAT(memory_.RemoveFile("/token"), IsOk());
  EXPECT_EQ(file_.Value().value(), "one");
  Write("");
  EXPECT_EQ(file_.Value().value(), "one");
  Write("two");
  EXPECT_EQ(file_.Value().value(), "two");
}

TEST_F(TokenFileTest, AnotherTokenIsAnotherVersion) {
  EXPECT_EQ(file_.Version(), 0U);
  Write("one");
  const uint64_t first = file_.Version();
  EXPECT_GT(first, 0U);
  Write("one\n");
  EXPECT_EQ(file_.Version(), first);
  Write("two");
  EXPECT_GT(file_.Version(), first);
  EXPECT_EQ(file_.Value().value(), "two");
}

TEST_F(TokenFileTest, WithoutAnyTokenItSaysWhy) {
  EXPECT_THAT(file_.Value().status(), HasError(absl::StatusCode::kInvalidArgument, HasSubstr("/token")));
  for (const char* bad : {"", "\n", "two words", "caf\xc3\xa9", "line\nline"}) {
    Write(bad);
    EXPECT_THAT(file_.Value().status(), HasError(absl::StatusCode::kInvalidArgument, HasSubstr("/token"))) << bad;
  }
}

TEST_F(TokenFileTest, AHeaderHasANameAndPerhapsAScheme) {
  EXPECT_EQ(ParseTokenHeader("authorization: Bearer").value(), (TokenHeader{"authorization", "Bearer"}));
  EXPECT_EQ(ParseTokenHeader("Authorization:basic").value(), (TokenHeader{"authorization", "Basic"}));
  EXPECT_EQ(ParseTokenHeader(" X-BuildBuddy-API-Key ").value(), (TokenHeader{"x-buildbuddy-api-key", ""}));
  for (const char* text :
       {"", ":", ": Bearer", "two words", "x\ny", "grpc-timeout", "a-bin", "x: two words", "\xc3\xa4"}) {
    EXPECT_THAT(ParseTokenHeader(text).status(),
                HasError(absl::StatusCode::kInvalidArgument, HasSubstr("token_header")))
        << text;
  }
}

TEST_F(TokenFileTest, ASchemeStandsBeforeTheToken) {
  Write("abc\n");
  EXPECT_EQ(TokenFile(env_, "/token", {"authorization", "Bearer"}).Value().value(), "Bearer abc");
}

// RFC 7617, section 2.
TEST_F(TokenFileTest, BasicEncodesUserAndPassword) {
  TokenFile file(env_, "/token", {"authorization", "Basic"});
  Write("Aladdin\n");
  EXPECT_THAT(file.Value().status(), HasError(absl::StatusCode::kInvalidArgument, HasSubstr("USER:PASSWORD")));
  Write("Aladdin:open sesame\n");
  EXPECT_EQ(file.Value().value(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
}

}  // namespace
}  // namespace kernix::remote
