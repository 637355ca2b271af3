// SPDX-License-Identifier: Apache-2.0
//
// What a person at a terminal sees of a load, and how Ctrl-C ends it.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

namespace kernix::ctl {

// The last line of a terminal while a load takes more than a second. It disappears at the end. Python has the same.
class ProgressLine {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  // Without `terminal`, draws nothing. `out` must outlive this object.
  ProgressLine(std::string name, std::ostream& out, bool terminal, Clock now = std::chrono::steady_clock::now);
  ~ProgressLine() { Erase(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Sets the current state of the load.
  void SetState(std::string_view state);
  // Draws the line if it is due. Call it several times a second.
  void Poll();
  // Erases the line, so that other output can be written.
  void Erase();

 private:
  const std::string name_;
  std::ostream& out_;
  const bool terminal_;
  const Clock now_;
  const std::chrono::steady_clock::time_point start_;
  std::string state_ = "connecting";
  std::string drawn_;
};

// A picture of how many of `total` are done: "[######--------------]".
std::string Bar(size_t done, size_t total);

// From now on, a Ctrl-C is noted, so that a load can be cancelled and the daemon stops building for it. A second one
// ends this process at once.
void CatchInterrupt();

bool Interrupted();

}  // namespace kernix::ctl
