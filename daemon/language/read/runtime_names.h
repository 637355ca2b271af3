// SPDX-License-Identifier: Apache-2.0
//
// Decides by names whether a CUDA unit means the same with parts of cuda_runtime.h as with all of it.
//
// What the whole header declares and a stand-in (write/slim_runtime.h) does not can change a unit only if the unit uses
// one of its names: a function is found by its name, a member through the name of its class, a specialisation through
// the name of its template. A unit may therefore be compiled with the stand-in if none of its tokens is such a name.
// Doubt always means the whole header. That is also the answer for what does not compile with a stand-in.
//
// A build guesses the parts from the sources, preprocesses with that stand-in, and chooses with what it has read. If
// there are parts to add, it does so again with these. The answer is certain when there are none.
//
// What is left out, and why that is safe:
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
#include "daemon/language/spec/runtime_parts.h"

namespace kernix::language {

// What the host compiler writes for an empty unit (see kRuntimeTextFlag), in one pass: the host's, or that of an
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
  // files that the full texts name (FilesOf()). FAILED_PRECONDITION, with what was found, if the texts differ
  // in a way that names cannot tell, or are not those of a known toolkit: take the whole header then.
  static absl::StatusOr<RuntimeNames> Read(const std::vector<RuntimeTexts>& passes, RuntimeParts parts,
                                           const std::vector<std::string_view>& headers);

  // Adds what a stand-in of the same parts lacks in other passes.
  void Add(const RuntimeNames& other);

  // Both ways for a store. INVALID_ARGUMENT if `text` is not what ToText() returned.
  std::string ToText() const;
  static absl::StatusOr<RuntimeNames> FromText(std::string_view text);

  const Table& table() const { return table_; }

  // Parts that the headers of the stand-in use themselves, and every unit takes with it.
  RuntimeParts needed() const { return needed_; }

  // What `name` takes; nothing for a name that the stand-in declares as the whole header does, or that nobody declares.
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

// The files that a preprocessed text was made from, in the order of their first lines.
std::vector<std::string> FilesOf(std::string_view preprocessed);

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
  std::string_view label;
  std::string_view text;
  Kind kind = Kind::kUser;
};

// What a unit consists of.
struct UnitTexts {
  // As they are written: the sources, the unit that kernixd writes, macros that flags define (as text), and every
  // header that the unit includes besides those of the stand-in.
  std::vector<UnitText> written;
  // What the preprocessor makes of the unit with the stand-in, in each pass. Without it the answer is a guess: it tells
  // which stand-in to preprocess with. Branches that are not compiled count then, and names that `##` makes do not.
  std::vector<std::string_view> preprocessed;
  // What a file is that a preprocessed text names; nullopt for a file of the stand-in.
  std::function<std::optional<UnitText::Kind>(std::string_view file)> kind_of;
};

// What a unit is to be compiled with.
struct RuntimeChoice {
  bool full = false;   // the whole header
  std::string why;     // if `full`: "k.cu:12: std::vector"
  RuntimeParts parts;  // to add to the stand-in that the names are for; none if it fits
};

// Linear in the size of the texts.
RuntimeChoice ChooseRuntime(const RuntimeNames& names, const UnitTexts& texts);

}  // namespace kernix::language
