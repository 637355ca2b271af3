// SPDX-License-Identifier: Apache-2.0
//
// Shared by the client's tests: scratch folders, a real compiler, handlers.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/paths.h"

namespace kernix::testing {

// A new folder, removed on destruction.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view relative) const { return JoinPath(path_, relative); }

  // Writes a file, creates its folders, and returns its path. The file can be executed as a program.
  std::string Write(std::string_view relative, std::string_view text) const;
  std::string WriteProgram(std::string_view relative) const;

 private:
  std::string Put(std::string_view relative, std::string_view text, mode_t mode) const;
  std::string path_;
};

// An environment that contains only these variables.
GetEnv Variables(std::map<std::string, std::string> variables);

// The root of the source tree, for kernix's own headers.
std::string SourceRoot();

// This machine's C++ compiler.
std::string HostCompiler();

// Compiles `source` to the shared library `output` with additional `flags`. If that fails, the test fails with the
// compiler's output.
void CompileLibrary(const std::string& source, const std::string& output, const std::vector<std::string>& flags = {});

// C++ source of an XLA FFI handler named `symbol` that adds `constant` to each float of its argument and declares
// `traits`.
std::string AddConstantHandler(const std::string& symbol, int constant, int traits = 0);

}  // namespace kernix::testing
