// SPDX-License-Identifier: Apache-2.0
//
// Assertions for kernels. A check that fails on the host throws an exception, which the handler turns into a JAX
// exception. A check that fails on the device prints its message and traps.
//
//   BE_CHECK(x.ndim() == 1) << "expected a vector, got " << x.ndim() << " dimensions";
//   BE_CUDA_CHECK(cudaMemsetAsync(p, 0, n, stream));
//   kernel<<<grid, block, 0, stream>>>(...);
//   BE_CHECK_KERNEL_LAUNCH();
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include <stdint.h>

#include <new>  // the lightest header that must define std::exception

#include "brainevent/dtypes.h"
#include "brainevent/internal/macros.h"
#include "brainevent/internal/text.h"

// The generated prologue defines this macro if the sources mention the exceptions of <stdexcept>. That header alone
// costs more compile time than everything else here together.
#if defined(KERNIX_USES_STDEXCEPT)
#include <stdexcept>
#endif

namespace BE {
namespace internal {

// Longer messages are truncated.
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

  // A std::string, or a type with the same members.
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

// Reports a failed check. A macro, because device functions take no variable arguments; `FORMAT` is printf's.
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

// The other exceptions that BE::Tensor throws.
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

// Collects the message of a failed BE_CHECK, and fails at the end of the full expression.
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

  // std::string, std::string_view and similar types.
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

// Gives both branches of BE_CHECK the type void. Its operator binds less tightly than `<<`.
struct Discard {
  KERNIX_HD void operator&(const FailedCheck&) const {}
};

// `name` and `description` describe the error. They are empty on the device, where CUDA does not provide them.
[[noreturn]] KERNIX_HD KERNIX_COLD inline void FailCuda(const char* file, int line, const char* expression, int code,
                                                        const char* name, const char* description) {
  KERNIX_FAIL(CudaError, "CUDA error %d at %s:%d: %s: %s %s", code, file, line, expression, name, description);
}

}  // namespace internal
}  // namespace BE

// Fails unless `condition` holds. A message may be streamed into it; the message is built only on failure.
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

// Use it after a kernel launch. It detects an invalid launch (grid, block, shared memory). An error while the kernel
// runs appears only at the next synchronisation.
#define BE_CHECK_KERNEL_LAUNCH() BE_CUDA_CHECK(cudaGetLastError())

// Like BE_CHECK_KERNEL_LAUNCH(), but also waits for the device, so that it detects a fault of the kernel. For
// debugging; do not use it while a CUDA graph is captured.
#define BE_CHECK_KERNEL_LAUNCH_SYNC()       \
  do {                                      \
    BE_CUDA_CHECK(cudaGetLastError());      \
    BE_CUDA_CHECK(cudaDeviceSynchronize()); \
  } while (0)
