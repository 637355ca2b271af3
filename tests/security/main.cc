// SPDX-License-Identifier: Apache-2.0
//
// The security suite: one process, so that it can print at the end what it has counted.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/security/tally.h"
#include "tests/security/users.h"

namespace {

// As tests/support/need_right.h has it; 77 is CTest's word for a skipped test.
int Skip(const char* why) {
  std::printf("skipped: %s\n", why);
  return std::getenv("KERNIX_TEST_AS_ROOT") == nullptr ? 77 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (geteuid() != 0) return Skip("needs root, to be the service and its members (setresuid)");
  if (!kernix::security::As(kernix::security::TheUsers().member, [] { return true; })) {
    return Skip("root may not become another user here");
  }
  const int result = RUN_ALL_TESTS();
  kernix::security::Tally::Get().Print();
  return result;
}
