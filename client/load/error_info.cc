// SPDX-License-Identifier: Apache-2.0
#include "common/base/error.h"
#include "kernix/error.h"

namespace kernix {
namespace {

ErrorCategory CategoryOf(ErrorKind kind) {
  switch (kind) {
    case v1::ErrorDetail::INVALID_REQUEST:
      return ErrorCategory::kInvalidRequest;
    case v1::ErrorDetail::TOOLCHAIN:
    case v1::ErrorDetail::NOT_REGISTERED_TOOLCHAIN:
      return ErrorCategory::kToolchain;
    case v1::ErrorDetail::COMPILATION:
      return ErrorCategory::kCompilation;
    case v1::ErrorDetail::LOAD:
      return ErrorCategory::kLoad;
    case v1::ErrorDetail::REGISTRATION:
      return ErrorCategory::kRegistration;
    case v1::ErrorDetail::UNREACHABLE:
      return ErrorCategory::kUnreachable;
    case v1::ErrorDetail::RESOURCE:
      return ErrorCategory::kResource;
    case v1::ErrorDetail::CANCELLED:
      return ErrorCategory::kCancelled;
    case v1::ErrorDetail::NOT_CACHED:
      return ErrorCategory::kNotCached;
    default:
      return ErrorCategory::kInternal;
  }
}

}  // namespace

ErrorInfo DescribeError(const absl::Status& status) {
  const v1::ErrorDetail detail = GetErrorDetail(status);
  return {.category = CategoryOf(detail.kind()),
          .compiler_output = detail.compiler_output(),
          .command = detail.command(),
          .exit_code = detail.exit_code()};
}

}  // namespace kernix
