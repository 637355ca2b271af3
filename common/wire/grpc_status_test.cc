// SPDX-License-Identifier: Apache-2.0
#include "common/wire/grpc_status.h"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/error.h"
#include "common/base/utf8.h"
#include "common/wire/call_status.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

// The header size that a peer accepts by default, and the size of this status in headers, percent-encoded, at the
// worst.
constexpr size_t kHeaderLimit = 8192;
size_t HeaderBytes(const grpc::Status& status) {
  return 3 * status.error_message().size() + status.error_details().size();
}

TEST(StatusConversion, OkIsOk) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK, "x").ok());
}

TEST(StatusConversion, KeepsCodeMessageAndKind) {
  const absl::Status status = MakeError(v1::ErrorDetail::TOOLCHAIN, "no nvcc");
  const grpc::Status converted = ToGrpcStatus(status);
  EXPECT_EQ(converted.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(converted.error_message(), "no nvcc");
  const absl::Status back = FromGrpcStatus(converted, "x");
  EXPECT_EQ(back.message(), "no nvcc");
  EXPECT_EQ(KindOf(back), v1::ErrorDetail::TOOLCHAIN);
}

TEST(StatusConversion, EveryCodeSurvives) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "x");
    EXPECT_EQ(ToGrpcStatus(status).error_code(), code);
    EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status), "x").code(), status.code());
  }
}

TEST(StatusConversion, LongErrorsFitIntoHeaders) {
  v1::ErrorDetail detail;
  detail.set_kind(v1::ErrorDetail::COMPILATION);
  for (int i = 0; i < 5000; ++i) *detail.mutable_message() += "\u20ac";  // three bytes each: a cut may fall inside
  detail.set_compiler_output(std::string(1 << 20, 'x'));
  detail.set_command(std::string(1 << 16, 'y'));
  const grpc::Status converted = ToGrpcStatus(MakeError(detail));
  EXPECT_LT(HeaderBytes(converted), kHeaderLimit);
  EXPECT_TRUE(IsValidUtf8(converted.error_message()));
  const v1::ErrorDetail back = GetErrorDetail(FromGrpcStatus(converted, "x"));
  EXPECT_EQ(back.kind(), v1::ErrorDetail::COMPILATION);
  EXPECT_TRUE(back.message().ends_with("..."));
  EXPECT_EQ(back.compiler_output(), "");
}

TEST(StatusConversion, TakesWhatGrpcItselfSays) {
  const absl::Status status =
      FromGrpcStatus(grpc::Status(grpc::StatusCode::UNAVAILABLE, "failed to connect"), "kernixd");
  EXPECT_THAT(status, HasError(absl::StatusCode::kUnavailable, "kernixd: failed to connect"));
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::UNREACHABLE);
}

grpc::Status WithDetail(grpc::StatusCode code, const std::string& message, const v1::ErrorDetail& detail) {
  google::protobuf::Any any;
  any.PackFrom(detail);
  google::protobuf::UnknownFieldSet rpc_status;
  rpc_status.AddVarint(1, code);
  *rpc_status.AddLengthDelimited(2) = message;
  *rpc_status.AddLengthDelimited(3) = any.SerializeAsString();
  std::string details;
  rpc_status.SerializeToString(&details);
  return grpc::Status(code, message, details);
}

TEST(FromGrpcStatusTest, TheDaemonsDetailBecomesThePayload) {
  v1::ErrorDetail detail;
  detail.set_kind(v1::ErrorDetail::RESOURCE);
  detail.set_message("the disk is full");
  detail.set_code(static_cast<int>(absl::StatusCode::kResourceExhausted));
  const absl::Status status = FromGrpcStatus(WithDetail(grpc::RESOURCE_EXHAUSTED, "the disk is full", detail), "peer");
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(std::string(status.message()), "the disk is full");
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE);
  EXPECT_FALSE(DaemonWasLost(status));
}

TEST(FromGrpcStatusTest, WithoutADetailThePeerIsNamed) {
  const absl::Status status = FromGrpcStatus(grpc::Status(grpc::NOT_FOUND, "no such blob"), "kernixd at /x");
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(std::string(status.message()), "kernixd at /x: no such blob");
}

TEST(FromGrpcStatusTest, WhoHasAllThreadsComesBack) {
  const auto of = [](const char* message) {
    return FromGrpcStatus(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, message), "kernixd");
  };
  EXPECT_GT(RetryAfter(of("Server Threadpool Exhausted")).count(), 0);
  EXPECT_EQ(RetryAfter(of("Received message larger than max")).count(), 0);
}

TEST(FromGrpcStatusTest, DetailsThatAreNoneOfOursAreNotBelieved) {
  const grpc::Status status(grpc::INTERNAL, "message", "\xff\xff\xff");
  EXPECT_EQ(std::string(FromGrpcStatus(status, "peer").message()), "peer: message");
}

TEST(FromGrpcStatusTest, ABrokenConnectionIsALostDaemonAndAnAnswerIsNot) {
  EXPECT_TRUE(DaemonWasLost(FromGrpcStatus(grpc::Status(grpc::UNAVAILABLE, "Socket closed"), "peer")));
  EXPECT_TRUE(DaemonWasLost(FromGrpcStatus(grpc::Status(grpc::UNKNOWN, "Stream removed"), "peer")));
  EXPECT_FALSE(DaemonWasLost(FromGrpcStatus(grpc::Status(grpc::DEADLINE_EXCEEDED, ""), "peer")));
  v1::ErrorDetail detail;
  detail.set_kind(v1::ErrorDetail::INTERNAL);
  EXPECT_FALSE(DaemonWasLost(FromGrpcStatus(WithDetail(grpc::INTERNAL, "a bug", detail), "peer")));
}

}  // namespace
}  // namespace kernix
