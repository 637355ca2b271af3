// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/cuda_driver.h"

#include <dlfcn.h>

#include <cstdint>
#include <type_traits>

#include "common/base/strings.h"

namespace kernix {
namespace {

CudaDriver FindCudaDriver() {
  CudaDriver driver;
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return driver;
  const auto find = [library](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
  };
  find(driver.init, "cuInit");
  find(driver.get_error_string, "cuGetErrorString");
  find(driver.memory_allocate_async, "cuMemAllocAsync");
  find(driver.memory_free_async, "cuMemFreeAsync");
  find(driver.context_get_device, "cuCtxGetDevice");
  find(driver.context_push_current, "cuCtxPushCurrent_v2");
  find(driver.context_pop_current, "cuCtxPopCurrent_v2");
  find(driver.device_get, "cuDeviceGet");
  find(driver.primary_context_retain, "cuDevicePrimaryCtxRetain");
  find(driver.primary_context_release, "cuDevicePrimaryCtxRelease_v2");
  return driver;
}

}  // namespace

std::string CudaDriver::Failure(const char* what, int error) const {
  const char* text = nullptr;
  if (get_error_string != nullptr) get_error_string(error, &text);
  return StrCat("the CUDA driver could not ", what, ": ", text == nullptr ? "unknown error" : text, " (", error, ")");
}

const CudaDriver& TheCudaDriver() {
  static const CudaDriver driver = FindCudaDriver();
  return driver;
}

CurrentDevice::~CurrentDevice() {
  if (!entered_) return;
  void* context = nullptr;
  driver_.context_pop_current(&context);
  driver_.primary_context_release(*entered_);
}

absl::Status CurrentDevice::Enter(int ordinal) {
  if (driver_.init == nullptr) return absl::OkStatus();
  const auto failed = [&](int error) {
    return absl::FailedPreconditionError(driver_.Failure(StrCat("use device ", ordinal).c_str(), error));
  };
  int device = 0;
  if (const int error = driver_.init(0)) return failed(error);
  if (const int error = driver_.device_get(&device, ordinal)) return failed(error);
  if (int current = 0; driver_.context_get_device(&current) == 0 && current == device) return absl::OkStatus();
  void* context = nullptr;
  if (const int error = driver_.primary_context_retain(&context, device)) return failed(error);
  if (const int error = driver_.context_push_current(context)) {
    driver_.primary_context_release(device);
    return failed(error);
  }
  entered_ = device;
  return absl::OkStatus();
}

absl::StatusOr<void*> AllocateDeviceMemory(size_t size, void* stream) {
  const CudaDriver& driver = TheCudaDriver();
  if (driver.memory_allocate_async == nullptr || driver.memory_free_async == nullptr) {
    return absl::UnavailableError("no CUDA driver (libcuda.so.1, for CUDA 11.2 or newer) to provide device memory");
  }
  uint64_t address = 0;
  const int error = driver.memory_allocate_async(&address, size, stream);
  if (error != 0) return absl::ResourceExhaustedError(driver.Failure("allocate device memory", error));
  return reinterpret_cast<void*>(address);
}

absl::Status FreeDeviceMemory(void* data, void* stream) {
  const CudaDriver& driver = TheCudaDriver();
  const int error = driver.memory_free_async(reinterpret_cast<uint64_t>(data), stream);
  return error == 0 ? absl::OkStatus() : absl::ResourceExhaustedError(driver.Failure("free device memory", error));
}

}  // namespace kernix
