// SPDX-License-Identifier: Apache-2.0
//
// Generates what a translation unit includes before the user's text. Kernels rely on headers that XLA's ffi.h used to
// include. The names in a kernel's text tell which of these it really uses; including all of them would cost more than
// compiling the kernel.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kernix::language {

// The defines (KERNIX_USES_...) and includes for `texts`: the sources of a unit and the headers that come with them, in
// any order. If a text includes a header by an absolute path, that header may use anything, so everything is included.
// Holds the tokens of one text at a time in memory.
std::string Prologue(const std::vector<std::string_view>& texts);

// The same, text by text. Several units may continue from a copy of the scan of their shared texts.
class PrologueScan {
 public:
  PrologueScan();
  PrologueScan(const PrologueScan& other);
  ~PrologueScan();

  void Add(std::string_view text);
  std::string Text() const;

 private:
  class Uses;
  std::unique_ptr<Uses> uses_;
};

}  // namespace kernix::language
