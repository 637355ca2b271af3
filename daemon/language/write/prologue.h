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

#include "absl/container/flat_hash_set.h"
#include "common/base/digest.h"

namespace kernix::language {

// A header that comes with the sources.
struct PrologueHeader {
  std::string_view path;  // as sources include it
  std::string_view text;
};

// Names in our headers that a macro would hit.
using OurNames = absl::flat_hash_set<std::string_view>;

// The standard names that texts use. Holds the tokens of one text at a time in memory.
class PrologueScan {
 public:
  // The headers that come with the sources of a request, in any order. If a text defines a macro of `ours` (null: no
  // names), which must outlive this, then our headers that the texts include come first.
  explicit PrologueScan(const std::vector<PrologueHeader>& headers = {}, const OurNames* ours = nullptr);
  PrologueScan(const PrologueScan& other);
  ~PrologueScan();

  void Add(std::string_view text);
  std::string Text() const;

 private:
  class Uses;
  std::unique_ptr<Uses> uses_;
};

// The defines (KERNIX_USES_...) and includes for the sources of a unit, in any order, and the headers that come with
// them. The units of a request share the scan of the headers. If a text includes a header by an absolute path, that
// header may use anything, so everything is included.
std::string Prologue(const std::vector<std::string_view>& sources, PrologueScan scan = PrologueScan());

// Identifies the code that reads texts for the prologue.

// A digest over the sources of prologue.cc and of the code that it reads texts with, computed by the build. Together
// with the texts' digests, it represents the prologue when the texts are not available.
const Digest& PrologueSourcesDigest();

}  // namespace kernix::language
