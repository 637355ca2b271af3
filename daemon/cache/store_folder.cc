// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/store_folder.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "common/base/digest.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/file_identity.h"
#include "common/os/folders.h"
#include "common/os/private_directory.h"
#include "daemon/cache/index_schema.h"

namespace kernix::cache {
namespace {

// Another layout gets another number. Stores that have another number are refused.
constexpr int kLayout = 1;

// A kernixd that lost its socket ends at once; the next one waits for that. If the wait fails, its client knows within
// a second.
constexpr Duration kPatience{800};

// The store's own folder decides who gets this far. These users can open artifacts that the daemon has told them of,
// but cannot see what else there is.
constexpr mode_t kBlobFolderMode = 0711;

constexpr char kChooseAnother[] =
    "choose another store with KERNIX_CACHE_DIR, `kernixd --store-directory` or set_cache_dir()";

absl::Status Refuse(std::string message) { return MakeError(v1::ErrorDetail::RESOURCE, message); }

// `holder`: who it is, in words.
absl::Status HeldError(const StorePaths& paths, const std::string& holder) {
  return MakeError(v1::ErrorDetail::RESOURCE,
                   StrCat("the store ", paths.directory, " is in use by another kernixd",
                          holder.empty() ? "" : StrCat(" (", holder, ")"),
                          ": stop that one with `kernixctl shutdown`, or ", kChooseAnother),
                   absl::StatusCode::kUnavailable);
}

absl::StatusOr<std::unique_ptr<FileLock>> TakeLock(Env& env, const StorePaths& paths, const std::string& socket) {
  absl::StatusOr<std::unique_ptr<FileLock>> lock = env.LockFile(paths.lock, env.Now() + kPatience);
  if (absl::IsDeadlineExceeded(lock.status())) return HeldError(paths, DescribeStoreHolder(env, paths.directory));
  if (!lock.ok()) return StoreError(paths.directory, lock.status());
  const absl::Status noted = NoteStoreHolder(env, paths.directory, socket);
  if (!noted.ok()) return StoreError(paths.directory, noted);
  return lock;
}

absl::Status CheckLayout(const StorePaths& paths, std::string_view text) {
  int layout = 0;
  if (!absl::SimpleAtoi(ToAbsl(text), &layout)) {
    return Refuse(StrCat(paths.version, " does not contain a layout number: ", paths.directory,
                         " is not a kernix store, or a damaged one. Remove that file if it is one, or ",
                         kChooseAnother));
  }
  if (layout == kLayout) return absl::OkStatus();
  return StoreError(paths.directory, MadeByAnother("layout", layout, kLayout));
}

absl::Status OwnerError(const StorePaths& paths, const absl::Status& status) {
  if (!absl::IsPermissionDenied(status)) return StoreError(paths.directory, status);
  return Refuse(StrCat(status.message(), ". Or ", kChooseAnother));
}

// Before the store's folder is made, so that none is left where it may not be: root's in somebody's home, say.
absl::Status CheckWay(Env& env, const StorePaths& paths) {
  std::string folder = paths.directory;
  while (absl::IsNotFound(env.Stat(folder).status()) && Dirname(folder) != folder) folder = Dirname(folder);
  const absl::Status way = GuardedRealPath(env, folder, {::geteuid()}).status();
  return OwnerError(paths, way.ok() ? way
                                    : absl::Status(way.code(), StrCat("cannot make the store ", paths.directory, ": ",
                                                                      way.message())));
}

// Users run the artifacts in a store, so no other user may put files there.
absl::Status CheckOwner(Env& env, const StorePaths& paths) {
  absl::Status status = GuardedRealPath(env, paths.directory, {::geteuid()}).status();
  if (status.ok()) status = CheckGuardedDirectory(env, paths.directory, ::geteuid());
  return OwnerError(paths, status);
}

using IsOurs = bool (*)(std::string_view name);

// Whether there is nothing at `path`, or a folder that contains only our files.
bool HoldsOnly(Env& env, const std::string& path, IsOurs is_ours) {
  if (absl::IsNotFound(env.Stat(path, /*follow=*/false).status())) return true;
  const absl::StatusOr<std::vector<std::string>> names = env.ListDirectory(path);
  return names.ok() && std::all_of(names->begin(), names->end(), is_ours);
}

// Also one that was not complete yet.
bool IsBlob(std::string_view name) { return Digest::FromHex(name.substr(0, name.find('.'))).ok(); }

bool IsPrivateFile(std::string_view name) {
  const StorePaths paths("");
  const std::string ours[] = {paths.lock, paths.steps, paths.toolchains, paths.scratch, kHolderFile, kRunFolder};
  return name.starts_with(Basename(paths.index)) ||
         std::any_of(std::begin(ours), std::end(ours), [&](const std::string& path) { return name == Basename(path); });
}

// See MakeScratchFolder() and Env::MakeScratchFile().
bool IsScratch(std::string_view name) {
  return name.starts_with("action-") || name.starts_with("tree-") || name.starts_with("scratch-");
}

// We are about to delete files by name, so they must be ours. A store of which somebody has removed a part may have
// lost its version. What is left of it, and what a daemon that had it open has made there since, is known by its names.
absl::Status CheckNothingForeign(Env& env, const StorePaths& paths) {
  const std::pair<std::string, IsOurs> places[] = {
      {paths.blobs, IsBlob},      {paths.private_directory, IsPrivateFile},
      {paths.steps, IsBlob},      {paths.toolchains, IsBlob},
      {paths.scratch, IsScratch},
  };
  for (const auto& [path, is_ours] : places) {
    if (HoldsOnly(env, path, is_ours)) continue;
    return Refuse(StrCat(paths.directory, " is not a kernix store (it has no file \"version\") but has a \"",
                         Basename(path), "\" that kernix would write to: ", kChooseAnother));
  }
  return absl::OkStatus();
}

// Whether the folder is a store. If not, it can become one.
absl::StatusOr<bool> HasLayout(Env& env, const StorePaths& paths) {
  const absl::StatusOr<std::string> version = env.ReadFile(paths.version);
  if (absl::IsNotFound(version.status())) {
    KERNIX_RETURN_IF_ERROR(CheckNothingForeign(env, paths));
    return false;
  }
  if (!version.ok()) return StoreError(paths.directory, version.status());
  KERNIX_RETURN_IF_ERROR(CheckLayout(paths, *version));
  return true;
}

// Writes the version before anything is in the folders, so that a crash leaves a store that is recognised as ours; and
// after the blobs' folder, so that the version's sync covers that folder.
absl::Status MakeLayout(Env& env, const StorePaths& paths) {
  KERNIX_ASSIGN_OR_RETURN(const bool is_there, HasLayout(env, paths));
  KERNIX_RETURN_IF_ERROR(StoreError(paths.directory, env.CreateDirectories(paths.blobs, kBlobFolderMode)));
  if (is_there) return absl::OkStatus();
  return StoreError(paths.directory, env.WriteFileDurably(paths.version, StrCat(kLayout, "\n"), 0644));
}

absl::Status MakePrivateDirectory(Env& env, const StorePaths& paths) {
  KERNIX_RETURN_IF_ERROR(StoreError(paths.directory, env.CreateDirectories(paths.private_directory, 0700)));
  const absl::Status status = EnsurePrivateDirectory(env, paths.private_directory, ::geteuid());
  return status.ok() ? status : Refuse(StrCat(Sentence(status), " Or ", kChooseAnother));
}

}  // namespace

absl::Status StoreError(const std::string& directory, const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return status;
    case absl::StatusCode::kResourceExhausted:
      return Refuse(StrCat("no room in the store ", directory, " (", status.message(),
                           "): free space, for example with `kernixctl cache purge`, or ", kChooseAnother));
    case absl::StatusCode::kPermissionDenied:
      return Refuse(StrCat("the store ", directory, " cannot be written (", status.message(),
                           "): make it writable, or ", kChooseAnother));
    case absl::StatusCode::kDataLoss:
      return Refuse(StrCat("the store ", directory, " is damaged (", status.message(),
                           "): restart kernixd, which moves a damaged index aside and takes its copy"));
    default:
      return Refuse(StrCat("the store ", directory, " does not work (", status.message(), "): ", kChooseAnother));
  }
}

StorePaths::StorePaths(const std::string& store)
    : directory(store),
      version(JoinPath(store, "version")),
      blobs(JoinPath(store, "artifacts")),
      private_directory(JoinPath(store, kPrivateFolder)),
      lock(JoinPath(private_directory, "lock")),
      index(JoinPath(private_directory, "index.sqlite")),
      index_copy(StrCat(index, ".copy")),
      steps(JoinPath(private_directory, "steps")),
      toolchains(JoinPath(private_directory, "toolchains")),
      scratch(JoinPath(private_directory, "tmp")) {}

absl::StatusOr<std::unique_ptr<FileLock>> ClaimStore(Env& env, const StorePaths& paths, const std::string& socket) {
  KERNIX_RETURN_IF_ERROR(CheckWay(env, paths));
  KERNIX_RETURN_IF_ERROR(StoreError(paths.directory, env.CreateDirectories(paths.directory, 0700)));
  KERNIX_RETURN_IF_ERROR(CheckOwner(env, paths));
  KERNIX_RETURN_IF_ERROR(HasLayout(env, paths).status());  // before anything is written there
  KERNIX_RETURN_IF_ERROR(MakePrivateDirectory(env, paths));
  KERNIX_ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock, TakeLock(env, paths, socket));
  KERNIX_RETURN_IF_ERROR(MakeLayout(env, paths));
  // A compiler that outlived a killed daemon may still write there: what it leaves is removed later.
  if (const absl::Status removed = env.RemoveTree(paths.scratch); !removed.ok()) {
    Log(LogLevel::kWarning, "scratch_not_emptied", {{"error", removed.ToString()}});
  }
  KERNIX_RETURN_IF_ERROR(StoreError(paths.directory, env.CreateDirectories(paths.scratch, 0700)));
  return lock;
}

// Of an index without a log, nothing is missing.
std::unique_ptr<OwnFiles> FilesOfStore(Env& env, const StorePaths& paths) {
  auto files = std::make_unique<OwnFiles>(env);
  for (const std::string& path : {paths.directory, paths.version, paths.blobs, paths.private_directory, paths.lock,
                                  JoinPath(paths.private_directory, kHolderFile), paths.index,
                                  StrCat(paths.index, "-wal"), StrCat(paths.index, "-shm"), paths.scratch}) {
    files->Add(path);
  }
  return files;
}

absl::Status MoveIndexAside(Env& env, const StorePaths& paths) {
  for (const char* suffix : {"", "-wal", "-shm"}) {
    const std::string from = StrCat(paths.index, suffix);
    const std::string to = StrCat(paths.index, ".damaged", suffix);
    KERNIX_RETURN_IF_ERROR(env.RemoveTree(to));
    if (!env.Stat(from, /*follow=*/false).ok()) continue;
    KERNIX_RETURN_IF_ERROR(env.Rename(from, to));
  }
  return absl::OkStatus();
}

namespace {

constexpr mode_t kBlobMode = 0444;

// The suffix of a blob's file after its digest: debuggers and profilers expect it for libraries.
constexpr char kBlobSuffix[] = ".so";

}  // namespace

std::string BlobFolder::PathOf(const Digest& digest) const {
  return JoinPath(directory_, StrCat(digest.Hex(), kBlobSuffix));
}

absl::Status BlobFolder::Put(const Digest& digest, std::string_view content) {
  if (IsSound(digest, content.size()).value_or(false)) return absl::OkStatus();
  const std::string path = PathOf(digest);
  KERNIX_RETURN_IF_ERROR(env_.WriteFileDurably(path, content, kBlobMode));
  KERNIX_ASSIGN_OR_RETURN(const FileIdentity identity, IdentityOf(env_, path, /*follow=*/false));
  Remember(digest, identity);
  return absl::OkStatus();
}

absl::StatusOr<bool> BlobFolder::IsSound(const Digest& digest, uint64_t size) {
  const std::string path = PathOf(digest);
  const absl::StatusOr<FileInfo> info = env_.Stat(path, /*follow=*/false);
  if (absl::IsNotFound(info.status())) return false;
  KERNIX_RETURN_IF_ERROR(info.status());
  if (info->type != FileType::kRegular || info->size != size) return false;
  if (Remembers(digest, FileIdentity::Of(*info))) return true;
  const absl::StatusOr<std::unique_ptr<ReadableFile>> file = env_.OpenFile(path);
  if (absl::IsNotFound(file.status())) return false;
  KERNIX_RETURN_IF_ERROR(file.status());
  return Verify(digest, **file);
}

void BlobFolder::Forget(const Digest& digest) {
  const MutexLock lock(mutex_);
  verified_.erase(digest);
}

absl::StatusOr<std::unique_ptr<ReadableFile>> BlobFolder::Open(const Digest& digest) {
  const std::string path = PathOf(digest);
  KERNIX_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, env_.OpenFile(path));
  KERNIX_ASSIGN_OR_RETURN(const bool sound, Verify(digest, *file));
  if (!sound) return absl::DataLossError(StrCat(path, ": the content does not match the name"));
  return file;
}

absl::StatusOr<bool> BlobFolder::Verify(const Digest& digest, ReadableFile& file) {
  KERNIX_ASSIGN_OR_RETURN(const FileInfo info, file.Stat());
  const FileIdentity identity = FileIdentity::Of(info);
  if (Remembers(digest, identity)) return true;
  KERNIX_ASSIGN_OR_RETURN(const Digest content, DigestOfFile(file));
  if (content != digest) return false;
  Remember(digest, identity);
  return true;
}

absl::Status BlobFolder::Remove(const Digest& digest) {
  Forget(digest);
  const absl::Status status = env_.RemoveFile(PathOf(digest));
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<absl::flat_hash_set<Digest>> BlobFolder::RemoveAllBut(const absl::flat_hash_set<Digest>& keep) {
  KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names());
  absl::flat_hash_set<Digest> kept;
  for (const std::string& name : names) {
    const absl::StatusOr<Digest> digest = Digest::FromHex(ToStd(absl::StripSuffix(name, kBlobSuffix)));
    if (digest.ok() && JoinPath(directory_, name) == PathOf(*digest) && keep.contains(*digest)) {
      kept.insert(*digest);
    } else {
      KERNIX_RETURN_IF_ERROR(env_.RemoveTree(JoinPath(directory_, name)));
    }
  }
  return kept;
}

void BlobFolder::Remember(const Digest& digest, const FileIdentity& identity) {
  const MutexLock lock(mutex_);
  verified_[digest] = identity;
}

bool BlobFolder::Remembers(const Digest& digest, const FileIdentity& identity) {
  const MutexLock lock(mutex_);
  const auto found = verified_.find(digest);
  return found != verified_.end() && found->second == identity;
}

namespace {

absl::Status Unreadable(const std::string& directory, const absl::Status& why) {
  const std::string remedy =
      absl::IsFailedPrecondition(why)
          ? "make it anew with this kernix"
          : StrCat("make it readable, for example with `chmod -R go+rX ", directory, "` where it was made");
  return MakeError(v1::ErrorDetail::RESOURCE,
                   StrCat("the store ", directory, ", which is only read, cannot be used (", why.message(),
                          "): leave it out of KERNIX_CACHE_DIR or store_directory, or ", remedy));
}

absl::Status CopyFilesOfIndex(Env& env, const StorePaths& from, const std::string& to) {
  for (const char* suffix : {"", "-wal"}) {
    const absl::StatusOr<std::string> content = env.ReadFile(from.index + suffix);
    const bool has_no_log = *suffix != '\0' && absl::IsNotFound(content.status());
    if (has_no_log) {
      env.RemoveFile(to + suffix).IgnoreError();  // of an earlier try
      return absl::OkStatus();
    }
    KERNIX_RETURN_IF_ERROR(content.status());
    KERNIX_RETURN_IF_ERROR(env.WriteFile(to + suffix, *content, 0600));
  }
  return absl::OkStatus();
}

// A kernixd that has the store open may write both files meanwhile.
absl::Status CopyIndex(Env& env, const StorePaths& from, const std::string& to) {
  constexpr int kMostTries = 10;
  const auto states = [&] { return std::pair(StateOf(env, from.index), StateOf(env, from.index + "-wal")); };
  for (int i = 0; i < kMostTries; ++i) {
    const auto before = states();
    KERNIX_RETURN_IF_ERROR(CopyFilesOfIndex(env, from, to));
    if (states() == before) return absl::OkStatus();
  }
  return absl::UnavailableError("somebody writes to it all the time");
}

}  // namespace

absl::StatusOr<Layer> OpenLayer(Env& env, const std::string& directory, const std::string& scratch) {
  const StorePaths paths(directory);
  absl::Status status = GuardedRealPath(env, directory, {::geteuid()}).status();
  if (status.ok()) status = CheckGuardedDirectory(env, paths.blobs, ::geteuid());
  if (status.ok()) status = GuardedRealPath(env, paths.index, {::geteuid()}).status();
  if (status.ok()) status = CopyIndex(env, paths, scratch);
  if (!status.ok()) return Unreadable(directory, status);
  absl::StatusOr<std::unique_ptr<Index>> index = Index::Open(scratch);
  if (!index.ok()) return Unreadable(directory, index.status());
  return Layer{*std::move(index), std::make_unique<BlobFolder>(env, paths.blobs)};
}

}  // namespace kernix::cache
