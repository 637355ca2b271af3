// SPDX-License-Identifier: Apache-2.0
//
// The artifact cache: files named by digest, and an SQLite index of which action key they answer.
//
//   <directory>/version                 the layout's number
//   <directory>/artifacts/abcd....so    content, by SHA-256; read-only once there
//   <directory>/private/                0700; nobody but the store's owner gets at what follows
//     lock, owner                       held by the one process that uses the store, and who that is
//     index.sqlite                      WAL. Who can open its files can hold up every commit
//     tmp/                              scratch folders; emptied at start
//
// Others, where the folder's mode lets them in, can open an artifact whose digest they know, and not list them. A store
// of layout 1 (see old_store.h) is taken over.
//
// Crash safety: a blob is written beside its place, synced and renamed before the index names it. A file that the index
// does not name is garbage and is removed at the next start; an entry whose file is missing or damaged is dropped when
// it is met.
//
// Only the daemon writes here. Thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/os/env.h"
#include "common/os/known_file.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::cache {

// A header of the toolchain that a build read, with the content that it had.
struct ToolchainHeader {
  std::string path;
  Digest digest;
};

// Who asked for a key, under which name.
struct Label {
  std::string name;
  uid_t owner = 0;
  auto operator<=>(const Label&) const = default;
};

// What the index knows of an artifact. A key that was loaded under several names, or by several users, is one such
// record with several labels; what a user sees, counts and purges as "an entry" is a key under one label.
struct Entry {
  Digest key;
  Digest artifact;
  uint64_t size = 0;
  Label label;  // the first one when it is inserted, one of them in a list; Find() leaves it empty
  v1::Language language = v1::LANGUAGE_CPP;
  std::vector<std::string> architectures;
  std::vector<v1::ResolvedFunction> functions;
  std::vector<std::string> required_symbol_versions;
  std::vector<ToolchainHeader> toolchain_headers;
  int64_t created_unix_ms = 0;
  int64_t last_used_unix_ms = 0;
  uint64_t hits = 0;
};

// Which counter to move; the names of GetCacheStatsResponse.
enum class Counter { kBuilds, kHits, kMisses, kJoined, kFailures, kEvictions, kCancelled };

struct ListFilter {
  std::optional<std::string> name;
  std::optional<uid_t> owner;
};

struct PurgeFilter {
  std::optional<std::string> name;
  std::optional<uid_t> owner;
  std::optional<uint64_t> not_used_for_ms;
};

struct PurgeResult {
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

struct CacheOptions {
  std::string directory;
  uint64_t limit_bytes = 10ull << 30;
  // How long the file of an artifact stays after Find() or Insert() gave it out, though its entry may go: time for the
  // client to open it. What is left over goes with a Flush() after that, or at the next start.
  Duration lend_time{0};
};

class Cache {
 public:
  // Makes the folder when absent (mode 0700; the folder's mode decides who can open artifacts). RESOURCE errors, naming
  // the path: cannot be made or written; held by another kernixd (status code kUnavailable); a layout of a newer
  // kernix; holds files of somebody else under the names above. A damaged index is moved aside (kept, with a warning in
  // the log) and a new one started.
  static absl::StatusOr<std::unique_ptr<Cache>> Open(Env& env, CacheOptions options);
  virtual ~Cache() = default;

  // The entry of `key`, or nullopt. Its artifact is there, whole; an entry whose file is missing or damaged is dropped.
  // A file that cannot be read just now (no descriptor left, a failing disk) is an error, and its entry stays. Does not
  // count as a use.
  virtual absl::StatusOr<std::optional<Entry>> Find(const Digest& key) = 0;

  // Notes a hit for the entry (last use, hits, one more label if `label` is new) and counts it. Cheap: written to disk
  // later, at the latest by Flush().
  virtual void Touch(const Digest& key, const Label& label) = 0;

  // Notes the label alone, likewise: for all who waited for one build, which was made under the name of one of them.
  virtual void AddLabel(const Digest& key, const Label& label) = 0;

  // `user` was given `artifact`, and is about to open or to fetch it: for the lend time it is theirs (see Owns()) and
  // its file stays, whatever becomes of the entry. Before the user hears of it.
  virtual void Lend(const Digest& artifact, uid_t user) = 0;

  // Whether `user` has an entry of `artifact`, one that is not on the disk yet included, or was given it just now.
  virtual absl::StatusOr<bool> Owns(uid_t user, const Digest& artifact) = 0;

  // Stores `artifact` and commits `entry` (whose artifact, size and times are filled in), replacing an older entry of
  // the same key (whose labels stay), counts a build, and evicts down to the limit, never the entry just made. When
  // this returns OK, the entry survives kill -9 and power loss.
  virtual absl::Status Insert(Entry entry, std::string_view artifact) = 0;

  // Drops one entry (its file goes when no other entry names it).
  virtual absl::Status Remove(const Digest& key) = 0;

  // Where the content of `digest` is, whether or not it is there.
  virtual std::string BlobPath(const Digest& digest) const = 0;

  // A blob with the content that its name says, open: what becomes of its name while it is read does no harm. NOT_FOUND
  // when there is none.
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> OpenBlob(const Digest& digest) = 0;

  // One for each label that matches. Hits and times are those of the key, whoever used it.
  virtual absl::StatusOr<std::vector<Entry>> List(const ListFilter& filter) = 0;

  // Takes away the labels that match, and counts them. A key without a label left goes, and its artifact with the last
  // key that names it.
  virtual absl::StatusOr<PurgeResult> Purge(const PurgeFilter& filter) = 0;

  // Written to disk later, as Touch(). kBuilds, kHits and kEvictions are counted by the cache itself.
  virtual void Count(Counter counter, uint64_t n = 1) = 0;
  virtual absl::StatusOr<v1::GetCacheStatsResponse> Stats() = 0;

  // What earlier processes found out of files outside the store (the compilers'), and what this one has.
  virtual absl::StatusOr<std::vector<KnownFile>> LoadKnownFiles() = 0;
  virtual absl::Status SaveKnownFiles(const std::vector<KnownFile>& files) = 0;

  // Writes pending uses and counters. Called now and then and at the end.
  virtual absl::Status Flush() = 0;

  virtual const std::string& directory() const = 0;
  // A folder for scratch files, emptied at start.
  virtual std::string scratch_directory() const = 0;
};

}  // namespace kernix::cache
