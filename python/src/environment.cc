// SPDX-License-Identifier: Apache-2.0
#include "python/src/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace kernix::python {

namespace {

// Beginnings of "NAME=value". They say where tools and headers are found, which GPU is the first, which daemon and
// store are used.
constexpr std::array<std::string_view, 20> kPrefixes = {
    "BRAINEVENT_",
    "COMPILER_PATH=",
    "CONDA_PREFIX=",
    "CPATH=",
    "CPLUS_INCLUDE_PATH=",
    "CUDAHOSTCXX=",
    "CUDA_",
    "CXX=",
    "C_INCLUDE_PATH=",
    "GCC_",
    "HOME=",
    "KERNIXD=",
    "KERNIX_",
    "LD_LIBRARY_PATH=",
    "LIBRARY_PATH=",
    "NVCC_",
    "PATH=",
    "SOURCE_DATE_EPOCH=",
    "TMPDIR=",
    "XDG_",
};

bool Counts(std::string_view variable) {
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

}  // namespace

std::string EnvironmentFingerprint() {
  std::string fingerprint;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (Counts(text)) fingerprint.append(text).push_back('\0');
  }
  return fingerprint;
}

}  // namespace kernix::python
