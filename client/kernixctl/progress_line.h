// SPDX-License-Identifier: Apache-2.0
//
// Where a load stands, for a person who waits.
#pragma once

#include <chrono>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

namespace kernix::ctl {

// The last line of a terminal while a load takes over a second; gone at the end. As in Python.
class ProgressLine {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  // Without `terminal` nothing is ever drawn. `out` must outlive this.
  ProgressLine(std::string name, std::ostream& out, bool terminal, Clock now = std::chrono::steady_clock::now);
  ~ProgressLine() { Erase(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Where the load stands now.
  void SetState(std::string_view state);
  // Draws the line when it is due. To be called several times a second.
  void Poll();
  // Makes room for something else to be written.
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

}  // namespace kernix::ctl
