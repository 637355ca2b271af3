// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <fstream>
#include <map>
#include <string>

#include "client/connection/daemon_client.h"
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

// If there are several units, the name includes the unit's number.
std::string UnitName(const Module& module, size_t unit) {
  return module.generated_units().size() == 1 ? module.name() : StrCat(module.name(), ".", unit);
}

// The texts by file name, for people to read. They point into `module`, which must outlive the map.
std::map<std::string, std::string_view> TextsOf(const Module& module) {
  std::map<std::string, std::string_view> files;
  for (size_t i = 0; i < module.generated_units().size(); ++i) {
    const GeneratedUnit& unit = module.generated_units()[i];
    files.emplace(StrCat(UnitName(module, i), SuffixOf(unit.language)), unit.text);
  }
  for (const KeptText& kept : module.kept()) {
    files.emplace(StrCat(UnitName(module, kept.unit), ".", kept.architecture, SuffixOf(kept.kind)), kept.text);
  }
  return files;
}

absl::StatusOr<std::string> ReadLibrary(Env& env, const Module& module) {
  absl::StatusOr<std::string> library = env.ReadFile(module.path());
  if (library.ok()) return library;
  CountCacheRemoval();  // so that the next load asks the daemon
  return MakeError(v1::ErrorDetail::LOAD,
                   StrCat("cannot copy the compiled library to the build directory: ", library.status().message(),
                          ". If it has been evicted from the cache, load again."));
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
  Env& env = Env::Posix();
  KERNIX_ASSIGN_OR_RETURN(const std::string library, ReadLibrary(env, module));
  std::map<std::string, std::string_view> files = TextsOf(module);
  files.emplace(module.name() + ".so", library);
  const absl::Status written = PutFiles(env, AbsolutePath(directory), files);
  if (written.ok()) return written;
  return MakeError(v1::ErrorDetail::RESOURCE,
                   StrCat("cannot write to the build directory ", directory, ": ", written.message()));
}

}  // namespace kernix
