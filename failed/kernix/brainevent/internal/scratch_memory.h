// SPDX-License-Identifier: Apache-2.0
//
// The memory of a BE::Scratch. The generated code includes this header only for functions that have one.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include "brainevent/internal/extended.h"
#include "brainevent/internal/scratch_size.h"
#include "brainevent/scratch.h"

namespace kernix_handler {

// The memory of one scratch parameter for one call: XLA's for a function that runs on a device, otherwise the host's.
// Errors are stored in the call.
//
// The memory is freed when the user's function returns, while its kernels may still be running. That is safe because
// XLA's allocator works in the order of the device's compute stream: it gives the memory only to work that is enqueued
// there later. XLA's own ffi::ScratchAllocator frees its memory at the same time.
template <bool kOnDevice>
class ScratchMemory {
 public:
  ScratchMemory(ExtendedCall& call, const ScratchSize& size) : call_(call) {
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

  ExtendedCall& call_;
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace kernix_handler
