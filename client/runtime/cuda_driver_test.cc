// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/cuda_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kernix {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kInvalidDevice = 101;

// A driver with two devices. A CUdevice is the ordinal plus 10. A context is the address of its device's slot.
struct FakeDriver {
  static inline int slots[2];
  static inline std::vector<int> current;  // CUdevices
  static inline std::vector<int> retained;
  static inline int push_error = 0;

  static CudaDriver Make() {
    current.clear();
    retained.clear();
    push_error = 0;
    CudaDriver driver;
    driver.init = [](unsigned) { return 0; };
    driver.get_error_string = [](int error, const char** text) {
      *text = error == kInvalidDevice ? "invalid device ordinal" : "another error";
      return 0;
    };
    driver.device_get = [](int* device, int ordinal) {
      *device = ordinal + 10;
      return ordinal < 2 ? 0 : kInvalidDevice;
    };
    driver.context_get_device = [](int* device) {
      if (current.empty()) return 201;
      *device = current.back();
      return 0;
    };
    driver.primary_context_retain = [](void** context, int device) {
      retained.push_back(device);
      *context = &slots[device - 10];
      return 0;
    };
    driver.primary_context_release = [](int device) {
      EXPECT_EQ(retained.back(), device);
      retained.pop_back();
      return 0;
    };
    driver.context_push_current = [](void* context) {
      if (push_error == 0) current.push_back(static_cast<int>(static_cast<int*>(context) - slots) + 10);
      return push_error;
    };
    driver.context_pop_current = [](void**) {
      current.pop_back();
      return 0;
    };
    return driver;
  }
};

TEST(CurrentDeviceTest, IsCurrentWhileItLives) {
  const CudaDriver driver = FakeDriver::Make();
  FakeDriver::current = {10};
  {
    CurrentDevice device(driver);
    EXPECT_TRUE(device.Enter(1).ok());
    EXPECT_THAT(FakeDriver::current, ElementsAre(10, 11));
    EXPECT_THAT(FakeDriver::retained, ElementsAre(11));
  }
  EXPECT_THAT(FakeDriver::current, ElementsAre(10));
  EXPECT_THAT(FakeDriver::retained, IsEmpty());
}

TEST(CurrentDeviceTest, AThreadWithoutAContextGetsOne) {
  const CudaDriver driver = FakeDriver::Make();
  {
    CurrentDevice device(driver);
    EXPECT_TRUE(device.Enter(0).ok());
    EXPECT_THAT(FakeDriver::current, ElementsAre(10));
  }
  EXPECT_THAT(FakeDriver::current, IsEmpty());
}

TEST(CurrentDeviceTest, LeavesADeviceThatIsCurrentAlone) {
  const CudaDriver driver = FakeDriver::Make();
  FakeDriver::current = {11};
  CurrentDevice device(driver);
  EXPECT_TRUE(device.Enter(1).ok());
  EXPECT_THAT(FakeDriver::retained, IsEmpty());
  EXPECT_THAT(FakeDriver::current, ElementsAre(11));
}

TEST(CurrentDeviceTest, SaysWhichDeviceCannotBeUsed) {
  const CudaDriver driver = FakeDriver::Make();
  {
    CurrentDevice device(driver);
    EXPECT_THAT(device.Enter(2).ToString(), HasSubstr("could not use device 2: invalid device ordinal (101)"));
  }
  FakeDriver::push_error = 999;
  CurrentDevice device(driver);
  EXPECT_THAT(device.Enter(1).ToString(), HasSubstr("could not use device 1: another error (999)"));
  EXPECT_THAT(FakeDriver::retained, IsEmpty());
}

TEST(CurrentDeviceTest, NothingHappensWithoutADriver) {
  const CudaDriver none;
  CurrentDevice device(none);
  EXPECT_TRUE(device.Enter(7).ok());
}

}  // namespace

}  // namespace kernix
