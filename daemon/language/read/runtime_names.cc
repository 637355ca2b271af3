// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/runtime_names.h"

#include <algorithm>
#include <deque>
#include <map>
#include <sstream>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "common/base/strings.h"
#include "common/cxx/lexer.h"
#include "daemon/language/read/declarations.h"
#include "daemon/language/spec/words.h"

namespace kernix::language {
namespace {

constexpr RuntimePartRow kTable[] = {
    {RuntimePart::kTraits, "_GLIBCXX_TYPE_TRAITS", /*guarded=*/false},
    {RuntimePart::kLimits, "_GLIBCXX_NUMERIC_LIMITS", /*guarded=*/false},
    {RuntimePart::kAlgorithms,
     "_STL_ALGOBASE_H _STL_ITERATOR_H _STL_ITERATOR_BASE_TYPES_H _STL_ITERATOR_BASE_FUNCS_H _PTR_TRAITS_H "
     "_FUNCTEXCEPT_H _EXCEPTION_DEFINES_H _GLIBCXX_PREDEFINED_OPS_H _GLIBCXX_DEBUG_MACRO_SWITCH_H "
     "_GLIBCXX_DEBUG_ASSERTIONS_H",
     /*guarded=*/false},
    {RuntimePart::kVectors, "__VECTOR_FUNCTIONS_H__"},
    {RuntimePart::kChannels, "__CHANNEL_DESCRIPTOR_H__"},
    {RuntimePart::kMaths, "__MATH_FUNCTIONS_H__ __DEVICE_FUNCTIONS_HPP__"},
    {RuntimePart::kAtomics,
     "__DEVICE_ATOMIC_FUNCTIONS_H__ __SM_20_ATOMIC_FUNCTIONS_H__ __SM_32_ATOMIC_FUNCTIONS_H__ "
     "__SM_35_ATOMIC_FUNCTIONS_H__ __SM_60_ATOMIC_FUNCTIONS_H__"},
    {RuntimePart::kIntrinsics,
     "__SM_20_INTRINSICS_H__ __SM_30_INTRINSICS_H__ __SM_61_INTRINSICS_H__ "
     "__SM_70_RT_H__ __SM_80_RT_H__ __SM_90_RT_H__ __SM_100_RT_H__"},
    {RuntimePart::kLoads, "__SM_32_INTRINSICS_H__ __SM_35_INTRINSICS_H__"},
    {RuntimePart::kTextures, "__TEXTURE_INDIRECT_FUNCTIONS_H__ __SURFACE_INDIRECT_FUNCTIONS_H__"},
    {RuntimePart::kTemplates,
     "__CUDA_RUNTIME_H__ _GLIBCXX_UTILITY _GLIBCXX_UTILITY_H _STL_RELOPS_H _STL_PAIR_H _MOVE_H "
     "_EXT_NUMERIC_TRAITS _CONCEPT_CHECK_H _COMPARE",
     /*guarded=*/false},
};

}  // namespace

absl::Span<const RuntimePartRow> RuntimePartTable() { return kTable; }

namespace {

constexpr uint32_t kWhole = RuntimeNames::kWhole;
constexpr uint32_t kAlwaysRead = 1u << 30;
constexpr std::string_view kCounter = "kernix_counter";  // of kRuntimeProbe
constexpr std::string_view kFormat = "kernix-runtime-names-1";

// FNV-1a: the same in every process, since it is stored.
uint32_t HashOf(std::string_view word) {
  uint32_t hash = 2166136261u;
  for (const char c : word) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

OriginOf OriginsByGuard() {
  absl::flat_hash_map<std::string_view, uint32_t> origins;
  for (const RuntimePartRow& row : RuntimePartTable()) {
    for (std::string_view guard : Words(row.guards)) origins[guard] = RuntimeParts(row.part).bits();
  }
  for (std::string_view guard : Words(kNeverReadGuards)) origins[guard] = kWhole;
  for (std::string_view guard : Words(kAlwaysReadGuards)) origins[guard] = kAlwaysRead;
  return [origins = std::move(origins)](std::string_view macro) {
    const auto found = origins.find(macro);
    return found == origins.end() ? 0 : found->second;
  };
}

// The need of a name that only the whole header declares, there at `origin`.
uint32_t Needed(uint32_t origin, RuntimeParts present) {
  const bool is_part = origin != 0 && (origin & (kWhole | kAlwaysRead)) == 0;
  const bool is_there = is_part && present.Has(RuntimeParts::FromBits(origin));
  return is_part && !is_there ? origin : kWhole;
}

bool IsStandardNamespace(std::string_view scope) {
  const std::string_view first = scope.substr(0, scope.find(':'));
  return first == "std" || first.starts_with("__");
}

std::string Listed(const std::vector<std::string_view>& words) {
  std::string text;
  for (std::string_view word : words) StrAppend(&text, " ", word);
  return text;
}

// Compares the two texts of one pass.
class Comparison {
 public:
  Comparison(const Declarations& full, const Declarations& slim, RuntimeParts present, RuntimeNames::Table& table)
      : full_(full), slim_(slim), present_(present), table_(table) {}

  // The needs of the headers that the stand-in reads.
  uint32_t needed() const { return needed_; }

  // Empty, or what names cannot tell.
  std::string Compare() {
    NoteFull();
    absl::flat_hash_set<uint64_t> in_slim;
    for (const Declaration& declaration : slim_.list) {
      in_slim.insert(declaration.digest);
      if (!origins_.contains(declaration.digest)) Add(declaration, kWhole);
    }
    for (const Declaration& declaration : full_.list) {
      if (!in_slim.contains(declaration.digest)) Add(declaration, origins_[declaration.digest]);
    }
    CompareMacros();
    CheckBodies();
    return problem_;
  }

 private:
  void NoteFull() {
    for (const Declaration& declaration : full_.list) {
      // The same declaration may come again: it takes any of its parts.
      uint32_t& origin = origins_[declaration.digest];
      if (origin == 0 || origin == kWhole) origin = Needed(declaration.origin, present_);
      if (declaration.is_for_devices) continue;
      for (std::string_view name : declaration.names) of_libraries_.insert(StrCat(declaration.scope, "::", name));
    }
  }

  void Add(const Declaration& declaration, uint32_t needed) {
    using Kind = Declaration::Kind;
    const bool is_std = IsStandardNamespace(declaration.scope);
    switch (declaration.kind) {
      case Kind::kNothing:
        return;
      case Kind::kAllocation:
        table_["new"].global |= needed;
        table_["delete"].global |= needed;
        return;
      case Kind::kUsingNamespace:
        if (declaration.scope.empty()) problem_ = "a using-directive";
        return;
      case Kind::kOperator:
        operators_.push_back(&declaration);
        return;
      case Kind::kNames:
        break;
    }
    for (std::string_view name : declaration.names) {
      RuntimeNames::Takes& takes = table_[std::string(name)];
      (is_std ? takes.std : takes.global) |= needed;
      const bool again = declaration.is_for_devices && of_libraries_.contains(StrCat(declaration.scope, "::", name));
      if (again) takes.redeclared |= needed;
    }
  }

  void CompareMacros() {
    for (const auto& [name, definition] : full_.macros) {
      const auto other = slim_.macros.find(name);
      if (other == slim_.macros.end()) {
        table_[std::string(name)].macro |= Needed(definition.origin, present_);
      } else if (other->second.digest != definition.digest) {
        table_[std::string(name)].macro |= kWhole;
      }
    }
    for (const auto& [name, definition] : slim_.macros) {
      if (!full_.macros.contains(name)) table_[std::string(name)].macro |= kWhole;
    }
  }

  // The headers that the stand-in reads must not use such names, either; an operator must have an operand that only the
  // whole header declares.
  void CheckBodies() {
    for (const Declaration* declaration : operators_) {
      if (!IsBehindName(*declaration)) problem_ = StrCat("an operator on", Listed(declaration->names));
    }
    for (const Declaration& declaration : slim_.list) CheckBody(declaration);
  }

  // Whether an operator is reached only through a name of the table: of an operand's class, or of a namespace.
  bool IsBehindName(const Declaration& declaration) const {
    const auto missing = [this](std::string_view name) { return table_.contains(name); };
    const std::string_view scope = declaration.scope;
    return std::any_of(declaration.names.begin(), declaration.names.end(), missing) ||
           missing(scope.substr(scope.rfind(':') + 1));
  }

  void CheckBody(const Declaration& declaration) {
    const bool is_library = IsStandardNamespace(declaration.scope);
    const bool has_std = std::find(declaration.body.begin(), declaration.body.end(), "std") != declaration.body.end();
    for (std::string_view name : declaration.body) {
      const auto found = table_.find(name);
      if (found == table_.end()) continue;
      const RuntimeNames::Takes& takes = found->second;
      const uint32_t counts = is_library ? takes.redeclared : takes.global | (has_std ? takes.std : 0);
      if ((counts & kWhole) != 0) problem_ = StrCat("a header that is read uses ", name);
      needed_ |= counts;
    }
  }

  const Declarations& full_;
  const Declarations& slim_;
  const RuntimeParts present_;
  RuntimeNames::Table& table_;
  absl::flat_hash_map<uint64_t, uint32_t> origins_;  // of declarations of the whole header, by digest
  absl::flat_hash_set<std::string> of_libraries_;    // names with their scopes
  std::vector<const Declaration*> operators_;
  std::string problem_;
  uint32_t needed_ = 0;
};

// The names in the directives of a header: what it asks for may be in no output.
void AddDirectiveWords(std::string_view header, std::vector<uint32_t>& words) {
  std::deque<std::string> storage;
  Lexer lexer(header, storage);
  for (Token token; lexer.NextInDirective(token);) {
    if (token.IsIdentifier()) words.push_back(HashOf(token.text));
  }
}

bool HasProbe(const Declarations& declarations) {
  return std::any_of(declarations.list.begin(), declarations.list.end(), [](const Declaration& declaration) {
    return declaration.names.size() == 1 && declaration.names[0] == kCounter;
  });
}

void SortUnique(std::vector<uint32_t>& words) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
}

}  // namespace

absl::StatusOr<RuntimeNames> RuntimeNames::Read(const std::vector<RuntimeTexts>& passes, RuntimeParts parts,
                                                const std::vector<std::string_view>& headers) {
  const language::OriginOf origin_of = OriginsByGuard();
  RuntimeNames names;
  for (const RuntimeTexts& pass : passes) {
    const Declarations full = ReadDeclarations(pass.full, origin_of);
    const Declarations slim = ReadDeclarations(pass.slim, origin_of);
    if (!full.macros.contains("__CUDA_RUNTIME_H__") || !slim.macros.contains("__DEVICE_FUNCTIONS_H__")) {
      return absl::FailedPreconditionError("not the texts of a CUDA runtime header that kernix knows");
    }
    if (!HasProbe(full)) return absl::FailedPreconditionError("not the text of kRuntimeProbe");
    Comparison comparison(full, slim, parts, names.table_);
    const std::string problem = comparison.Compare();
    if (!problem.empty()) return absl::FailedPreconditionError(problem);
    names.needed_ = names.needed_ | RuntimeParts::FromBits(comparison.needed());
    for (const Declarations* read : {&full, &slim}) {
      for (std::string_view word : read->words) names.words_.push_back(HashOf(word));
    }
  }
  const auto counter = names.table_.find(kCounter);
  if (counter != names.table_.end()) names.table_["__COUNTER__"].macro |= kWhole;
  for (std::string_view header : headers) AddDirectiveWords(header, names.words_);
  SortUnique(names.words_);
  return names;
}

void RuntimeNames::Add(const RuntimeNames& other) {
  for (const auto& [name, takes] : other.table_) {
    Takes& mine = table_[name];
    mine.macro |= takes.macro;
    mine.global |= takes.global;
    mine.std |= takes.std;
    mine.redeclared |= takes.redeclared;
  }
  needed_ = needed_ | other.needed_;
  words_.insert(words_.end(), other.words_.begin(), other.words_.end());
  SortUnique(words_);
}

std::string RuntimeNames::ToText() const {
  std::string text = StrCat(kFormat, " ", needed_.bits(), " ", table_.size(), "\n");
  for (const auto& [name, takes] : std::map<std::string_view, Takes>(table_.begin(), table_.end())) {
    StrAppend(&text, name, " ", takes.macro, " ", takes.global, " ", takes.std, " ", takes.redeclared, "\n");
  }
  for (const uint32_t word : words_) StrAppend(&text, word, "\n");
  return text;
}

absl::StatusOr<RuntimeNames> RuntimeNames::FromText(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::string name;
  uint32_t needed = 0;
  size_t count = 0;
  in >> name >> needed >> count;
  RuntimeNames names;
  names.needed_ = RuntimeParts::FromBits(needed);
  bool is_whole = name == kFormat && !in.fail();
  for (Takes takes; is_whole && names.table_.size() < count; names.table_[name] = takes) {
    is_whole = !(in >> name >> takes.macro >> takes.global >> takes.std >> takes.redeclared).fail();
  }
  for (uint32_t word = 0; in >> word;) names.words_.push_back(word);
  if (is_whole && names.ToText() == text) return names;
  return absl::InvalidArgumentError("this is not the text of a RuntimeNames");
}

RuntimeNames::Takes RuntimeNames::Find(std::string_view name) const {
  const auto found = table_.find(name);
  return found == table_.end() ? Takes{} : found->second;
}

bool RuntimeNames::MayChangeHeaders(std::string_view macro) const {
  return std::binary_search(words_.begin(), words_.end(), HashOf(macro));
}

namespace {

// What the toolkit's cuda_runtime.h includes, in its order. Include guards leave out what is not wanted.
constexpr std::string_view kHeaders =
    "builtin_types.h library_types.h channel_descriptor.h cuda_runtime_api.h driver_functions.h crt/host_defines.h "
    "vector_functions.h crt/common_functions.h crt/device_functions.h device_launch_parameters.h";

std::vector<std::string_view> GuardsLeftOut(RuntimeParts parts) {
  std::vector<std::string_view> guards = Words(kNeverReadGuards);
  for (const RuntimePartRow& row : RuntimePartTable()) {
    if (!row.guarded || parts.Has(row.part)) continue;
    for (std::string_view guard : Words(row.guards)) guards.push_back(guard);
  }
  return guards;
}

void IncludeNext(std::string_view header, std::string& out) { StrAppend(&out, "#include_next <", header, ">\n"); }

}  // namespace

std::string SlimRuntimeHeader(RuntimeParts parts) {
  const std::vector<std::string_view> guards = GuardsLeftOut(parts);
  std::string out =
      "#ifndef KERNIX_SLIM_RUNTIME\n#define KERNIX_SLIM_RUNTIME\n#pragma GCC system_header\n"
      "#define __CUDA_RUNTIME_H__\n#define __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__\n";
  for (std::string_view guard : guards) StrAppend(&out, "#define ", guard, "\n");
  IncludeNext("crt/host_config.h", out);
  out += "#include <initializer_list>\n";  // short, and used without its name
  if (parts.Has(RuntimePart::kTraits)) out += "#include <type_traits>\n";
  if (parts.Has(RuntimePart::kLimits)) out += "#include <limits>\n";
  if (parts.Has(RuntimePart::kAlgorithms)) out += "#include <bits/stl_algobase.h>\n";
  for (std::string_view header : Words(kHeaders)) IncludeNext(header, out);
  out += "#undef __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__\n";
  if (parts.Has(RuntimePart::kTemplates)) {
    out += "#undef __CUDA_RUNTIME_H__\n";
    IncludeNext("cuda_runtime.h", out);
  }
  for (std::string_view guard : guards) StrAppend(&out, "#undef ", guard, "\n");
  return out + "#endif\n";
}

std::vector<std::string> HostRuntimeDefinitions(RuntimeParts parts) {
  if (parts.Has(RuntimePart::kMaths)) return {};
  return {"-D__MATH_FUNCTIONS_H__"};
}

}  // namespace kernix::language
