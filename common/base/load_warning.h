// SPDX-License-Identifier: Apache-2.0
//
// The warnings of a load by name. Users switch one off with KERNIX_WARNINGS=no-<name>. docs/python.md describes each.
#pragma once

#include <array>
#include <string_view>

namespace kernix::warning {

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

}  // namespace kernix::warning
