// SPDX-License-Identifier: Apache-2.0
//
// Reads the fat binaries that nvcc embeds in a library: for each unit the machine code of each architecture, and PTX.
// NVIDIA does not document the format. The reader checks the bounds of every read, because a compiler may have produced
// the file from a hostile user's source.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kernix {

// The machine code of one unit for one architecture.
struct MachineCode {
  std::string architecture;  // "sm_90", "sm_90a"
  std::string_view bytes;    // a cubin, unless it is compressed
  bool compressed = false;
};

// The machine code in `section`, the content of a library's section .nv_fatbin, in file order. Skips PTX. Returns
// kDataLoss if an entry does not end where it should.
absl::StatusOr<std::vector<MachineCode>> MachineCodeIn(std::string_view section);

}  // namespace kernix
