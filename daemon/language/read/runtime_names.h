// SPDX-License-Identifier: Apache-2.0
//
// Decides by names whether a CUDA unit means the same with parts of cuda_runtime.h as with all of it.
//
// A declaration that the whole header has and a stand-in (below) lacks can change a unit only if the unit uses its
// name: a function is found by its name, a member through the name of its class, a specialisation through the name of
// its template. A unit may therefore be compiled with the stand-in if none of its tokens is such a name. Doubt always
// means the whole header. The same holds for a unit that does not compile with a stand-in.
//
// A build guesses the parts from the sources, preprocesses with that stand-in, and chooses by the preprocessed text. If
// there are parts to add, it does so again with these. The answer is certain when there are none.
//
// What the check leaves out, and why that is safe:
// - members, parameters, names inside of functions: they are not found from outside of their class or function;
// - the order of declarations: a header that the unit includes by itself may declare later what the whole header
//   declares first, and the same things are declared in the end;
// - operators: each has an operand of a class that only the whole header declares (Read() checks that);
// - functions of namespace std that are found by the type of an argument: such a type has a name in std, and a text
//   that has `std` counts for what it calls.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace kernix::language {

// The parts of CUDA's cuda_runtime.h that a unit may do without. Reading the whole header costs nvcc's phases several
// times what a small kernel itself does.
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

// The host compiler's output for an empty unit (see kRuntimeTextFlag), in one pass: the host's, or that of an
// architecture.
struct RuntimeTexts {
  std::string_view full;  // with the toolkit's own header
  std::string_view slim;  // with the stand-in
};

// The names whose declarations a stand-in lacks. Immutable; any thread may read it.
class RuntimeNames {
 public:
  // What a name takes: parts, or kWhole for the whole header.
  static constexpr uint32_t kWhole = 1u << 31;
  struct Takes {
    uint32_t macro = 0;   // as a macro: wherever the name stands
    uint32_t global = 0;  // as a name that is declared outside of the standard library's namespaces
    uint32_t std = 0;     // as one that is declared in these
    // As a function of the host's libraries that CUDA declares once more, for devices.
    uint32_t redeclared = 0;
    bool operator==(const Takes&) const = default;
  };
  struct HashOfName {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  using Table = absl::flat_hash_map<std::string, Takes, HashOfName, std::equal_to<>>;

  // `passes`: of all passes that a unit goes through. `parts`: those of the stand-in. `headers`: the contents of the
  // files that the full texts name. FAILED_PRECONDITION, with what was found, if the texts differ
  // in a way that names cannot tell, or are not those of a known toolkit: take the whole header then.
  static absl::StatusOr<RuntimeNames> Read(const std::vector<RuntimeTexts>& passes, RuntimeParts parts,
                                           const std::vector<std::string_view>& headers);

  // Adds the names that a stand-in of the same parts lacks in other passes.
  void Add(const RuntimeNames& other);

  // Both ways for a store. INVALID_ARGUMENT if `text` is not what ToText() returned.
  std::string ToText() const;
  static absl::StatusOr<RuntimeNames> FromText(std::string_view text);

  const Table& table() const { return table_; }

  // Parts that the headers of the stand-in use themselves, and every unit takes with it.
  RuntimeParts needed() const { return needed_; }

  // The need of `name`; none for a name that the stand-in declares as the whole header does, or that nobody declares.
  Takes Find(std::string_view name) const;

  // Whether a macro of this name, defined before the runtime header, might change that header. Sometimes true for one
  // that would not.
  bool MayChangeHeaders(std::string_view macro) const;

  bool operator==(const RuntimeNames&) const = default;

 private:
  Table table_;
  RuntimeParts needed_;
  std::vector<uint32_t> words_;  // hashes of all names in the headers, sorted
};

struct UnitText {
  enum class Kind : uint8_t {
    kUser,  // and whatever is not one of these:
    // One of CUDA's headers. What their macros put together for conditions are names of their own.
    kToolkit,
    // One of kernix's own headers, which call functions of namespace std by their full names only.
    kKernix,
    // A header of the host compiler or of the C library. It includes what it uses, so it means the same wherever it is
    // read, except for functions that CUDA declares once more.
    kLibrary,
  };
  std::string_view text;
  Kind kind = Kind::kUser;
};

// The texts of a unit.
struct UnitTexts {
  // As they are written: the sources, the unit that kernixd writes, macros that flags define (as text), and every
  // header that the unit includes besides those of the stand-in.
  std::vector<UnitText> written;
  // The preprocessor's output for the unit with the stand-in, in each pass. Without it the answer is a guess: it tells
  // which stand-in to preprocess with. Branches that are not compiled count then, and names that `##` makes do not.
  std::vector<std::string_view> preprocessed;
  // The kind of a file that a preprocessed text names; nullopt for a file of the stand-in.
  std::function<std::optional<UnitText::Kind>(std::string_view file)> kind_of;
};

// The header to compile a unit with.
struct RuntimeChoice {
  bool full = false;   // the whole header
  RuntimeParts parts;  // to add to the stand-in that the names are for; none if it fits
  // Whether the unit can have objects of types of namespace std. Messages about an operator then list those of std that
  // the whole header declares, though they are not for such types.
  bool has_std = false;
};

// Linear in the size of the texts.
RuntimeChoice ChooseRuntime(const RuntimeNames& names, const UnitTexts& texts);

// The text of a header `cuda_runtime.h` that includes the toolkit's headers for types, runtime API and launches, and
// `parts`, in the order of the toolkit's cuda_runtime.h. The compiler must find it before the toolkit's header; its
// folder must be the last one before the toolkit's, with nothing between. Works for the host's pass and for a device's.
// With -g or -G, use the whole header: debug information lists what nobody uses.
std::string SlimRuntimeHeader(RuntimeParts parts);

// Macros for the host compiler when it compiles what cudafe++ has written with such a header: that text includes
// crt/host_runtime.h, which would bring definitions of mathematical functions without their declarations.
std::vector<std::string> HostRuntimeDefinitions(RuntimeParts parts);

// RuntimeNames reads the output of nvcc's own preprocessing command of a pass (the host's, or that of an architecture,
// from its dry run) for the unit kRuntimeProbe, with kRuntimeTextFlag: once as it is, and once with the folder of a
// stand-in. Macros and include folders of the user must not be in that command.
inline constexpr char kRuntimeTextFlag[] = "-dD";
inline constexpr char kRuntimeProbe[] = "int kernix_counter = __COUNTER__;\n";  // tells how far headers have counted

}  // namespace kernix::language
