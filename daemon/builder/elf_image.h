// SPDX-License-Identifier: Apache-2.0
//
// What an ELF shared object says of itself: what it exports, and which symbol versions it needs. Reads every byte with
// its bounds checked: the file was made by a compiler that a user's text had in its hands.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"

namespace kernix::build {

class ElfImage {
 public:
  // A view of `bytes`, which must outlive it. kInvalidArgument unless it is a shared object for x86-64.
  static absl::StatusOr<ElfImage> Parse(std::string_view bytes);

  // The names of the symbols that dlsym(3) finds. kDataLoss when the tables make no sense, here and below.
  absl::StatusOr<absl::flat_hash_set<std::string>> ExportedSymbols() const;

  // "GLIBC_2.34", "GLIBCXX_3.4.30", ...: all that it needs, in the order of the file.
  absl::StatusOr<std::vector<std::string>> NeededVersions() const;

 private:
  struct Section {
    uint32_t type = 0;
    uint32_t link = 0;  // the section with its strings
    uint32_t count = 0;
    std::string_view bytes;
  };

  const Section* FindSection(uint32_t type) const;
  absl::StatusOr<std::string_view> Strings(const Section& section) const;

  std::vector<Section> sections_;
};

// Of each family (the part before the last "_") of the C and C++ runtime the newest one, sorted.
std::vector<std::string> NewestRuntimeVersions(const std::vector<std::string>& versions);

}  // namespace kernix::build
