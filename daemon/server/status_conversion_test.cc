// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/status_conversion.h"

#include <gtest/gtest.h>

#include <string>

#include "daemon/base/error.h"
#include "daemon/base/test_util.h"
#include "daemon/base/utf8.h"

namespace kernix::server {
namespace {

// What a peer takes of headers by default, and what this status needs of it, percent-encoded at the worst.
constexpr size_t kHeaderLimit = 8192;
size_t HeaderBytes(const grpc::Status& status) {
  return 3 * status.error_message().size() + status.error_details().size();
}

TEST(StatusConversion, OkIsOk) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK).ok());
}

TEST(StatusConversion, KeepsCodeMessageAndKind) {
  const absl::Status status = MakeError(v1::ErrorDetail::TOOLCHAIN, "no nvcc");
  const grpc::Status converted = ToGrpcStatus(status);
  EXPECT_EQ(converted.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(converted.error_message(), "no nvcc");
  const absl::Status back = FromGrpcStatus(converted);
  EXPECT_EQ(back.message(), "no nvcc");
  EXPECT_EQ(KindOf(back), v1::ErrorDetail::TOOLCHAIN);
}

TEST(StatusConversion, EveryCodeSurvives) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "x");
    EXPECT_EQ(ToGrpcStatus(status).error_code(), code);
    EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)).code(), status.code());
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
  const v1::ErrorDetail back = GetErrorDetail(FromGrpcStatus(converted));
  EXPECT_EQ(back.kind(), v1::ErrorDetail::COMPILATION);
  EXPECT_TRUE(back.message().ends_with("..."));
  EXPECT_EQ(back.compiler_output(), "");
}

TEST(StatusConversion, TakesWhatGrpcItselfSays) {
  const absl::Status status = FromGrpcStatus(grpc::Status(grpc::StatusCode::UNAVAILABLE, "failed to connect"));
  EXPECT_THAT(status, HasError(absl::StatusCode::kUnavailable, "failed to connect"));
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::UNREACHABLE);
}

}  // namespace
}  // namespace kernix::server
