// SPDX-License-Identifier: Apache-2.0
//
// Reads what a compiler prints with -H: the name of each file when it starts to read it, among its messages. Unlike a
// dependency file, which is written at the end, the trace is also valid for a run that stops half-way. Lines after a
// fatal error are ignored: GCC ends there, and Clang still opens files but no longer reports which are missing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "common/base/output_buffer.h"
#include "daemon/exec/action.h"

namespace kernix::build {

inline constexpr std::string_view kFatalError = "fatal error: ";

// Reads the output of one command. Messages can make the trace list a file that was not read, but never hide one: the
// only running compiler writes a file's line at once, and a message ends its line.
class IncludeTrace : public exec::ActionObserver {
 public:
  void OnOutput(std::string_view text) override;

  // The following are valid after the command has ended. False if there was more than the trace can keep.
  bool complete() const { return complete_; }
  const std::vector<std::string>& files() const { return files_; }
  // The messages alone; if there are many, only the beginning and the end.
  std::string Messages();

 private:
  void TakeLine(std::string_view line);
  void NoteFile(std::string_view path);

  std::string unfinished_;
  std::vector<std::string> files_;
  absl::flat_hash_set<std::string> seen_;
  size_t bytes_ = 0;
  bool complete_ = true;
  bool ended_ = false;        // by a fatal error
  bool lists_files_ = false;  // inside GCC's list of headers without a guard
  OutputBuffer messages_{4 << 20};
};

}  // namespace kernix::build
