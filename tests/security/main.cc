// SPDX-License-Identifier: Apache-2.0
//
// The security suite: one process, so that it can print at the end what it has counted.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "tests/security/tally.h"
#include "tests/security/users.h"

namespace {

constexpr int kSkipped = 77;  // to CTest

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (geteuid() != 0) {
    std::puts("skipped: needs root, to be the service and its members (setresuid)");
    return kSkipped;
  }
  if (!kernix::security::As(kernix::security::TheUsers().member, [] { return true; })) {
    std::puts("skipped: root may not become another user here");
    return kSkipped;
  }
  const int result = RUN_ALL_TESTS();
  kernix::security::Tally::Get().Print();
  return result;
}
