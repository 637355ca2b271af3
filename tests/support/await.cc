// SPDX-License-Identifier: Apache-2.0
#include "tests/support/await.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace kernix {

void GiveUp(const std::string& what) {
  ADD_FAILURE() << "waited " << kPatience.count() << " s for: " << what;
  std::fflush(nullptr);
  std::_Exit(EXIT_FAILURE);
}

void Await(const std::string& what, const std::function<bool()>& happened) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!happened()) {
    if (std::chrono::steady_clock::now() > deadline) GiveUp(what);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void AwaitReadable(const std::string& what, int fd) {
  pollfd wanted{fd, POLLIN, 0};
  if (poll(&wanted, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())) != 1) GiveUp(what);
}

}  // namespace kernix
