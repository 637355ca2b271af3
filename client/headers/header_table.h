// SPDX-License-Identifier: Apache-2.0
//
// What earlier processes of this user have found in header files: a fresh process then reads next to nothing of a tree
// of thousands of them. A file of the user's own, <store>/headers/table.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "client/headers/header_file.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"

namespace kernix {

// Makes sure that `folder` can hold what only we may write, and returns its path.
using PrivateFolder = std::function<absl::StatusOr<std::string>()>;

// What one load sees of the table. What cannot be read or written is no error: the headers are then read themselves.
// Never says more of a file than is sure: its identity is what it was, and settled when the file was read, on a file
// system that tells of all changes at once. Not thread-safe.
class HeaderTable {
 public:
  // Nothing is opened before a load has looked for that many files, nor kept for fewer: reading a few headers is
  // faster.
  static constexpr size_t kWorthwhile = 32;
  // A file that would get larger begins anew, with what the load at hand has needed.
  static constexpr size_t kMaxBytes = 32 << 20;

  // `max_bytes`: for tests.
  HeaderTable(Env& env, PrivateFolder folder, size_t max_bytes = kMaxBytes)
      : env_(env), folder_(std::move(folder)), max_bytes_(max_bytes) {}

  // Null: not known.
  HeaderFilePtr Find(const std::string& path, const FileIdentity& identity);

  // `file` was read when it was settled, after it was as `identity` says.
  void Note(const std::string& path, const FileIdentity& identity, const HeaderFile& file);

  // Keeps what was noted, if that is worthwhile. What another process has kept since this one looked may be lost.
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

}  // namespace kernix
