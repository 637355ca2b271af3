// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
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
using OfInstance = std::pair<Digest, std::string>;  // of an artifact or of code, and the instance

// What this process has open.
struct OpenArtifacts {
  ForkSafeMutex mutex;
  absl::flat_hash_map<OfInstance, OpenArtifact> by_digest ABSL_GUARDED_BY(mutex);
  absl::flat_hash_map<OfInstance, LibraryPtr> by_code ABSL_GUARDED_BY(mutex);
};

OpenArtifacts& AllOpen() {
  static auto* all = new OpenArtifacts;
  return *all;
}

[[maybe_unused]] const OpenArtifacts& kMadeAtLoad = AllOpen();

std::optional<OpenArtifact> FindOpen(const OfInstance& digest) {
  OpenArtifacts& all = AllOpen();
  MutexLock lock(all.mutex);
  const auto found = all.by_digest.find(digest);
  if (found == all.by_digest.end()) return std::nullopt;
  return found->second;
}

LibraryPtr FindCode(const OfInstance& code) {
  OpenArtifacts& all = AllOpen();
  MutexLock lock(all.mutex);
  const auto found = all.by_code.find(code);
  return found == all.by_code.end() ? nullptr : found->second;
}

// If two threads open the same code, the first one wins, so that both see the same addresses; what begins anew wins
// over what was open.
OpenArtifact Remember(const OfInstance& digest, const OfInstance& code, bool begins_anew, OpenArtifact artifact) {
  OpenArtifacts& all = AllOpen();
  MutexLock lock(all.mutex);
  if (begins_anew) {
    const LibraryPtr former = std::exchange(all.by_code[code], artifact.library);
    absl::erase_if(all.by_digest, [&](const auto& open) { return open.second.library == former; });
  }
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

bool IsOpen(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

std::string PathOf(int file) { return StrCat("/proc/self/fd/", file); }

// Moves the file to a descriptor whose path the loader does not know. It knows a library by its path, and an
// application may have closed the descriptor of one that is still open. -1 if there is no descriptor left.
int WithNewPath(int file) {
  while (file >= 0 && IsOpen(PathOf(file))) {
    const int next = fcntl(file, F_DUPFD_CLOEXEC, file + 1);
    close(file);
    file = next;
  }
  return file;
}

// Opens a copy, because the loader opens a file once only. Null if the system forbids to run memory. The file of the
// copy stays open, so that its path stays its own.
void* OpenCopy(std::string_view library) {
  const int file = WithNewPath(memfd_create("kernix.so", MFD_CLOEXEC));
  if (file < 0) return nullptr;
  std::string_view rest = library;
  while (!rest.empty()) {
    const ssize_t written = write(file, rest.data(), rest.size());
    if (written <= 0 && errno != EINTR) break;
    rest.remove_prefix(static_cast<size_t>(std::max<ssize_t>(written, 0)));
  }
  void* handle = rest.empty() ? dlopen(PathOf(file).c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (handle == nullptr) close(file);
  return handle;
}

absl::StatusOr<LibraryPtr> Open(const Artifact& artifact, const ElfFile& file, const LibraryDirectories& directories) {
  const absl::StatusOr<std::vector<std::string>> needed = file.image().NeededLibraries();
  if (!needed.ok()) return LoaderError(ToStd(needed.status().message()));
  if (NeedsMoreThanTheSystem(*needed)) KERNIX_RETURN_IF_ERROR(OpenNeeded(directories(), *needed));
  void* handle = IsOpen(artifact.path) ? OpenCopy(file.bytes()) : nullptr;
  if (handle == nullptr) handle = dlopen(artifact.path.c_str(), RTLD_NOW | RTLD_LOCAL);
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
  const OfInstance digest(artifact.digest, artifact.instance);
  if (!artifact.begins_anew) {
    if (std::optional<OpenArtifact> open = FindOpen(digest)) return *std::move(open);
  }
  KERNIX_ASSIGN_OR_RETURN(ElfFile file, Map(artifact.path));
  const OfInstance code(CodeDigest(file.image()).value_or(artifact.digest), artifact.instance);
  LibraryPtr library = artifact.begins_anew ? nullptr : FindCode(code);
  if (library == nullptr) {
    KERNIX_ASSIGN_OR_RETURN(library, Open(artifact, file, directories));
  }
  return Remember(digest, code, artifact.begins_anew,
                  {std::move(library), std::make_shared<const ElfFile>(std::move(file))});
}

}  // namespace kernix
