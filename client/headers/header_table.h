// SPDX-License-Identifier: Apache-2.0
//
// The facts about header files that this process and earlier ones of this user have read: a fresh process then reads
// very little of a tree with thousands of headers. Processes share a file of the user, <store>/headers/table.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/cxx/include_scan.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"
#include "common/os/fork_safety.h"

namespace kernix {

// The facts about a header's content that a load needs.
struct HeaderFile {
  Digest digest;
  uint64_t size = 0;
  ScannedText text;
};

using HeaderFilePtr = std::shared_ptr<const HeaderFile>;

// Makes sure that `folder` is writable only by this user, and returns its path.
using PrivateFolder = std::function<absl::StatusOr<std::string>()>;

// One load's view of the table. If the table cannot be read or written, the load reads the headers themselves; that is
// not an error. The table states only what is certain: a file's identity is unchanged, and it was settled when the file
// was read, on a file system that shows all changes immediately. Not thread-safe.
class HeaderTable {
 public:
  // A load opens the table only after it has asked for this many files, and does not save it for fewer. Reading a few
  // headers is faster.
  static constexpr size_t kWorthwhile = 32;
  // When the file would exceed this size, it starts again with the rows that the current load used.
  static constexpr size_t kMaxBytes = 32 << 20;

  // `max_bytes` is for tests.
  HeaderTable(Env& env, PrivateFolder folder, size_t max_bytes = kMaxBytes)
      : env_(env), folder_(std::move(folder)), max_bytes_(max_bytes) {}

  // Returns null if the file is not known.
  HeaderFilePtr Find(const std::string& path, const FileIdentity& identity);

  // Notes that `file` was read. The identity was taken before, and it was settled at that time.
  void Note(const std::string& path, const FileIdentity& identity, const HeaderFile& file);

  // Saves the notes, if there are enough. Rows that another process has saved since this one read the table may be
  // lost.
  void Save();

 private:
  void Open();
  void Parse(const std::string& text);
  bool TellsOfChanges(const std::string& path, uint64_t device);
  std::string Serialize(bool only_used) const;

  struct Entry {
    std::string known;  // see header_table.proto
    bool used = false;  // by this load
  };

  Env& env_;
  const PrivateFolder folder_;
  const size_t max_bytes_;
  std::string path_;  // empty: not opened, or not usable
  bool opened_ = false;
  size_t looked_for_ = 0;
  size_t noted_ = 0;
  absl::flat_hash_map<std::string, Entry> entries_;
  absl::flat_hash_map<uint64_t, bool> local_devices_;
};

// This process's memory of the content of header files, until their identity changes. Thread-safe; reads files outside
// the lock.
class HeaderFiles {
 public:
  explicit HeaderFiles(Env& env = Env::Posix()) : env_(env) {}

  // Returns null if `path` does not exist or is not a regular file, and the status of Env::ReadFile() if it cannot be
  // read. If this process does not know the file, searches `table`, and notes the file there.
  absl::StatusOr<HeaderFilePtr> Get(const std::string& path, HeaderTable& table);

 private:
  struct Known {
    FileIdentity identity;
    HeaderFilePtr file;
  };

  HeaderFilePtr Find(const std::string& path, const FileIdentity& identity);
  void Remember(const std::string& path, const FileIdentity& identity, const HeaderFilePtr& file);

  Env& env_;
  ForkSafeMutex mutex_;
  absl::flat_hash_map<std::string, Known> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix
