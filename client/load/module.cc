// SPDX-License-Identifier: Apache-2.0
#include "client/load/module.h"

#include <iterator>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "client/bundle/bundle.h"
#include "client/connection/daemon_client.h"
#include "client/load/library_file.pb.h"
#include "client/runtime/handlers.h"
#include "client/runtime/library.h"
#include "client/tools/environment.h"
#include "common/base/digest.h"
#include "common/base/elf_image.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/wire/artifact_texts.h"
#include "kernix/load.h"

namespace kernix {
namespace {

// A value that a newer kernixd has added is treated as provided.
Parameter::Role RoleOf(v1::Parameter::Role role) {
  const bool is_known = role > v1::Parameter::ROLE_UNSPECIFIED && role <= v1::Parameter::PROVIDED;
  return is_known ? static_cast<Parameter::Role>(role) : Parameter::Role::kProvided;
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
  const bool is_known = kind > v1::KeptText::KIND_UNSPECIFIED && kind <= v1::KeptText::RESOURCES;
  return is_known ? static_cast<KeptText::Kind>(kind) : KeptText::Kind::kPtx;
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

class OpenModule : public Module {
 public:
  OpenModule(LoadedAs loaded, const v1::LoadResult& result, const Digest& key, const Digest& artifact_digest,
             OpenArtifact artifact, std::vector<FunctionInfo> functions)
      : loaded_(std::move(loaded)),
        result_(result),
        key_(key.Hex()),
        artifact_digest_(artifact_digest.Hex()),
        artifact_(std::move(artifact)),
        functions_(std::move(functions)) {}

  const std::string& name() const override { return loaded_.name; }
  Language language() const override { return loaded_.language; }
  const std::string& path() const override { return loaded_.path; }
  const std::vector<FunctionInfo>& functions() const override { return functions_; }
  const std::string& key() const override { return key_; }
  const std::string& artifact_digest() const override { return artifact_digest_; }
  Origin origin() const override { return loaded_.origin.value_or(OriginOf(result_)); }
  uint64_t build_ms() const override { return result_.build_ms(); }
  const std::string& miss_reason() const override { return result_.miss_reason(); }
  std::string_view artifact() const override { return artifact_.file->bytes(); }
  absl::StatusOr<ModuleTexts> texts() const override { return TextsOf(artifact_.file->image()); }

  const v1::LoadResult& result() const { return result_; }

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
  const LoadedAs loaded_;
  const v1::LoadResult result_;
  const std::string key_;
  const std::string artifact_digest_;
  const OpenArtifact artifact_;
  const std::vector<FunctionInfo> functions_;
};

}  // namespace

std::string_view OriginName(Origin origin) {
  constexpr std::string_view kNames[] = {"built", "joined", "cache", "upstream", "bundle", "file"};  // by Origin
  static_assert(std::size(kNames) == static_cast<size_t>(Origin::kFile) + 1);
  return kNames[static_cast<size_t>(origin)];
}

Origin OriginOf(const v1::LoadResult& result) {
  if (result.from_upstream()) return Origin::kUpstream;
  if (result.cache_hit()) return Origin::kCache;
  return result.joined() ? Origin::kJoined : Origin::kBuilt;
}

absl::StatusOr<std::shared_ptr<Module>> MakeModule(LoadedAs loaded, const v1::LoadResult& result,
                                                   const LoadOptions& options, const ClientOptions& client) {
  KERNIX_ASSIGN_OR_RETURN(const Digest digest, Digest::FromRaw(result.artifact_digest()));
  const Artifact artifact{
      .path = loaded.path,
      .digest = digest,
      .required_symbol_versions = {result.required_symbol_versions().begin(), result.required_symbol_versions().end()},
      .instance = options.instance.empty() ? loaded.name : options.instance,
      .begins_anew = options.begin_anew || options.force_rebuild};
  const LibraryDirectories directories = [&] {
    const GetEnv get_env = options.environment ? GetEnvOf(*options.environment) : ProcessGetEnv;
    return CudaLibraryDirectories(Env::Posix(), get_env, client.site_packages);
  };
  KERNIX_ASSIGN_OR_RETURN(OpenArtifact open, OpenLibrary(artifact, directories));
  std::vector<FunctionInfo> functions;
  for (const v1::ResolvedFunction& function : result.function()) {
    absl::StatusOr<FunctionInfo> info = OpenFunction(function, *open.library);
    if (!info.ok())
      return Annotate(info.status(), StrCat("function '", function.name(), "' of module '", loaded.name, "'"));
    functions.push_back(*std::move(info));
  }
  KERNIX_ASSIGN_OR_RETURN(const Digest key, Digest::FromRaw(result.key()));
  return std::make_shared<OpenModule>(std::move(loaded), result, key, digest, std::move(open), std::move(functions));
}

const v1::LoadResult* ResultOf(const Module& module) {
  const auto* open = dynamic_cast<const OpenModule*>(&module);
  return open == nullptr ? nullptr : &open->result();
}

namespace {

constexpr char kSection[] = ".kernix.module";

absl::Status NotOurs(const std::string& path, std::string_view why) {
  return MakeError(
      v1::ErrorDetail::LOAD,
      StrCat(path, " is no library that `kernixctl compile -o` or a build directory of kernix has: ", why));
}

absl::StatusOr<internal::LibraryFile> ReadLibraryFile(const std::string& path, std::string_view content) {
  const absl::StatusOr<ElfImage> image = ElfImage::Parse(content);
  if (!image.ok()) return NotOurs(path, ToStd(image.status().message()));
  const absl::StatusOr<std::string_view> section = image->SectionNamed(kSection);
  if (!section.ok()) return NotOurs(path, ToStd(section.status().message()));
  internal::LibraryFile file;
  if (file.ParseFromArray(section->data(), static_cast<int>(section->size()))) return file;
  return NotOurs(path, StrCat("its section ", kSection, " is damaged"));
}

}  // namespace

absl::StatusOr<std::string> LibraryFileOf(const Module& module) {
  std::string library(module.artifact());
  const v1::LoadResult* result = ResultOf(module);
  if (result == nullptr) return library;
  KERNIX_ASSIGN_OR_RETURN(const ElfImage image, ElfImage::Parse(module.artifact()));
  if (image.SectionNamed(kSection).ok()) return library;  // LoadLibrary() has opened it
  internal::LibraryFile file;
  file.set_name(module.name());
  file.set_language(ToWire(module.language()));
  *file.mutable_result() = WithoutCircumstances(*result);
  file.mutable_result()->clear_warning();
  KERNIX_RETURN_IF_ERROR(AddSection(kSection, file.SerializeAsString(), library));
  return library;
}

absl::StatusOr<std::shared_ptr<Module>> LoadLibrary(Client& client, const std::string& path,
                                                    const LoadOptions& options) {
  const std::string absolute = AbsolutePath(path);
  const absl::StatusOr<std::string> content = Env::Posix().ReadFile(absolute);
  if (!content.ok()) {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                     StrCat("cannot read the library: ", ToStd(content.status().message())));
  }
  KERNIX_ASSIGN_OR_RETURN(internal::LibraryFile file, ReadLibraryFile(absolute, *content));
  v1::LoadResult& result = *file.mutable_result();
  result.set_artifact_digest(DigestOf(*content).Raw());
  return MakeModule(
      {.name = file.name(), .language = FromWire(file.language()), .path = absolute, .origin = Origin::kFile}, result,
      options, client.options());
}

}  // namespace kernix
