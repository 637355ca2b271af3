// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/store_folder.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "daemon/base/error.h"
#include "daemon/base/log.h"
#include "daemon/base/paths.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/strings.h"

namespace kernix::cache {
namespace {

constexpr int kLayout = 1;

constexpr mode_t kBlobFolderMode = 0755;  // the store's own folder decides who gets this far

constexpr char kChooseAnother[] =
    "choose another store with KERNIX_CACHE_DIR, `kernixd --store-directory` or set_cache_dir()";

absl::Status Refuse(std::string message) { return MakeError(v1::ErrorDetail::RESOURCE, message); }

absl::Status HeldError(Env& env, const StorePaths& paths) {
  const absl::StatusOr<std::string> owner = env.ReadFile(paths.owner);
  v1::ErrorDetail detail;
  detail.set_kind(v1::ErrorDetail::RESOURCE);
  detail.set_code(static_cast<int>(absl::StatusCode::kUnavailable));
  detail.set_message(StrCat("the store ", paths.directory, " is in use by another kernixd",
                            owner.ok() ? StrCat(" (", absl::StripAsciiWhitespace(*owner), ")") : "",
                            ": stop that one with `kernixctl shutdown`, or ", kChooseAnother));
  return MakeError(std::move(detail));
}

absl::StatusOr<std::unique_ptr<FileLock>> TakeLock(Env& env, const StorePaths& paths) {
  absl::StatusOr<std::unique_ptr<FileLock>> lock = env.TryLockFile(paths.lock);
  if (absl::IsUnavailable(lock.status())) return HeldError(env, paths);
  if (!lock.ok()) return StoreError(paths.directory, lock.status());
  const absl::Status noted = env.WriteFile(paths.owner, StrCat("process ", ::getpid(), "\n"), 0644);
  if (!noted.ok()) return StoreError(paths.directory, noted);
  return lock;
}

absl::Status CheckLayout(const StorePaths& paths, std::string_view text) {
  int layout = 0;
  if (!absl::SimpleAtoi(ToAbsl(text), &layout) || layout < 1) {
    return Refuse(StrCat(paths.version, " does not hold the number of a layout: ", paths.directory,
                         " is no kernix store; ", kChooseAnother));
  }
  if (layout > kLayout) {
    return Refuse(StrCat("the store ", paths.directory, " was made by a newer kernix (layout ", layout,
                         ", this one knows up to ", kLayout, "): upgrade this kernix, or ", kChooseAnother));
  }
  return absl::OkStatus();
}

// What lies in a store is run by those who load it, so nobody else may put it there.
absl::Status CheckOwner(Env& env, const StorePaths& paths) {
  const absl::Status status = CheckGuardedDirectory(env, paths.directory, ::geteuid());
  if (!absl::IsPermissionDenied(status)) return StoreError(paths.directory, status);
  return Refuse(StrCat(status.message(), ". Or ", kChooseAnother));
}

bool IsEmptyFolder(Env& env, const std::string& path) {
  const absl::StatusOr<std::vector<std::string>> names = env.ListDirectory(path);
  return names.ok() && names->empty();
}

// We are about to delete things by name, so they had better be ours.
absl::Status CheckNothingForeign(Env& env, const StorePaths& paths) {
  for (const std::string& path : {paths.blobs, paths.index, paths.scratch}) {
    if (!env.Stat(path, /*follow=*/false).ok() || IsEmptyFolder(env, path)) continue;
    return Refuse(StrCat(paths.directory, " is no kernix store (no file \"version\") but has a \"", Basename(path),
                         "\" that kernix would write to: ", kChooseAnother));
  }
  return absl::OkStatus();
}

// The version comes before anything is in the folders, so that a crash on the way leaves a store that counts as ours;
// and after the folder of the blobs, so that its sync takes that along.
absl::Status MakeLayout(Env& env, const StorePaths& paths) {
  KERNIX_RETURN_IF_ERROR(env.CreateDirectories(paths.blobs, kBlobFolderMode));
  return env.WriteFileDurably(paths.version, StrCat(kLayout, "\n"), 0644);
}

absl::Status SettleLayout(Env& env, const StorePaths& paths) {
  const absl::StatusOr<std::string> version = env.ReadFile(paths.version);
  if (version.ok()) return CheckLayout(paths, *version);
  if (!absl::IsNotFound(version.status())) return StoreError(paths.directory, version.status());
  KERNIX_RETURN_IF_ERROR(CheckNothingForeign(env, paths));
  return StoreError(paths.directory, MakeLayout(env, paths));
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
                           "): restart kernixd, which moves a damaged index aside"));
    default:
      return Refuse(StrCat("the store ", directory, " does not work (", status.message(), "): ", kChooseAnother));
  }
}

StorePaths::StorePaths(const std::string& store)
    : directory(store),
      version(JoinPath(store, "version")),
      lock(JoinPath(store, "lock")),
      owner(JoinPath(store, "owner")),
      blobs(JoinPath(store, "blobs")),
      index(JoinPath(store, "index.sqlite")),
      scratch(JoinPath(store, "tmp")) {}

absl::StatusOr<std::unique_ptr<FileLock>> ClaimStore(Env& env, const StorePaths& paths) {
  KERNIX_RETURN_IF_ERROR(StoreError(paths.directory, env.CreateDirectories(paths.directory, 0700)));
  KERNIX_RETURN_IF_ERROR(CheckOwner(env, paths));
  KERNIX_ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock, TakeLock(env, paths));
  KERNIX_RETURN_IF_ERROR(SettleLayout(env, paths));
  // A compiler that outlived a killed daemon may still write there: what it leaves is removed another time.
  if (const absl::Status removed = env.RemoveTree(paths.scratch); !removed.ok()) {
    Log(LogLevel::kWarning, "scratch-not-emptied", {{"error", removed.ToString()}});
  }
  KERNIX_RETURN_IF_ERROR(StoreError(paths.directory, env.CreateDirectories(paths.scratch, 0700)));
  return lock;
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

}  // namespace kernix::cache
