// SPDX-License-Identifier: Apache-2.0
//
// For tests: rights that not every run has.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

// If this process lacks a right, skips the test and says why. If KERNIX_TEST_AS_ROOT is set, fails the test instead;
// set it where no test may be skipped silently.
#define KERNIX_NEED_RIGHT(right, why)                                   \
  if (!(right)) {                                                       \
    if (std::getenv("KERNIX_TEST_AS_ROOT") != nullptr) FAIL() << (why); \
    GTEST_SKIP() << (why);                                              \
  }                                                                     \
  static_assert(true)

#define KERNIX_NEED_ROOT(why) KERNIX_NEED_RIGHT(geteuid() == 0, why)
