// SPDX-License-Identifier: Apache-2.0
//
// What client and daemon both know of loads: what one may ask for, and the names of its warnings. All checks return
// INVALID_REQUEST for anything else.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace kernix {

// Whether `name` can name a module. Lists and logs show the name, and files are named after it.
absl::Status CheckModuleName(std::string_view name);

// The highest optimization_level of a request, for host and device code alike. The lowest is 0.
inline constexpr int kMaxOptimizationLevel = 3;

absl::Status CheckOptimizationLevel(int64_t level);

// The warnings of a load by name. Users switch one off with KERNIX_WARNINGS=no-<name>. docs/python.md describes each.
namespace warning {

inline constexpr std::string_view kCudaWithoutStream = "cuda-without-stream";
inline constexpr std::string_view kOnlyResults = "only-results";
inline constexpr std::string_view kHiddenFunction = "hidden-function";
inline constexpr std::string_view kCudaHome = "cuda-home";
inline constexpr std::string_view kVariableWithoutEffect = "variable-without-effect";
inline constexpr std::string_view kMissingIncludePath = "missing-include-path";
inline constexpr std::string_view kRegisterSpills = "register-spills";
inline constexpr std::string_view kNotInBundle = "not-in-bundle";
inline constexpr std::string_view kBuildAfterFreeze = "build-after-freeze";
inline constexpr std::string_view kHistoryNotKept = "history-not-kept";

inline constexpr std::array kNames = {kCudaWithoutStream,     kOnlyResults,        kHiddenFunction, kCudaHome,
                                      kVariableWithoutEffect, kMissingIncludePath, kRegisterSpills, kNotInBundle,
                                      kBuildAfterFreeze,      kHistoryNotKept};

}  // namespace warning

}  // namespace kernix
