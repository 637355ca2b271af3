// SPDX-License-Identifier: Apache-2.0
//
// The memory of a BE::Scratch, and its size. The generated code includes this header only for functions that have one.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include <type_traits>

#include "brainevent/internal/handler.h"
#include "brainevent/scratch.h"

namespace kernix_handler {

// --- The size: an expression in 64-bit integers with overflow checks, because a size that has wrapped around would
// give too little memory.

struct ScratchSize {
  int64_t bytes;
  bool failed;  // an operation overflowed or divided by 0
  const char* expression;
};

template <typename T>
inline constexpr bool kIsNumber = std::is_arithmetic_v<T> || (std::is_enum_v<T> && std::is_convertible_v<T, long long>);

// A number of an expression. It is an integer until it meets a floating-point number, as in C++. A failing operation
// gives 0 and sets `failed`.
class Number {
 public:
  // `failed` is null for an operand without `->*` before it: any but the first one in a macro of the source.
  template <typename T, std::enable_if_t<kIsNumber<T>, int> = 0>
  Number(T value, bool* failed = nullptr) : failed_(failed) {
    if constexpr (std::is_floating_point_v<T>) {
      is_real_ = true;
      real_ = value;
    } else if (__builtin_add_overflow(+value, 0, &whole_)) {
      whole_ = INT64_MAX;
      Fail(true);
    }
  }

  explicit operator bool() const { return is_real_ ? real_ != 0 : whole_ != 0; }

  int64_t Bytes() {
    if (!is_real_) return whole_;
    const bool fits = real_ > -9223372036854775808.0 && real_ < 9223372036854775808.0;
    Fail(!fits);
    return fits ? static_cast<int64_t>(real_) : 0;
  }

#define KERNIX_REAL_TOO(sign, whole)                                                   \
  friend Number operator sign(Number a, Number b) {                                    \
    if (a.is_real_ || b.is_real_) return Number(a.Real() sign b.Real(), FlagOf(a, b)); \
    int64_t result = 0;                                                                \
    const bool fails = whole;                                                          \
    return Of(a, b, fails, result);                                                    \
  }
  KERNIX_REAL_TOO(+, __builtin_add_overflow(a.whole_, b.whole_, &result))
  KERNIX_REAL_TOO(-, __builtin_sub_overflow(a.whole_, b.whole_, &result))
  KERNIX_REAL_TOO(*, __builtin_mul_overflow(a.whole_, b.whole_, &result))
  KERNIX_REAL_TOO(/, CannotDivide(a, b) || (result = a.whole_ / b.whole_, false))
#undef KERNIX_REAL_TOO

#define KERNIX_WHOLE_ONLY(sign, fails)                        \
  friend Number operator sign(Number a, Number b) {           \
    const bool none = a.is_real_ || b.is_real_ || (fails);    \
    return Of(a, b, none, none ? 0 : a.whole_ sign b.whole_); \
  }
  KERNIX_WHOLE_ONLY(%, CannotDivide(a, b))
  KERNIX_WHOLE_ONLY(>>, b.whole_<0 || b.whole_> 63)
  KERNIX_WHOLE_ONLY(&, false)
  KERNIX_WHOLE_ONLY(|, false)
  KERNIX_WHOLE_ONLY(^, false)
#undef KERNIX_WHOLE_ONLY
  friend Number operator<<(Number a, Number b) {
    const bool fails = a.is_real_ || b.is_real_ || b.whole_ < 0 || b.whole_ > 62;
    return a * Of(a, b, fails, int64_t{1} << (fails ? 0 : b.whole_));
  }

#define KERNIX_COMPARES(sign)                                                          \
  friend bool operator sign(Number a, Number b) {                                      \
    return a.is_real_ || b.is_real_ ? a.Real() sign b.Real() : a.whole_ sign b.whole_; \
  }
  KERNIX_COMPARES(==)
  KERNIX_COMPARES(!=)
  KERNIX_COMPARES(<)
  KERNIX_COMPARES(>)
  KERNIX_COMPARES(<=)
  KERNIX_COMPARES(>=)
#undef KERNIX_COMPARES

  Number After(char sign) const {
    if (sign == '-') return Number(0, failed_) - *this;
    if (sign == '~') return Number(-1, failed_) ^ *this;
    if (sign == '!') return Number(!static_cast<bool>(*this), failed_);
    return *this;
  }

 private:
  static bool* FlagOf(Number a, Number b) { return a.failed_ != nullptr ? a.failed_ : b.failed_; }
  static bool CannotDivide(Number a, Number b) { return b.whole_ == 0 || (a.whole_ == INT64_MIN && b.whole_ == -1); }
  static Number Of(Number a, Number b, bool fails, int64_t value) {
    Number result(fails ? 0 : value, FlagOf(a, b));
    result.Fail(fails);
    return result;
  }

  double Real() const { return is_real_ ? real_ : static_cast<double>(whole_); }
  void Fail(bool fails) {
    if (fails && failed_ != nullptr) *failed_ = true;
  }

  int64_t whole_ = 0;
  double real_ = 0;
  bool is_real_ = false;
  bool* failed_;
};

// Evaluates one expression, in which `->*` precedes each operand. `->*` binds more tightly than all operators in the
// expression and needs no parentheses, so the text of the source's macros stays unchanged.
class Arithmetic {
 public:
  // Applies the signs before an operand.
  struct Signs {
    const char* signs;
    Arithmetic& of;

    template <typename T>
    Number operator->*(const T& operand) const {
      Number value = of.NumberOf(operand);
      size_t count = 0;
      while (signs[count] != 0) ++count;
      while (count > 0) value = value.After(signs[--count]);
      return value;
    }
  };
  Signs After(const char* signs) { return {signs, *this}; }

  // Numbers are computed as Number; all other operands stay unchanged.
  template <typename T>
  decltype(auto) operator->*(T&& operand) {
    if constexpr (kIsNumber<std::remove_cv_t<std::remove_reference_t<T>>>) {
      return Number(operand, &failed_);
    } else {
      return static_cast<T&&>(operand);
    }
  }

  template <typename T>
  ScratchSize Size(const T& value, const char* expression) {
    const int64_t bytes = NumberOf(value).Bytes();
    return {bytes, failed_, expression};
  }

 private:
  template <typename T>
  Number NumberOf(const T& value) {
    if constexpr (std::is_same_v<T, Number>) {
      return value;
    } else if constexpr (kIsNumber<T>) {
      return Number(value, &failed_);
    } else if constexpr (std::is_convertible_v<T, int64_t>) {
      return Number(static_cast<int64_t>(value), &failed_);
    } else {
      return Number(static_cast<bool>(value), &failed_);  // for a pointer
    }
  }

  bool failed_ = false;
};

// --- The memory

// The memory of one scratch parameter for one call: XLA's for a function that runs on a device, otherwise the host's.
// Errors are stored in the call.
//
// The memory is freed when the user's function returns, while its kernels may still be running. That is safe because
// XLA's allocator works in the order of the device's compute stream: it gives the memory only to work that is enqueued
// there later. XLA's own ffi::ScratchAllocator frees its memory at the same time.
template <bool kOnDevice>
class ScratchMemory {
 public:
  ScratchMemory(Call& call, const ScratchSize& size) : call_(call) {
    if (call.error != nullptr || (size.bytes == 0 && !size.failed)) return;
    if (size.failed || size.bytes < 0) {
      call.error = NoSize(size);
      return;
    }
    size_ = static_cast<size_t>(size.bytes);
    if constexpr (kOnDevice) {
      call.error = AllocateOnDevice();
    } else {
      data_ = ::operator new(size_, kHostAlignment, std::nothrow);
      if (data_ == nullptr) call.error = Exhausted();
    }
  }
  ScratchMemory(const ScratchMemory&) = delete;
  ScratchMemory& operator=(const ScratchMemory&) = delete;
  ~ScratchMemory() {
    if (data_ == nullptr) return;
    if constexpr (kOnDevice) {
      FreeOnDevice();
    } else {
      ::operator delete(data_, kHostAlignment);
    }
  }

  BE::Scratch view() const { return {data_, size_}; }

 private:
  static constexpr std::align_val_t kHostAlignment{64};
  static constexpr size_t kDeviceAlignment = 16;  // the highest alignment that XLA accepts

  KERNIX_COLD ffi::Error* NoSize(const ScratchSize& size) const {
    if (!size.failed) {
      return Fail(call_.frame, *call_.signature, ffi::kInvalidArgument, "scratch memory of %lld bytes",
                  static_cast<long long>(size.bytes));
    }
    return Fail(call_.frame, *call_.signature, ffi::kInvalidArgument,
                "'scratch:%.300s' has no value: some number in it does not fit a signed integer of 64 bits, or is "
                "divided by 0",
                size.expression);
  }

  KERNIX_COLD ffi::Error* AllocateOnDevice() {
    const ffi::Api& api = *call_.frame->api;
    if (api.struct_size < offsetof(ffi::Api, device_memory_free) + sizeof(api.device_memory_free) ||
        api.device_memory_allocate == nullptr || api.device_memory_free == nullptr) {
      return NotInThisRuntime(call_.frame, *call_.signature, "scratch", "XLA_FFI_DeviceMemory_Allocate");
    }
    ffi::DeviceMemoryAllocateArgs args = {sizeof(args), nullptr, call_.frame->ctx, size_, kDeviceAlignment, nullptr};
    ffi::Error* error = api.device_memory_allocate(&args);
    data_ = error == nullptr ? args.data : nullptr;
    return error;
  }

  KERNIX_COLD void FreeOnDevice() {
    ffi::DeviceMemoryFreeArgs args = {sizeof(args), nullptr, call_.frame->ctx, size_, data_};
    ffi::Error* error = call_.frame->api->device_memory_free(&args);
    if (error == nullptr) return;
    if (call_.error == nullptr) {
      call_.error = error;
      return;
    }
    ffi::ErrorDestroyArgs destroy = {sizeof(destroy), nullptr, error};
    call_.frame->api->error_destroy(&destroy);
  }

  KERNIX_COLD ffi::Error* Exhausted() const {
    return Fail(call_.frame, *call_.signature, ffi::kResourceExhausted, "no memory for %zu bytes of scratch", size_);
  }

  Call& call_;
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace kernix_handler
