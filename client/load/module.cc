// SPDX-License-Identifier: Apache-2.0
#include "client/load/module.h"

#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "client/runtime/handlers.h"
#include "common/base/digest.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/wire/artifact_texts.h"

namespace kernix {
namespace {

Parameter::Role RoleOf(v1::Parameter::Role role) {
  switch (role) {
    case v1::Parameter::ARGUMENT:
      return Parameter::Role::kArgument;
    case v1::Parameter::RESULT:
      return Parameter::Role::kResult;
    case v1::Parameter::ATTRIBUTE:
      return Parameter::Role::kAttribute;
    case v1::Parameter::ARGUMENT_TOKEN:
      return Parameter::Role::kArgumentToken;
    case v1::Parameter::RESULT_TOKEN:
      return Parameter::Role::kResultToken;
    default:
      return Parameter::Role::kProvided;
  }
}

Parameter ParameterOf(const v1::Parameter& proto) {
  Parameter parameter = {RoleOf(proto.role()), proto.name(), proto.type()};
  if (proto.has_rank()) parameter.rank = static_cast<int>(proto.rank());
  parameter.optional = proto.optional();
  parameter.variadic = proto.variadic();
  return parameter;
}

absl::StatusOr<FunctionInfo> OpenFunction(const v1::ResolvedFunction& function, const Library& library) {
  FunctionInfo info;
  info.name = function.name();
  info.tokens = {function.tokens().begin(), function.tokens().end()};
  for (const v1::Parameter& parameter : function.parameter()) info.parameters.push_back(ParameterOf(parameter));
  info.is_global = function.is_global();
  KERNIX_ASSIGN_OR_RETURN(info.handler, library.FindHandler(function.handler_symbol()));
  info.named_handler = library.FindNamedHandler(function.handler_symbol());
  KERNIX_ASSIGN_OR_RETURN(info.traits, ProbeHandler(info.handler));
  return info;
}

KeptText::Kind KindOf(v1::KeptText::Kind kind) {
  switch (kind) {
    case v1::KeptText::SASS:
      return KeptText::Kind::kSass;
    case v1::KeptText::RESOURCES:
      return KeptText::Kind::kResources;
    default:
      return KeptText::Kind::kPtx;
  }
}

absl::StatusOr<ModuleTexts> TextsOf(const ElfImage& artifact) {
  const absl::StatusOr<v1::ArtifactTexts> read = ReadTexts(artifact);
  if (!read.ok()) {
    return MakeError(v1::ErrorDetail::LOAD,
                     StrCat("cannot read the texts of the compiled kernel: ", ToStd(read.status().message()),
                            ". Load it again with force_rebuild=True."));
  }
  ModuleTexts texts;
  for (const v1::GeneratedUnit& unit : read->unit()) {
    texts.units.push_back({{unit.source().begin(), unit.source().end()}, FromWire(unit.language()), unit.text()});
  }
  for (const v1::KeptText& text : read->kept()) {
    texts.kept.push_back({KindOf(text.kind()), text.unit(), text.architecture(), text.text()});
  }
  texts.compiler_output = read->compiler_output();
  return texts;
}

// The constant data of a load.
struct Facts {
  LoadedAs loaded;
  std::string key;
  std::string artifact_digest;
  bool cache_hit = false;
  bool from_upstream = false;
  uint64_t build_ms = 0;
  bool joined = false;
  std::string miss_reason;
};

class OpenModule : public Module {
 public:
  OpenModule(Facts facts, OpenArtifact artifact, std::vector<FunctionInfo> functions)
      : facts_(std::move(facts)), artifact_(std::move(artifact)), functions_(std::move(functions)) {}

  const std::string& name() const override { return facts_.loaded.name; }
  Language language() const override { return facts_.loaded.language; }
  const std::string& path() const override { return facts_.loaded.path; }
  const std::vector<FunctionInfo>& functions() const override { return functions_; }
  const std::string& key() const override { return facts_.key; }
  const std::string& artifact_digest() const override { return facts_.artifact_digest; }
  bool cache_hit() const override { return facts_.cache_hit; }
  bool from_upstream() const override { return facts_.from_upstream; }
  uint64_t build_ms() const override { return facts_.build_ms; }
  bool joined() const override { return facts_.joined; }
  const std::string& miss_reason() const override { return facts_.miss_reason; }
  std::string_view artifact() const override { return artifact_.file->bytes(); }
  absl::StatusOr<ModuleTexts> texts() const override { return TextsOf(artifact_.file->image()); }

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
  const OpenArtifact artifact_;
  const std::vector<FunctionInfo> functions_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<Module>> MakeModule(LoadedAs loaded, const v1::LoadResult& result,
                                                   OpenArtifact artifact) {
  std::vector<FunctionInfo> functions;
  for (const v1::ResolvedFunction& function : result.function()) {
    absl::StatusOr<FunctionInfo> info = OpenFunction(function, *artifact.library);
    if (!info.ok())
      return Annotate(info.status(), StrCat("function '", function.name(), "' of module '", loaded.name, "'"));
    functions.push_back(*std::move(info));
  }
  KERNIX_ASSIGN_OR_RETURN(const Digest key, Digest::FromRaw(result.key()));
  KERNIX_ASSIGN_OR_RETURN(const Digest digest, Digest::FromRaw(result.artifact_digest()));
  Facts facts{.loaded = std::move(loaded),
              .key = key.Hex(),
              .artifact_digest = digest.Hex(),
              .cache_hit = result.cache_hit(),
              .from_upstream = result.from_upstream(),
              .build_ms = result.build_ms(),
              .joined = result.joined(),
              .miss_reason = result.miss_reason()};
  return std::make_shared<OpenModule>(std::move(facts), std::move(artifact), std::move(functions));
}

}  // namespace kernix
