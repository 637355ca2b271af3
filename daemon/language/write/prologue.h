// SPDX-License-Identifier: Apache-2.0
//
// What a translation unit includes before the user's text. Kernels rely on headers that XLA's ffi.h used to include;
// those few headers that a kernel really uses are found by the names in its text, since including them all would cost
// more than compiling the kernel.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kernix::language {

// Defines (KERNIX_USES_...) and includes for `texts`: the sources of a unit and the headers that they bring, in any
// order. A header that an absolute path names may use anything: everything is included then. Takes memory for the
// tokens of one text at a time.
std::string Prologue(const std::vector<std::string_view>& texts);

// The same, text by text. Several units may go on from a copy of what they share.
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
