// SPDX-License-Identifier: Apache-2.0
#include "common/base/exceptions.h"

#include <gtest/gtest.h>

#include <map>
#include <new>
#include <string>

namespace kernix {
namespace {

template <typename Work>
absl::Status Caught(const Work& work) {
  return CatchExceptions("could not do it", [&] {
    work();
    return absl::OkStatus();
  });
}

TEST(ExceptionsTest, WhatIsTooLargeIsTheUsers) {
  for (const absl::Status& status :
       {Caught([] { throw std::bad_alloc(); }), Caught([] { std::string().resize(std::string().max_size() + 1); })}) {
    EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE) << status;
    EXPECT_EQ(status.message().find("could not do it: "), 0u);
  }
}

TEST(ExceptionsTest, AFaultOfOursIsNotTheUsersAndIsLogged) {
  testing::internal::CaptureStderr();
  const absl::Status status = Caught([] { return std::map<int, int>().at(1); });
  const std::string logged = testing::internal::GetCapturedStderr();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::INTERNAL) << status;
  EXPECT_NE(logged.find("error logic_error what=\"could not do it\""), std::string::npos) << logged;
}

}  // namespace
}  // namespace kernix
