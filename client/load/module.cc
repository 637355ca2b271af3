// SPDX-License-Identifier: Apache-2.0
#include "client/load/module.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/runtime/handler_probe.h"
#include "common/base/digest.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/elf_file.h"

namespace kernix {
namespace {

constexpr std::string_view kKeptSections = ".kernix.";

absl::StatusOr<FunctionInfo> OpenFunction(const v1::ResolvedFunction& function, const Library& library) {
  FunctionInfo info;
  info.name = function.name();
  info.tokens = {function.tokens().begin(), function.tokens().end()};
  KERNIX_ASSIGN_OR_RETURN(info.handler, library.FindHandler(function.handler_symbol()));
  KERNIX_ASSIGN_OR_RETURN(info.traits, ProbeHandler(info.handler));
  return info;
}

std::vector<GeneratedUnit> UnitsOf(const v1::LoadResult& result) {
  std::vector<GeneratedUnit> units;
  for (const v1::GeneratedUnit& unit : result.generated_unit()) {
    units.push_back({{unit.source().begin(), unit.source().end()},
                     unit.language() == v1::LANGUAGE_CUDA ? Language::kCuda : Language::kCpp,
                     unit.text()});
  }
  return units;
}

// "ptx.sm_90.0": kind, architecture, index of the unit.
std::optional<KeptText> KeptTextOf(const ElfImage::NamedSection& section) {
  constexpr std::pair<std::string_view, KeptText::Kind> kKinds[] = {
      {"ptx", KeptText::Kind::kPtx}, {"sass", KeptText::Kind::kSass}, {"resources", KeptText::Kind::kResources}};
  const std::vector<std::string> words = absl::StrSplit(ToAbsl(section.name.substr(kKeptSections.size())), '.');
  size_t unit = 0;
  if (words.size() != 3 || !absl::SimpleAtoi(words[2], &unit)) return std::nullopt;
  for (const auto& [name, kind] : kKinds) {
    if (words[0] == name) return KeptText{kind, unit, words[1], std::string(section.content)};
  }
  return std::nullopt;
}

// The constant data of a load.
struct Facts {
  LoadedAs loaded;
  std::string key;
  std::string artifact_digest;
  std::vector<GeneratedUnit> generated_units;
  bool cache_hit = false;
  uint64_t build_ms = 0;
};

class OpenModule : public Module {
 public:
  OpenModule(Facts facts, std::shared_ptr<const Library> library, std::vector<FunctionInfo> functions)
      : facts_(std::move(facts)), library_(std::move(library)), functions_(std::move(functions)) {}

  const std::string& name() const override { return facts_.loaded.name; }
  Language language() const override { return facts_.loaded.language; }
  const std::string& path() const override { return facts_.loaded.path; }
  const std::vector<FunctionInfo>& functions() const override { return functions_; }
  const std::string& key() const override { return facts_.key; }
  const std::string& artifact_digest() const override { return facts_.artifact_digest; }
  bool cache_hit() const override { return facts_.cache_hit; }
  uint64_t build_ms() const override { return facts_.build_ms; }
  const std::vector<GeneratedUnit>& generated_units() const override { return facts_.generated_units; }
  const std::vector<KeptText>& kept() const override { return facts_.loaded.kept; }

  absl::StatusOr<Handler> handler(std::string_view function) const override {
    std::vector<std::string> names;
    for (const FunctionInfo& info : functions_) {
      if (info.name == function) return info.handler;
      names.push_back(info.name);
    }
    return absl::NotFoundError(
        StrCat("module '", name(), "' has no function '", function, "'; it has: ", absl::StrJoin(names, ", ")));
  }

 private:
  const Facts facts_;
  const std::shared_ptr<const Library> library_;
  const std::vector<FunctionInfo> functions_;
};

}  // namespace

absl::StatusOr<std::vector<KeptText>> ReadKept(const std::string& path) {
  KERNIX_ASSIGN_OR_RETURN(const ElfFile file, ElfFile::Open(path));
  KERNIX_ASSIGN_OR_RETURN(const auto sections, file.image().SectionsNamed(kKeptSections));
  std::vector<KeptText> kept;
  for (const ElfImage::NamedSection& section : sections) {
    if (std::optional<KeptText> text = KeptTextOf(section)) kept.push_back(*std::move(text));
  }
  return kept;
}

absl::StatusOr<std::shared_ptr<Module>> MakeModule(LoadedAs loaded, const v1::LoadResult& result,
                                                   std::shared_ptr<const Library> library) {
  std::vector<FunctionInfo> functions;
  for (const v1::ResolvedFunction& function : result.function()) {
    absl::StatusOr<FunctionInfo> info = OpenFunction(function, *library);
    if (!info.ok())
      return Annotate(info.status(), StrCat("function '", function.name(), "' of module '", loaded.name, "'"));
    functions.push_back(*std::move(info));
  }
  KERNIX_ASSIGN_OR_RETURN(const Digest key, Digest::FromRaw(result.key()));
  KERNIX_ASSIGN_OR_RETURN(const Digest digest, Digest::FromRaw(result.artifact_digest()));
  Facts facts{.loaded = std::move(loaded),
              .key = key.Hex(),
              .artifact_digest = digest.Hex(),
              .generated_units = UnitsOf(result),
              .cache_hit = result.cache_hit(),
              .build_ms = result.build_ms()};
  return std::make_shared<OpenModule>(std::move(facts), std::move(library), std::move(functions));
}

}  // namespace kernix
