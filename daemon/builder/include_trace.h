// SPDX-License-Identifier: Apache-2.0
//
// What a compiler says with -H, as it says it: each file that it begins to read, among its messages. Unlike a
// dependency file, which is written at the end, that holds for a run that stops half-way. What comes after a fatal
// error is left out: GCC ends there, and Clang still opens files, but no longer says which are missing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "common/base/output_buffer.h"
#include "daemon/exec/action.h"

namespace kernix::build {

inline constexpr std::string_view kFatalError = "fatal error: ";

// For one command. Messages can make it believe that a file was read, never hide one: a file's line is written at once
// by the one compiler that runs, and a message ends its line.
class IncludeTrace : public exec::ActionObserver {
 public:
  void OnQueued(int) override {}
  void OnStarted(const exec::Action&) override {}
  void OnOutput(std::string_view text) override;

  // After the command has ended.
  // False when there was more than can be kept.
  bool complete() const { return complete_; }
  const std::vector<std::string>& files() const { return files_; }
  // The messages alone. Of many, both ends.
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
  bool lists_files_ = false;  // GCC's list of headers without a guard
  OutputBuffer messages_{4 << 20};
};

}  // namespace kernix::build
