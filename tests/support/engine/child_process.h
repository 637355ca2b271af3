// SPDX-License-Identifier: Apache-2.0
//
// For tests: a program that runs beside the test.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace kernix::testing {

struct ChildCommand {
  std::vector<std::string> argv;  // argv[0]: its path
  std::map<std::string, std::string> environment;
  std::string log;        // a file that gets its output
  int inherited_fd = -1;  // becomes descriptor 3
};

// Dies with the test program, too, however that ends.
class ChildProcess {
 public:
  // Fails the test if the program cannot be started.
  explicit ChildProcess(const ChildCommand& command);
  ~ChildProcess();  // kills it, if it still runs
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  bool IsRunning();
  // Sends the signal and waits until it has ended.
  void End(int signal);
  // Its output so far.
  std::string Log() const;

 private:
  const std::string log_;
  pid_t pid_ = 0;  // 0: ended
};

}  // namespace kernix::testing
