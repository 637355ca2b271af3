// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <fstream>
#include <map>
#include <string>

#include "client/tools/absolute_path.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/posix_error.h"
#include "kernix/inspection.h"

namespace kernix {
namespace {

// Never the name of a source, because the folder may contain the user's own file.
std::string_view SuffixOf(Language language) { return language == Language::kCuda ? ".kernix.cu" : ".kernix.cpp"; }

std::string_view SuffixOf(KeptText::Kind kind) {
  switch (kind) {
    case KeptText::Kind::kPtx:
      return ".ptx";
    case KeptText::Kind::kSass:
      return ".sass";
    case KeptText::Kind::kResources:
      return ".ptxas";
  }
  return "";
}

// The files by name. The contents point into the arguments, which must outlive the map.
std::map<std::string, std::string_view> FilesOf(const Module& module, const ModuleTexts& texts) {
  // If there are several units, the name includes the unit's number.
  const auto unit_name = [&](size_t unit) {
    return texts.units.size() == 1 ? module.name() : StrCat(module.name(), ".", unit);
  };
  std::map<std::string, std::string_view> files = {{module.name() + ".so", module.artifact()}};
  for (size_t i = 0; i < texts.units.size(); ++i) {
    files.emplace(StrCat(unit_name(i), SuffixOf(texts.units[i].language)), texts.units[i].text);
  }
  for (const KeptText& kept : texts.kept) {
    files.emplace(StrCat(unit_name(kept.unit), ".", kept.architecture, SuffixOf(kept.kind)), kept.text);
  }
  return files;
}

// The umask determines the mode, as for any compiler's output.
absl::Status WriteFile(const std::string& path, std::string_view content) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  return file.good() ? absl::OkStatus() : ErrnoStatus(errno == 0 ? EIO : errno, "write", path);
}

// Writes each file under a temporary name and renames it, so that processes that have the earlier file open or mapped
// keep it unchanged.
absl::Status PutFiles(Env& env, const std::string& directory, const std::map<std::string, std::string_view>& files) {
  KERNIX_RETURN_IF_ERROR(env.CreateDirectories(directory));
  KERNIX_ASSIGN_OR_RETURN(const std::string beside, env.CreateTempDirectory(JoinPath(directory, ".kernix-")));
  absl::Status status;
  for (const auto& [name, content] : files) {
    status = WriteFile(JoinPath(beside, name), content);
    if (status.ok()) status = env.Rename(JoinPath(beside, name), JoinPath(directory, name));
    if (!status.ok()) break;
  }
  const absl::Status removed = env.RemoveTree(beside);
  return status.ok() ? removed : status;
}

}  // namespace

absl::Status WriteBuildDirectory(const Module& module, const std::string& directory) {
  KERNIX_ASSIGN_OR_RETURN(const ModuleTexts texts, module.texts());
  const absl::Status written = PutFiles(Env::Posix(), AbsolutePath(directory), FilesOf(module, texts));
  if (written.ok()) return written;
  return MakeError(v1::ErrorDetail::RESOURCE,
                   StrCat("cannot write to the build directory ", directory, ": ", written.message()));
}

}  // namespace kernix
