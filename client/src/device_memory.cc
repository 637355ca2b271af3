// SPDX-License-Identifier: Apache-2.0
#include "client/src/device_memory.h"

#include <dlfcn.h>

#include <cstdint>

#include "daemon/base/strings.h"

namespace kernix {
namespace {

// Functions of the CUDA driver, as its reference manual describes them; 0 is success. Null where there is none.
struct Driver {
  int (*allocate)(uint64_t* address, size_t size, void* stream) = nullptr;
  int (*free)(uint64_t address, void* stream) = nullptr;
  int (*error_string)(int error, const char** text) = nullptr;
};

Driver FindDriver() {
  Driver driver;
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);  // stays open: whoever has CUDA has it open anyway
  if (library == nullptr) return driver;
  driver.allocate = reinterpret_cast<decltype(driver.allocate)>(dlsym(library, "cuMemAllocAsync"));
  driver.free = reinterpret_cast<decltype(driver.free)>(dlsym(library, "cuMemFreeAsync"));
  driver.error_string = reinterpret_cast<decltype(driver.error_string)>(dlsym(library, "cuGetErrorString"));
  return driver;
}

const Driver& TheDriver() {
  static const Driver driver = FindDriver();
  return driver;
}

absl::Status Failed(const char* what, int error) {
  const char* text = nullptr;
  if (TheDriver().error_string != nullptr) TheDriver().error_string(error, &text);
  return absl::ResourceExhaustedError(
      StrCat("the CUDA driver could not ", what, ": ", text == nullptr ? "unknown error" : text, " (", error, ")"));
}

}  // namespace

absl::StatusOr<void*> AllocateDeviceMemory(size_t size, void* stream) {
  const Driver& driver = TheDriver();
  if (driver.allocate == nullptr || driver.free == nullptr) {
    return absl::UnavailableError("no CUDA driver (libcuda.so.1, for CUDA 11.2 or newer) to get device memory from");
  }
  uint64_t address = 0;
  const int error = driver.allocate(&address, size, stream);
  if (error != 0) return Failed("allocate device memory", error);
  return reinterpret_cast<void*>(address);
}

absl::Status FreeDeviceMemory(void* data, void* stream) {
  const int error = TheDriver().free(reinterpret_cast<uint64_t>(data), stream);
  return error == 0 ? absl::OkStatus() : Failed("free device memory", error);
}

}  // namespace kernix
