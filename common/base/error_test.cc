// SPDX-License-Identifier: Apache-2.0
#include "common/base/error.h"

#include <gtest/gtest.h>

#include "common/base/utf8.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

using v1::ErrorDetail;

TEST(ErrorTest, CarriesItsKindAndTheCodeThatFits) {
  const absl::Status status = MakeError(ErrorDetail::TOOLCHAIN, "no nvcc: set CUDA_HOME");
  EXPECT_THAT(status, HasError(absl::StatusCode::kFailedPrecondition, "no nvcc: set CUDA_HOME"));
  EXPECT_EQ(KindOf(status), ErrorDetail::TOOLCHAIN);
  EXPECT_EQ(GetErrorDetail(status).message(), "no nvcc: set CUDA_HOME");
  EXPECT_EQ(GetErrorDetail(status).code(), static_cast<int>(absl::StatusCode::kFailedPrecondition));
}

TEST(ErrorTest, EveryKindMakesAnErrorOfThatKind) {
  for (int kind = ErrorDetail::Kind_MIN; kind <= ErrorDetail::Kind_MAX; ++kind) {
    const absl::Status status = MakeError(static_cast<ErrorKind>(kind), "m");
    EXPECT_FALSE(status.ok()) << kind;
    EXPECT_EQ(KindOf(status), kind);
  }
}

TEST(ErrorTest, KeepsTheWholeDetail) {
  ErrorDetail detail;
  detail.set_kind(ErrorDetail::COMPILATION);
  detail.set_message("k.cu:3: error");
  detail.set_compiler_output("caret");
  detail.set_command("nvcc k.cu");
  detail.set_exit_code(2);
  const ErrorDetail got = GetErrorDetail(MakeError(detail));
  EXPECT_EQ(got.compiler_output(), "caret");
  EXPECT_EQ(got.command(), "nvcc k.cu");
  EXPECT_EQ(got.exit_code(), 2);
}

TEST(ErrorTest, ACodeThatIsGivenStays) {
  ErrorDetail detail;
  detail.set_kind(ErrorDetail::RESOURCE);
  detail.set_code(static_cast<int>(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(MakeError(detail).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(ErrorTest, PlainStatusesGetAKind) {
  EXPECT_EQ(KindOf(absl::InvalidArgumentError("x")), ErrorDetail::INVALID_REQUEST);
  EXPECT_EQ(KindOf(absl::ResourceExhaustedError("x")), ErrorDetail::RESOURCE);
  EXPECT_EQ(KindOf(absl::PermissionDeniedError("x")), ErrorDetail::RESOURCE);
  EXPECT_EQ(KindOf(absl::UnavailableError("x")), ErrorDetail::UNREACHABLE);
  EXPECT_EQ(KindOf(absl::CancelledError("x")), ErrorDetail::CANCELLED);
  EXPECT_EQ(KindOf(absl::NotFoundError("x")), ErrorDetail::INTERNAL);
  EXPECT_EQ(GetErrorDetail(absl::NotFoundError("gone")).message(), "gone");
}

TEST(ErrorTest, AnnotateChangesTheMessageAlone) {
  const absl::Status status = Annotate(MakeError(ErrorDetail::REGISTRATION, "taken"), "module m");
  EXPECT_THAT(status, HasError(absl::StatusCode::kAlreadyExists, "module m: taken"));
  EXPECT_EQ(KindOf(status), ErrorDetail::REGISTRATION);
  EXPECT_EQ(GetErrorDetail(status).message(), "module m: taken");
  EXPECT_THAT(Annotate(absl::OkStatus(), "x"), IsOk());
}

TEST(ErrorTest, BytesThatAreNoTextStillTravel) {
  ErrorDetail detail;
  detail.set_kind(ErrorDetail::COMPILATION);
  detail.set_message("bad \xFF");
  detail.set_compiler_output("k.cu:1: \xE2\x80");
  const ErrorDetail got = GetErrorDetail(MakeError(detail));
  EXPECT_EQ(got.kind(), ErrorDetail::COMPILATION);  // INTERNAL if the payload does not parse
  EXPECT_TRUE(IsValidUtf8(got.message()));
  EXPECT_TRUE(IsValidUtf8(got.compiler_output()));
}

TEST(ErrorTest, AMessageDoesNotActOnTheTerminalThatShowsIt) {
  const absl::Status status = MakeError(v1::ErrorDetail::INVALID_REQUEST, "the name \"a\x1b[2J\u202E\"\nis\tbad");
  EXPECT_EQ(GetErrorDetail(status).message(), "the name \"a\\x1b[2J\\u202e\"\nis\tbad");
}

TEST(ErrorTest, NoDaemonMakesAClientWaitForAges) {
  const auto after = [](int32_t asked) {
    v1::ErrorDetail detail;
    detail.set_kind(v1::ErrorDetail::RESOURCE);
    detail.set_retry_after_ms(asked);
    return RetryAfter(MakeError(std::move(detail))).count();
  };
  EXPECT_EQ(after(200), 200);
  EXPECT_EQ(after(-1), 0);
  EXPECT_EQ(after(INT32_MIN), 0);
  EXPECT_EQ(after(INT32_MAX), 60'000);
}

}  // namespace
}  // namespace kernix
