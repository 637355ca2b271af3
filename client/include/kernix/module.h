// SPDX-License-Identifier: Apache-2.0
//
// A compiled kernel library, opened in this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

struct XLA_FFI_Error;
struct XLA_FFI_CallFrame;

namespace kernix {

// An XLA FFI handler (XLA's xla/ffi/api/c_api.h). Returns NULL for success.
using Handler = XLA_FFI_Error* (*)(XLA_FFI_CallFrame*);

// The same with the name that its errors should begin with. The name must stay valid during the call.
using NamedHandler = XLA_FFI_Error* (*)(XLA_FFI_CallFrame*, const char* module);

enum class Language { kCpp = 1, kCuda = 2 };  // the numbers of kernix.v1.Language

// A translation unit as the daemon compiled it.
struct GeneratedUnit {
  std::vector<std::string> sources;  // the labels of its sources
  Language language = Language::kCpp;
  std::string text;
};

// A text that LoadOptions::keep has kept, for one unit and one architecture ("sm_90").
struct KeptText {
  enum class Kind {  // the numbers of kernix.v1.KeptText.Kind
    kPtx = 1,
    kSass,       // as nvdisasm prints it; absent if there was no nvdisasm beside nvcc
    kResources,  // the output of `ptxas -v`
  };
  Kind kind = Kind::kPtx;
  size_t unit = 0;  // index into ModuleTexts::units
  std::string architecture;
  std::string text;
};

// The texts for people to read that an artifact carries.
struct ModuleTexts {
  // The source that the daemon compiled: one unit, or with LoadOptions::separate one per source.
  std::vector<GeneratedUnit> units;
  // Sorted by unit, in their order, then by architecture. Empty without LoadOptions::keep. See kernix/inspection.h.
  std::vector<KeptText> kept;
  // The compilers' output about the sources at their build: warnings.
  std::string compiler_output;
};

// The meaning of a function's token for its callers.
struct Parameter {
  enum class Role {  // the numbers of kernix.v1.Parameter.Role
    kArgument = 1,
    kResult,
    kAttribute,
    kArgumentToken,  // an XLA token, which orders side effects
    kResultToken,
    kProvided,  // by XLA or kernix: the stream, scratch memory, the device's ordinal
  };
  Role role = Role::kProvided;
  std::string name;         // of the attribute, or of the C++ parameter for arrays; empty if it is not known
  std::string type;         // "float32", for attributes also "int64[]" and "string"; empty for arrays of any type
  std::optional<int> rank;  // number of dimensions of an array; nullopt: any
  bool optional = false;    // a call may leave it out
  bool variadic = false;    // any number of arrays
};

struct FunctionInfo {
  std::string name;
  std::vector<std::string> tokens;       // canonical arg_spec
  std::vector<Parameter> parameters;     // the meaning of each token
  Handler handler = nullptr;             // probed: it answers XLA's metadata query
  NamedHandler named_handler = nullptr;  // does the same; its errors name the module
  uint32_t traits = 0;                   // bit 0: command-buffer compatible
  // A __global__ function. Its handler launches it, and takes the attributes `grid` and `block` (an int64_t or up to
  // three), and perhaps `shared` (bytes) and `cluster`.
  bool is_global = false;
};

// Where the artifact of a load comes from.
enum class Origin {
  kBuilt,
  kJoined,  // a build that another load had started
  kCache,
  kUpstream,  // another node had built it, and this host's daemon has just fetched it from its upstream
  kBundle,
  kFile,  // that LoadLibrary() has opened
};

// "built", "joined", "cache", "upstream", "bundle" or "file".
std::string_view OriginName(Origin origin);

// Stays open until the process ends, because XLA may keep its handlers. Immutable, thread-safe.
class Module {
 public:
  virtual ~Module() = default;

  virtual const std::string& name() const = 0;
  // The language that the module was loaded with.
  virtual Language language() const = 0;
  // The path at which this load found the artifact. If the process had opened the artifact before, it uses that path.
  virtual const std::string& path() const = 0;
  // The functions, in the order of the request (or of the annotations in the source).
  virtual const std::vector<FunctionInfo>& functions() const = 0;
  // NOT_FOUND lists the existing functions.
  virtual absl::StatusOr<Handler> handler(std::string_view function) const = 0;
  // SHA-256, hexadecimal, of everything that can change the artifact.
  virtual const std::string& key() const = 0;
  virtual const std::string& artifact_digest() const = 0;
  virtual Origin origin() const = 0;
  // Whether the load waited for no build.
  bool cache_hit() const { return origin() != Origin::kBuilt && origin() != Origin::kJoined; }
  virtual uint64_t build_ms() const = 0;
  // Why the load needed a build, for people: "header x.h changed". Compares with this user's loads under the module's
  // name. Empty for a hit.
  virtual const std::string& miss_reason() const = 0;
  // The bytes of the artifact, an ELF shared object. They remain when the file is evicted from the cache.
  virtual std::string_view artifact() const = 0;
  // Read from the artifact by each call. Returns a LOAD error if the artifact is damaged.
  virtual absl::StatusOr<ModuleTexts> texts() const = 0;
};

}  // namespace kernix
