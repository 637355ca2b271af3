// SPDX-License-Identifier: Apache-2.0
//
// What a kernel spills: read from its machine code, and the warning about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernix/inspection.h"

namespace kernix {

// Bytes for each thread, summed over the instructions.
struct Spills {
  uint64_t stored = 0;
  uint64_t loaded = 0;
};

// `code` is the kernel's machine code, `marks` the content of its attribute EIATTR_ANNOTATIONS. Nullopt if the marks
// are of a kind that is not known, or do not fit the code.
std::optional<Spills> SpillsOf(std::string_view code, std::string_view marks);

// The text of the warning register-spills about the module `name`, or nullopt if none of its kernels is known to spill.
std::optional<std::string> SpillWarning(const std::string& name, const std::vector<KernelResources>& kernels);

}  // namespace kernix
