// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/cuda_libraries.h"

#include <dlfcn.h>
#include <unistd.h>

#include <optional>

#include "absl/container/flat_hash_set.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/elf_file.h"

namespace kernix {
namespace {

bool IsDirectory(Env& env, const std::string& path) {
  const absl::StatusOr<FileInfo> info = env.Stat(path);
  return info.ok() && info->type == FileType::kDirectory;
}

absl::StatusOr<std::vector<std::string>> NeededLibraries(const std::string& path) {
  KERNIX_ASSIGN_OR_RETURN(const ElfFile file, ElfFile::Open(path));
  return file.image().NeededLibraries();
}

// Opens libraries depth-first, each once.
class Opener {
 public:
  explicit Opener(const std::vector<std::string>& directories) : directories_(directories) {}

  absl::Status OpenAll(const std::vector<std::string>& needed) {
    for (const std::string& name : needed) {
      if (!seen_.insert(name).second || IsLoaded(name)) continue;
      if (const std::optional<std::string> found = Find(name)) KERNIX_RETURN_IF_ERROR(Open(*found));
    }
    return absl::OkStatus();
  }

 private:
  static bool IsLoaded(const std::string& name) {
    void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle != nullptr) dlclose(handle);
    return handle != nullptr;
  }

  std::optional<std::string> Find(const std::string& name) const {
    for (const std::string& directory : directories_) {
      std::string path = JoinPath(directory, name);
      if (access(path.c_str(), R_OK) == 0) return path;
    }
    return std::nullopt;
  }

  absl::Status Open(const std::string& path) {
    KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> needed, NeededLibraries(path));
    KERNIX_RETURN_IF_ERROR(OpenAll(needed));
    if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return absl::OkStatus();
    return MakeError(v1::ErrorDetail::LOAD,
                     StrCat("a library that the compiled kernel needs does not open: ", dlerror()));
  }

  const std::vector<std::string>& directories_;
  absl::flat_hash_set<std::string> seen_;
};

}  // namespace

std::vector<std::string> CudaLibraryDirectories(Env& env, const GetEnv& get_env,
                                                const std::vector<std::string>& site_packages) {
  std::vector<std::string> candidates;
  for (const std::string& site : site_packages) {
    const std::string nvidia = JoinPath(site, "nvidia");
    const absl::StatusOr<std::vector<std::string>> packages = env.ListDirectory(nvidia);
    if (!packages.ok()) continue;
    for (const std::string& package : *packages) candidates.push_back(JoinPath(JoinPath(nvidia, package), "lib"));
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::optional<std::string> root = get_env(variable)) candidates.push_back(JoinPath(*root, "lib64"));
  }
  candidates.emplace_back("/usr/local/cuda/lib64");
  std::erase_if(candidates, [&](const std::string& path) { return !IsDirectory(env, path); });
  return candidates;
}

absl::Status OpenNeeded(const std::vector<std::string>& directories, const std::vector<std::string>& needed) {
  return Opener(directories).OpenAll(needed);
}

}  // namespace kernix
