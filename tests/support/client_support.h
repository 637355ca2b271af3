// SPDX-License-Identifier: Apache-2.0
//
// What the tests of this folder share: scratch folders, a real compiler, handlers.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/paths.h"

namespace kernix::testing {

// A new folder, removed when it goes.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view relative) const { return JoinPath(path_, relative); }

  // Writes a file with its folders, and returns its path. A program can be run.
  std::string Write(std::string_view relative, std::string_view text) const;
  std::string WriteProgram(std::string_view relative) const;

 private:
  std::string Put(std::string_view relative, std::string_view text, mode_t mode) const;
  std::string path_;
};

// An environment that holds just these variables.
GetEnv Variables(std::map<std::string, std::string> variables);

// The top of the source tree, for kernix's own headers.
std::string SourceRoot();

// The C++ compiler of this machine.
std::string HostCompiler();

// Compiles `source` to the shared library `output` with more `flags`. The test fails, with the compiler's output, when
// it does not compile.
void CompileLibrary(const std::string& source, const std::string& output, const std::vector<std::string>& flags = {});

// C++ of an XLA FFI handler named `symbol` that adds `constant` to each float of its argument. `traits` is what it
// declares.
std::string AddConstantHandler(const std::string& symbol, int constant, int traits = 0);

}  // namespace kernix::testing
