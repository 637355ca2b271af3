// SPDX-License-Identifier: Apache-2.0
//
// The memory of a BE::Scratch, and its size. The generated code includes this header only for functions that have one.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include <type_traits>

#include "brainevent/internal/handler.h"
#include "brainevent/scratch.h"

namespace kernix_handler {

// --- The size, computed with products of 128 bits, because a size that has wrapped around would give too little
// memory.

__extension__ typedef __int128 Wide;

// Computes one expression, in which `factor->*` follows each '*', and `divisor->*` each '/' and '%'. `->*` binds more
// tightly than these, and needs no parentheses, so the text of the source's macros stays unchanged.
struct ScratchSize {
  struct Factor {
    template <typename T>
    auto operator->*(T value) const {
      if constexpr (std::is_integral_v<T> || (std::is_enum_v<T> && std::is_convertible_v<T, long long>)) {
        return static_cast<Wide>(value);
      } else {
        return value;
      }
    }
  };
  struct Divisor {
    template <typename T>
    auto operator->*(T value) {
      const auto divisor = Factor()->*value;
      const bool is_zero = divisor == decltype(divisor){0};
      has_failed |= is_zero;
      return is_zero ? decltype(divisor){1} : divisor;
    }
    bool has_failed = false;
  };

  // Not a number after a division by 0. Sizes that there can be are exact.
  template <typename T>
  double Bytes(const T& value) const {
    return divisor.has_failed ? __builtin_nan("") : static_cast<double>(value);
  }

  Factor factor;
  Divisor divisor;
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
  ScratchMemory(Call& call, double bytes, const char* expression) : call_(call) {
    if (call.error != nullptr || bytes == 0) return;
    if (!(bytes >= 0 && bytes <= kMostBytes)) {
      call.error = NoSize(bytes, expression);
      return;
    }
    size_ = static_cast<size_t>(bytes);
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
  static constexpr double kMostBytes = 1ull << 48;
  static constexpr size_t kDeviceAlignment = 16;  // the highest alignment that XLA accepts

  KERNIX_COLD ffi::Error* NoSize(double bytes, const char* expression) const {
    return Fail(call_.frame, *call_.signature, ffi::kInvalidArgument, "'scratch:%.300s' has no value: %s", expression,
                bytes < 0   ? "it is negative"
                : bytes > 0 ? "it is too large"
                            : "it is not a number, as after a division by 0");
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
