// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/cuda_driver.h"

#include <dlfcn.h>

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

}  // namespace kernix
