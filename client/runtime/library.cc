// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "common/base/artifact_symbols.h"
#include "common/base/elf_image.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/elf_file.h"
#include "common/os/fork_safety.h"
#include "common/os/posix_error.h"
#include "common/wire/artifact_texts.h"

namespace kernix {
namespace {

// The loader adds the base address to some pointers of a loaded dynamic section and leaves others as in the file.
const char* Address(const dl_phdr_info& object, ElfW(Addr) value) {
  return reinterpret_cast<const char*>(value >= object.dlpi_addr ? value : object.dlpi_addr + value);
}

struct VersionTable {
  const char* definitions = nullptr;
  const char* strings = nullptr;
  uint64_t count = 0;
};

VersionTable FindVersionTable(const dl_phdr_info& object) {
  VersionTable table;
  for (size_t i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_VERDEF) table.definitions = Address(object, entry->d_un.d_ptr);
      if (entry->d_tag == DT_VERDEFNUM) table.count = entry->d_un.d_val;
      if (entry->d_tag == DT_STRTAB) table.strings = Address(object, entry->d_un.d_ptr);
    }
  }
  return table;
}

bool IsRuntimeLibrary(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const char* prefix : {"libc.so", "libm.so", "libstdc++.so", "libc++.so", "libc++abi.so", "libgcc_s.so"}) {
    if (absl::StartsWith(ToAbsl(name), prefix)) return true;
  }
  return false;
}

int AddVersionsOf(dl_phdr_info* object, size_t, void* versions) {
  if (object->dlpi_name == nullptr || !IsRuntimeLibrary(object->dlpi_name)) return 0;
  const VersionTable table = FindVersionTable(*object);
  if (table.definitions == nullptr || table.strings == nullptr) return 0;
  const char* at = table.definitions;
  for (uint64_t i = 0; i < table.count; ++i) {
    const auto* definition = reinterpret_cast<const ElfW(Verdef)*>(at);
    const auto* name = reinterpret_cast<const ElfW(Verdaux)*>(at + definition->vd_aux);
    static_cast<RuntimeVersions*>(versions)->libraries.emplace(table.strings + name->vda_name, object->dlpi_name);
    at += definition->vd_next;
  }
  return 0;
}

// The newest version of a family that exists here, or nullopt if there is none.
std::optional<SymbolVersion> NewestOf(const std::string& family, const RuntimeVersions& runtime) {
  if (family == "GLIBC") return SymbolVersion::Parse(StrCat("GLIBC_", runtime.libc_version));
  std::optional<SymbolVersion> newest;
  for (const auto& [name, path] : runtime.libraries) {
    const std::optional<SymbolVersion> version = SymbolVersion::Parse(name);
    if (!version || version->family != family) continue;
    if (!newest || newest->number < version->number) newest = version;
  }
  return newest;
}

// If `required` is missing, the newest existing version of its family.
std::optional<SymbolVersion> InsteadOf(const std::string& required, const RuntimeVersions& runtime) {
  const std::optional<SymbolVersion> wanted = SymbolVersion::Parse(required);
  if (runtime.libraries.contains(required) || !wanted) return std::nullopt;
  std::optional<SymbolVersion> newest = NewestOf(wanted->family, runtime);
  if (newest && wanted->family == "GLIBC" && wanted->number <= newest->number) return std::nullopt;
  return newest;
}

std::string Describe(const SymbolVersion& version, const RuntimeVersions& runtime) {
  const auto found = runtime.libraries.find(version.name);
  return found == runtime.libraries.end() ? version.name : StrCat(version.name, " (", found->second, ")");
}

}  // namespace

RuntimeVersions LoadedRuntimeVersions() {
  RuntimeVersions versions;
  versions.libc_version = gnu_get_libc_version();
  dl_iterate_phdr(AddVersionsOf, &versions);
  return versions;
}

absl::Status CheckSymbolVersions(const std::vector<std::string>& required, const RuntimeVersions& runtime) {
  std::vector<std::string> missing;
  for (const std::string& version : required) {
    const std::optional<SymbolVersion> instead = InsteadOf(version, runtime);
    if (instead) missing.push_back(StrCat(version, " where this process has ", Describe(*instead, runtime)));
  }
  if (missing.empty()) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::LOAD,
                   StrCat("the compiled kernel needs a newer C or C++ runtime than this process has loaded: ",
                          absl::StrJoin(missing, "; "),
                          ". Compile it with a compiler that fits this environment (set CXX), or run it with the newer "
                          "libstdc++ and glibc (in a conda environment: conda install -c conda-forge libstdcxx-ng)."));
}

namespace {

bool IsDirectory(Env& env, const std::string& path) {
  const absl::StatusOr<FileInfo> info = env.Stat(path);
  return info.ok() && info->type == FileType::kDirectory;
}

absl::StatusOr<std::vector<std::string>> NeededLibraries(const std::string& path) {
  KERNIX_ASSIGN_OR_RETURN(const ElfFile file, ElfFile::Open(path));
  return file.image().NeededLibraries();
}

// Opens each library that is in one of `directories`, once, after the libraries that it needs itself. They stay open
// until the process ends. The loader finds all other libraries.
class Opener {
 public:
  explicit Opener(std::vector<std::string> directories) : directories_(std::move(directories)) {}

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

  const std::vector<std::string> directories_;
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

namespace {

using LibraryPtr = std::shared_ptr<const Library>;
using OfInstance = std::pair<Digest, std::string>;  // of an artifact or of code, and the instance

// The artifacts that this process has open.
struct OpenArtifacts {
  ForkSafeMutex mutex;
  absl::flat_hash_map<OfInstance, OpenArtifact> by_digest ABSL_GUARDED_BY(mutex);
  absl::flat_hash_map<OfInstance, LibraryPtr> by_code ABSL_GUARDED_BY(mutex);
};

std::optional<OpenArtifact> FindOpen(const OfInstance& digest) {
  auto& all = PerProcess<OpenArtifacts>::Get();
  MutexLock lock(all.mutex);
  const auto found = all.by_digest.find(digest);
  if (found == all.by_digest.end()) return std::nullopt;
  return found->second;
}

LibraryPtr FindCode(const OfInstance& code) {
  auto& all = PerProcess<OpenArtifacts>::Get();
  MutexLock lock(all.mutex);
  const auto found = all.by_code.find(code);
  return found == all.by_code.end() ? nullptr : found->second;
}

// If two threads open the same code, the first one wins, so that both see the same addresses; what begins anew wins
// over what was open.
OpenArtifact Remember(const OfInstance& digest, const OfInstance& code, bool begins_anew, OpenArtifact artifact) {
  auto& all = PerProcess<OpenArtifacts>::Get();
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
  for (const char* stem : {"libc", "libm", "libstdc++", "libgcc_s", "libpthread", "libdl", "librt", "ld-linux-x86-64",
                           "ld-linux-aarch64"}) {
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
  if (NeedsMoreThanTheSystem(*needed)) KERNIX_RETURN_IF_ERROR(Opener(directories()).OpenAll(*needed));
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
