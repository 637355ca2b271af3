// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/current_device.h"

#include "common/base/strings.h"

namespace kernix {

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

}  // namespace kernix
