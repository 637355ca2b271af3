// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/connection.h"

#include <gtest/gtest.h>

#include <set>

#include "common/base/error.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/support/fault_env.h"
#include "tests/support/mem_env.h"
#include "tests/support/test_util.h"

namespace kernix::remote {
namespace {

using ::testing::HasSubstr;

TEST(EngineAddressTest, TellsPlainFromTlsAndThisHostFromOthers) {
  const auto plain = ParseEngineAddress("grpc://engine.lab:8980");
  ASSERT_THAT(plain, IsOk());
  EXPECT_EQ(plain->target, "dns:///engine.lab:8980");
  EXPECT_FALSE(plain->tls);
  EXPECT_FALSE(plain->on_this_host);
  const auto tls = ParseEngineAddress("grpcs://[2001:db8::1]:443");
  ASSERT_THAT(tls, IsOk());
  EXPECT_EQ(tls->target, "dns:///[2001:db8::1]:443");
  EXPECT_TRUE(tls->tls);
  const auto socket = ParseEngineAddress("unix:///run/engine.sock");
  ASSERT_THAT(socket, IsOk());
  EXPECT_EQ(socket->target, "unix:///run/engine.sock");
  EXPECT_TRUE(socket->on_this_host);
  for (const char* here : {"grpc://localhost:1", "grpc://127.0.0.1:65535", "grpc://[::1]:80"}) {
    EXPECT_TRUE(ParseEngineAddress(here).value().on_this_host) << here;
  }
}

TEST(EngineAddressTest, RefusesWhatIsNoAddressAndSaysHowToWriteOne) {
  for (const char* bad :
       {"", "engine:8980", "http://engine:80", "grpc://", "grpc://engine", "grpc://:80", "grpc://engine:0",
        "grpc://engine:65536", "grpc://engine:port", "grpc://2001:db8::1:80", "grpc://engine:80/instance",
        "grpc://user@engine:80", "grpc://a:1,b:2", "unix://", "unix:///", "unix://relative", "unix:/path"}) {
    const auto address = ParseEngineAddress(bad);
    EXPECT_THAT(address.status(), HasError(absl::StatusCode::kInvalidArgument, HasSubstr("grpc://HOST:PORT"))) << bad;
  }
}

grpc::Status WithRetryInfo(int64_t seconds, int nanos) {
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(seconds);
  info.mutable_retry_delay()->set_nanos(nanos);
  google::rpc::Status status;
  status.add_details()->PackFrom(google::rpc::Status());
  status.add_details()->PackFrom(info);
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, "later", status.SerializeAsString());
}

TEST(RetryTest, OnlyWhatMayPassIsTriedAgain) {
  using Code = grpc::StatusCode;
  for (const Code code : {Code::UNAVAILABLE, Code::RESOURCE_EXHAUSTED, Code::ABORTED, Code::DEADLINE_EXCEEDED}) {
    EXPECT_TRUE(MayWorkLater(grpc::Status(code, ""))) << code;
  }
  for (const Code code : {Code::NOT_FOUND, Code::INVALID_ARGUMENT, Code::UNAUTHENTICATED, Code::PERMISSION_DENIED,
                          Code::UNIMPLEMENTED, Code::FAILED_PRECONDITION, Code::INTERNAL, Code::DATA_LOSS}) {
    EXPECT_FALSE(MayWorkLater(grpc::Status(code, ""))) << code;
  }
  EXPECT_TRUE(MayWorkLater(grpc::Status(Code::INTERNAL, "Received RST_STREAM with error code 2")));
}

TEST(RetryTest, TheEngineMaySayHowLongToWait) {
  EXPECT_EQ(AskedPause(WithRetryInfo(2, 500'000'000)), Duration(2500));
  EXPECT_EQ(AskedPause(WithRetryInfo(-1, 0)), std::nullopt);
  EXPECT_EQ(AskedPause(WithRetryInfo(INT64_MAX, 0)), std::chrono::hours(24));
  EXPECT_EQ(AskedPause(grpc::Status(grpc::StatusCode::UNAVAILABLE, "later")), std::nullopt);
  EXPECT_EQ(AskedPause(grpc::Status(grpc::StatusCode::UNAVAILABLE, "later", "no status")), std::nullopt);
}

TEST(RetryTest, PausesGrowAndDiffer) {
  std::set<Duration> seen;
  for (int i = 0; i < 100; ++i) {
    const Duration first = PauseBeforeRetry(1);
    const Duration third = PauseBeforeRetry(3);
    EXPECT_LE(first, Duration(50));
    EXPECT_GE(third, Duration(400));
    EXPECT_LE(third, Duration(800));
    seen.insert(third);
  }
  EXPECT_GT(seen.size(), 10U);
}

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
