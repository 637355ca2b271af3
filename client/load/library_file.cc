// SPDX-License-Identifier: Apache-2.0
#include "client/load/library_file.h"

#include <memory>
#include <string_view>
#include <utility>

#include "client/bundle/bundle.h"
#include "client/connection/daemon_client.h"
#include "client/load/library_file.pb.h"
#include "client/load/module.h"
#include "client/runtime/library.h"
#include "client/tools/environment.h"
#include "common/base/digest.h"
#include "common/base/elf_image.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "kernix/load.h"

namespace kernix {
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
  Artifact artifact{
      .path = absolute,
      .digest = DigestOf(*content),
      .required_symbol_versions = {result.required_symbol_versions().begin(), result.required_symbol_versions().end()},
      .instance = options.instance.empty() ? file.name() : options.instance,
      .begins_anew = options.begin_anew};
  result.set_artifact_digest(artifact.digest.Raw());
  const GetEnv get_env = options.environment ? GetEnvOf(*options.environment) : ProcessGetEnv;
  const LibraryDirectories directories = [&] {
    return CudaLibraryDirectories(Env::Posix(), get_env, client.options().site_packages);
  };
  KERNIX_ASSIGN_OR_RETURN(OpenArtifact open, OpenLibrary(artifact, directories));
  LoadedAs loaded{
      .name = file.name(), .language = FromWire(file.language()), .path = absolute, .origin = Origin::kFile};
  return MakeModule(std::move(loaded), result, std::move(open));
}

}  // namespace kernix
