// SPDX-License-Identifier: Apache-2.0
//
// Part of every test program: if a test hangs anywhere, names the test and ends the program. Tools run through the
// kernix-spawn that was built with the tests, and programs have no history.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "common/os/spawner.h"

namespace {

// Less than CTest's limit, which does not tell the tests of a program apart.
constexpr unsigned kSeconds = 280;

std::string* the_message = nullptr;

void EndHungTest(int) {
  static_cast<void>(!write(STDERR_FILENO, the_message->data(), the_message->size()));
  std::_Exit(EXIT_FAILURE);
}

class Deadline : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    delete the_message;
    the_message = new std::string("[  HUNG    ] " + std::string(test.test_suite_name()) + "." + test.name() + "\n");
    signal(SIGALRM, EndHungTest);
    alarm(kSeconds);
  }
  void OnTestEnd(const testing::TestInfo&) override { alarm(0); }
};

[[maybe_unused]] const bool kListens = [] {
  // No load of a test has others built in the background, but where a test asks for that.
  setenv("KERNIX_HISTORY", "0", 1);
  kernix::spawn::Spawner::Get().SetProgram(KERNIX_SPAWN_PROGRAM);
  testing::UnitTest::GetInstance()->listeners().Append(new Deadline);
  return true;
}();

}  // namespace
