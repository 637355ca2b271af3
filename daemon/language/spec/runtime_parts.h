// SPDX-License-Identifier: Apache-2.0
//
// The parts of CUDA's cuda_runtime.h that a unit may do without. Reading the whole header costs nvcc's phases several
// times what a small kernel itself does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace kernix::language {

enum class RuntimePart : uint8_t {
  kTraits,      // <type_traits>
  kLimits,      // <limits>
  kAlgorithms,  // std::min, std::copy and its like
  kVectors,     // make_float4 and its like
  kChannels,    // cudaCreateChannelDesc<T>
  kMaths,       // <cmath> and CUDA's mathematical functions
  kAtomics,     // atomicAdd and its like
  kIntrinsics,  // of a warp (shuffles, votes) and of newer architectures
  kLoads,       // __ldg and its like
  kTextures,    // textures and surfaces
  kTemplates,   // the runtime API's templates (cudaLaunchKernelEx, cudaMalloc<T>, ...) and <utility>
};

// A set of parts.
class RuntimeParts {
 public:
  constexpr RuntimeParts() = default;
  constexpr RuntimeParts(RuntimePart part) : bits_(1u << static_cast<unsigned>(part)) {}  // NOLINT: a set of one
  static constexpr RuntimeParts FromBits(uint32_t bits) {
    RuntimeParts parts;
    parts.bits_ = bits;
    return parts;
  }

  constexpr uint32_t bits() const { return bits_; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool Has(RuntimeParts others) const { return (bits_ & others.bits_) == others.bits_; }
  constexpr RuntimeParts operator|(RuntimeParts other) const { return FromBits(bits_ | other.bits_); }
  constexpr bool operator==(const RuntimeParts&) const = default;

 private:
  uint32_t bits_ = 0;
};

struct RuntimePartRow {
  RuntimePart part;
  std::string_view name;    // for messages
  std::string_view guards;  // the include guards of the headers that are this part
  // Whether the rest of cuda_runtime.h includes these headers, so that the guards have to be defined to leave them out.
  bool guarded = true;
};

absl::Span<const RuntimePartRow> RuntimePartTable();

// Guards of headers that are in no part, and never read with a stand-in: names from them take the whole header.
inline constexpr std::string_view kNeverReadGuards = "_GLIBCXX_BITS_SPECFUN_H";

// Guards of headers that are always read.
inline constexpr std::string_view kAlwaysReadGuards =
    "__HOST_CONFIG_H__ __DEVICE_TYPES_H__ __DRIVER_TYPES_H__ __SURFACE_TYPES_H__ __TEXTURE_TYPES_H__ "
    "__VECTOR_TYPES_H__ __LIBRARY_TYPES_H__ __CUDA_RUNTIME_API_H__ __CUDA_DEVICE_RUNTIME_API_H__ "
    "__DRIVER_FUNCTIONS_H__ __HOST_DEFINES_H__ __COMMON_FUNCTIONS_H__ __DEVICE_FUNCTIONS_H__ "
    "__DEVICE_LAUNCH_PARAMETERS_H__ __DEVICE_DOUBLE_FUNCTIONS_H__";

// All parts. The whole header has more than these.
RuntimeParts AllRuntimeParts();

// "atomics, maths"; empty for none.
std::string PartNames(RuntimeParts parts);

}  // namespace kernix::language
