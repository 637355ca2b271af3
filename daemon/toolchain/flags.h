// SPDX-License-Identifier: Apache-2.0
//
// Which flags may pass to the compilers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/env.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::toolchain {

enum class FlagPolicy {
  kPerUser,  // the daemon runs as the user: what the build's own mechanics rely on is refused (-o, -c, -E, -M*, ...)
  kShared,   // also what runs code or reads files outside the request (-fplugin, -B, -specs, -wrapper, @file, -ccbin, ...)
};

struct CheckedFlags {
  std::vector<std::string> compile;  // with -march=native and the like replaced by what they stand for
  std::vector<std::string> link;
};

// INVALID_REQUEST that names the flag, why, and what to use instead.
absl::StatusOr<CheckedFlags> CheckFlags(Env& env, const Toolchain& toolchain, v1::Language language, FlagPolicy policy,
                                        const std::vector<std::string>& compile_flags,
                                        const std::vector<std::string>& link_flags);

// "sm_86", "8.6", "86", "sm_90a" -> "sm_86"... Sorted by number, no doubles. INVALID_REQUEST when unreadable; TOOLCHAIN when this
// toolkit cannot compile for one (naming what it can).
absl::StatusOr<std::vector<std::string>> CheckArchitectures(const CudaToolkit& cuda,
                                                            const std::vector<std::string>& architectures);

}  // namespace kernix::toolchain
