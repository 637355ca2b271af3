// SPDX-License-Identifier: Apache-2.0
//
// Which instructions of a kernel's machine code move registers to and from local memory because registers are lacking.
// ptxas marks them from CUDA 12.6 on. NVIDIA does not document the marks. Tests compare the result with ptxas's report.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kernix {

// Bytes for each thread, summed over the instructions.
struct Spills {
  uint64_t stored = 0;
  uint64_t loaded = 0;
};

// `code` is the kernel's machine code, `marks` the content of its attribute EIATTR_ANNOTATIONS. Nullopt if the marks
// are of a kind that is not known, or do not fit the code.
std::optional<Spills> SpillsOf(std::string_view code, std::string_view marks);

}  // namespace kernix
