// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "client/runtime/cuda_libraries.h"
#include "client/runtime/symbol_versions.h"
#include "common/base/error.h"
#include "common/base/named_handler.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/undefined_symbol.h"
#include "common/os/fork_safety.h"
#include "common/os/posix_error.h"
#include "common/wire/artifact_texts.h"

namespace kernix {
namespace {

using LibraryPtr = std::shared_ptr<const Library>;

// What this process has open.
struct OpenArtifacts {
  ForkSafeMutex mutex;
  absl::flat_hash_map<Digest, OpenArtifact> by_digest ABSL_GUARDED_BY(mutex);
  absl::flat_hash_map<Digest, LibraryPtr> by_code ABSL_GUARDED_BY(mutex);
};

OpenArtifacts& AllOpen() {
  static auto* all = new OpenArtifacts;
  return *all;
}

[[maybe_unused]] const OpenArtifacts& kMadeAtLoad = AllOpen();

std::optional<OpenArtifact> FindOpen(const Digest& digest) {
  OpenArtifacts& all = AllOpen();
  MutexLock lock(all.mutex);
  const auto found = all.by_digest.find(digest);
  if (found == all.by_digest.end()) return std::nullopt;
  return found->second;
}

LibraryPtr FindCode(const Digest& code) {
  OpenArtifacts& all = AllOpen();
  MutexLock lock(all.mutex);
  const auto found = all.by_code.find(code);
  return found == all.by_code.end() ? nullptr : found->second;
}

// If two threads open the same code, the first one wins, so that both see the same addresses.
OpenArtifact Remember(const Digest& digest, const Digest& code, OpenArtifact artifact) {
  OpenArtifacts& all = AllOpen();
  MutexLock lock(all.mutex);
  artifact.library = all.by_code.emplace(code, artifact.library).first->second;
  return all.by_digest.emplace(digest, std::move(artifact)).first->second;
}

// Libraries that every process has and that never come from a CUDA toolkit.
bool IsSystemLibrary(const std::string& name) {
  for (const char* stem :
       {"libc", "libm", "libstdc++", "libgcc_s", "libpthread", "libdl", "librt", "ld-linux-x86-64"}) {
    if (absl::StartsWith(name, StrCat(stem, ".so"))) return true;
  }
  return false;
}

bool NeedsMoreThanTheSystem(const std::vector<std::string>& needed) {
  return !std::all_of(needed.begin(), needed.end(), IsSystemLibrary);
}

absl::Status LoaderError(std::string_view message) {
  std::string advice;
  if (message.find("cannot open shared object file") != std::string_view::npos) {
    advice =
        " Install the missing library (CUDA's libraries are available as wheels: nvidia-cublas, nvidia-cusparse, ...), "
        "or add its folder to LD_LIBRARY_PATH before this process starts. The loader also finds a library of yours "
        "that is already open (ctypes.CDLL) if it was linked with a name of its own: -Wl,-soname,NAME.";
  } else if (message.find("failed to map segment") != std::string_view::npos) {
    advice =
        " Its file system probably forbids running files (mount option noexec): choose another store with "
        "KERNIX_CACHE_DIR or set_cache_dir().";
  } else if (message.find("undefined symbol") != std::string_view::npos) {
    advice = StrCat(" ", kDefineOrNameLibrary, ".");
  }
  return MakeError(v1::ErrorDetail::LOAD, StrCat("the compiled kernel does not open: ", message, ".", advice));
}

absl::StatusOr<ElfFile> Map(const std::string& path) {
  absl::StatusOr<ElfFile> file = ElfFile::Open(path);
  if (file.ok() || absl::IsNotFound(file.status())) return file;
  return LoaderError(ToStd(file.status().message()));
}

absl::StatusOr<LibraryPtr> Open(const Artifact& artifact, const ElfFile& file, const LibraryDirectories& directories) {
  const absl::StatusOr<std::vector<std::string>> needed = file.image().NeededLibraries();
  if (!needed.ok()) return LoaderError(ToStd(needed.status().message()));
  if (NeedsMoreThanTheSystem(*needed)) KERNIX_RETURN_IF_ERROR(OpenNeeded(directories(), *needed));
  void* handle = dlopen(artifact.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return std::make_shared<const Library>(handle);
  const std::string message = dlerror();
  if (access(artifact.path.c_str(), F_OK) != 0 && CodeForErrno(errno) == absl::StatusCode::kNotFound) {
    return absl::NotFoundError(message);
  }
  // The loader has found it out, but names only the first one that is missing. Asked before each load, this would take
  // as long as the loader itself.
  KERNIX_RETURN_IF_ERROR(CheckSymbolVersions(artifact.required_symbol_versions, LoadedRuntimeVersions()));
  return LoaderError(message);
}

}  // namespace

absl::StatusOr<Handler> Library::FindHandler(const std::string& symbol) const {
  void* address = dlsym(handle_, symbol.c_str());
  if (address != nullptr) return reinterpret_cast<Handler>(address);
  return MakeError(v1::ErrorDetail::LOAD,
                   StrCat("the compiled kernel has no symbol ", symbol, ". Load it again with force_rebuild=True."));
}

NamedHandler Library::FindNamedHandler(const std::string& symbol) const {
  return reinterpret_cast<NamedHandler>(dlsym(handle_, NamedHandlerSymbol(symbol).c_str()));
}

absl::StatusOr<OpenArtifact> OpenLibrary(const Artifact& artifact, const LibraryDirectories& directories) {
  if (std::optional<OpenArtifact> open = FindOpen(artifact.digest)) return *std::move(open);
  KERNIX_ASSIGN_OR_RETURN(ElfFile file, Map(artifact.path));
  const Digest code = CodeDigest(file.image()).value_or(artifact.digest);
  LibraryPtr library = FindCode(code);
  if (library == nullptr) {
    KERNIX_ASSIGN_OR_RETURN(library, Open(artifact, file, directories));
  }
  return Remember(artifact.digest, code, {std::move(library), std::make_shared<const ElfFile>(std::move(file))});
}

}  // namespace kernix
