// SPDX-License-Identifier: Apache-2.0
//
// Assertions of a kernel. A check that fails on the host throws, and the handler turns that into a JAX exception; one
// that fails on the device prints its message and traps.
//
//   BE_CHECK(x.ndim() == 1) << "expected a vector, got " << x.ndim() << " dimensions";
//   BE_CUDA_CHECK(cudaMemsetAsync(p, 0, n, stream));
//   kernel<<<grid, block, 0, stream>>>(...);
//   BE_CHECK_KERNEL_LAUNCH();
#pragma once

#include <stdint.h>

#include <new>  // the lightest header that has to define std::exception

#include "brainevent/dtypes.h"
#include "brainevent/internal/macros.h"
#include "brainevent/internal/text.h"

// The generated prologue sets this when the sources mention the exceptions of <stdexcept>: that header alone costs more
// than everything else here together.
#if defined(KERNIX_USES_STDEXCEPT)
#include <stdexcept>
#endif

namespace BE {
namespace internal {

// Longer messages are cut off.
inline constexpr int kMessageSize = 768;

}  // namespace internal

#if defined(KERNIX_USES_STDEXCEPT)

// Thrown by BE_CHECK.
class CheckError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Thrown by BE_CUDA_CHECK.
class CudaError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

#else

namespace internal {

class MessageError : public std::exception {
 public:
  explicit MessageError(const char* message) { Copy(message); }

  // A std::string, or what looks like one.
  template <typename String>
  explicit MessageError(const String& message) : MessageError(message.c_str()) {}

  KERNIX_COLD const char* what() const noexcept override { return message_; }

 private:
  void Copy(const char* message) { __builtin_snprintf(message_, sizeof(message_), "%s", message); }

  char message_[kMessageSize];
};

}  // namespace internal

// Thrown by BE_CHECK.
class CheckError : public internal::MessageError {
 public:
  using MessageError::MessageError;
};

// Thrown by BE_CUDA_CHECK.
class CudaError : public internal::MessageError {
 public:
  using MessageError::MessageError;
};

#endif

namespace internal {

#if !defined(__CUDA_ARCH__)
template <typename Error>
[[noreturn]] KERNIX_COLD inline void Throw(const char* message) {
#if KERNIX_HAS_EXCEPTIONS
  throw Error(message);
#else
  __builtin_printf("%s\n", message);
  __builtin_abort();
#endif
}
#endif

// What the checks below fail with. A macro, since device functions take no variable arguments; `FORMAT` is printf's.
#if defined(__CUDA_ARCH__)
#define KERNIX_FAIL(ERROR, FORMAT, ...) \
  do {                                  \
    printf(FORMAT "\n", __VA_ARGS__);   \
    __trap();                           \
    __builtin_unreachable();            \
  } while (0)
#else
#define KERNIX_FAIL(ERROR, FORMAT, ...)                                              \
  do {                                                                               \
    char kernix_message[::BE::internal::kMessageSize];                               \
    __builtin_snprintf(kernix_message, sizeof(kernix_message), FORMAT, __VA_ARGS__); \
    ::BE::internal::Throw<ERROR>(kernix_message);                                    \
  } while (0)
#endif

// What BE::Tensor throws besides.
#if defined(KERNIX_USES_STDEXCEPT)
using RankError = std::out_of_range;
using CountError = std::overflow_error;
#else
using RankError = CheckError;
using CountError = CheckError;
#endif

// Fails with `message` and a number.
template <typename Error>
[[noreturn]] KERNIX_HD KERNIX_COLD inline void FailNumber(const char* message, long long number) {
  KERNIX_FAIL(Error, "%s %lld", message, number);
}

// Collects the message of a failed BE_CHECK; fails when the full expression ends.
class FailedCheck {
 public:
  KERNIX_HD KERNIX_COLD FailedCheck(const char* file, int line, const char* condition)
      : file_(file), line_(line), condition_(condition) {}
  FailedCheck(const FailedCheck&) = delete;
  FailedCheck& operator=(const FailedCheck&) = delete;
  KERNIX_HD KERNIX_COLD ~FailedCheck() noexcept(false) {
    KERNIX_FAIL(CheckError, "check failed at %s:%d: %s%s%s", file_, line_, condition_, text_.empty() ? "" : ": ",
                text_.c_str());
  }

  KERNIX_HD KERNIX_COLD FailedCheck& operator<<(const char* value) { return text_.Add(value), *this; }
  KERNIX_HD KERNIX_COLD FailedCheck& operator<<(char value) { return text_.Add(value), *this; }
  KERNIX_HD KERNIX_COLD FailedCheck& operator<<(bool value) { return text_.Add(value ? "true" : "false"), *this; }
  KERNIX_HD KERNIX_COLD FailedCheck& operator<<(int value) { return text_.AddSigned(value), *this; }
  KERNIX_HD KERNIX_COLD FailedCheck& operator<<(long value) { return text_.AddSigned(value), *this; }
  KERNIX_HD KERNIX_COLD FailedCheck& operator<<(long long value) { return text_.AddSigned(value), *this; }
  KERNIX_HD KERNIX_COLD FailedCheck& operator<<(unsigned value) { return text_.AddUnsigned(value), *this; }
  KERNIX_HD KERNIX_COLD FailedCheck& operator<<(unsigned long value) { return text_.AddUnsigned(value), *this; }
  KERNIX_HD KERNIX_COLD FailedCheck& operator<<(unsigned long long value) { return text_.AddUnsigned(value), *this; }
  KERNIX_HD KERNIX_COLD FailedCheck& operator<<(double value) { return text_.AddReal(value), *this; }
  KERNIX_HD KERNIX_COLD FailedCheck& operator<<(DType value) { return text_.Add(dtype_name(value)), *this; }
  KERNIX_HD KERNIX_COLD FailedCheck& operator<<(const void* value) {
    return text_.Add("0x").AddUnsigned(reinterpret_cast<uintptr_t>(value), 16), *this;
  }

  // std::string, std::string_view and the like.
  template <typename String>
  auto operator<<(const String& value) -> decltype(value.data() + value.size(), *this) {
    return text_.Add(value.data(), value.size()), *this;
  }

 private:
  const char* file_;
  int line_;
  const char* condition_;
  Text text_;
};

// Gives both branches of BE_CHECK the type void; binds after `<<`.
struct Discard {
  KERNIX_HD void operator&(const FailedCheck&) const {}
};

// `name` and `description` are those of the error, empty on the device, where CUDA cannot tell them.
[[noreturn]] KERNIX_HD KERNIX_COLD inline void FailCuda(const char* file, int line, const char* expression, int code,
                                                        const char* name, const char* description) {
  KERNIX_FAIL(CudaError, "CUDA error %d at %s:%d: %s: %s %s", code, file, line, expression, name, description);
}

}  // namespace internal
}  // namespace BE

// Fails unless `condition` holds. A message may be streamed into it; it is built on failure only.
#define BE_CHECK(condition)          \
  (condition) ? static_cast<void>(0) \
              : ::BE::internal::Discard() & ::BE::internal::FailedCheck(__FILE__, __LINE__, #condition)

#if defined(__CUDA_ARCH__)
#define KERNIX_CUDA_ERROR_TEXT(code) "", ""
#else
#define KERNIX_CUDA_ERROR_TEXT(code) cudaGetErrorName(code), cudaGetErrorString(code)
#endif

// Fails unless `expression`, a cudaError_t, is cudaSuccess.
#define BE_CUDA_CHECK(expression)                                                                    \
  do {                                                                                               \
    const cudaError_t kernix_cuda_error = (expression);                                              \
    if (kernix_cuda_error != cudaSuccess) {                                                          \
      ::BE::internal::FailCuda(__FILE__, __LINE__, #expression, static_cast<int>(kernix_cuda_error), \
                               KERNIX_CUDA_ERROR_TEXT(kernix_cuda_error));                           \
    }                                                                                                \
  } while (0)

// After a kernel launch: catches a bad launch (grid, block, shared memory). What goes wrong while the kernel runs shows
// up at the next synchronisation only.
#define BE_CHECK_KERNEL_LAUNCH() BE_CUDA_CHECK(cudaGetLastError())

// The same, and waits for the device, so that a fault of the kernel is found here. For debugging; not while a CUDA
// graph is captured.
#define BE_CHECK_KERNEL_LAUNCH_SYNC()       \
  do {                                      \
    BE_CUDA_CHECK(cudaGetLastError());      \
    BE_CUDA_CHECK(cudaDeviceSynchronize()); \
  } while (0)
