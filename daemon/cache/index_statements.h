// SPDX-License-Identifier: Apache-2.0
//
// The prepared statements of the index, for connections that change it and connections that read it. Internal to
// index.cc. Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/os/file_identity.h"
#include "daemon/cache/entry.h"
#include "daemon/cache/journal.h"
#include "daemon/cache/sqlite.h"

namespace kernix::cache {

// The fields of an entry's row that refer to data shared with other rows.
struct RowLinks {
  Digest artifact;
  uint64_t size = 0;
  int64_t header_set = 0;
};

// Must be called within a transaction.
class IndexWriter {
 public:
  absl::Status Open(const std::string& path);
  Database& database() { return database_; }

  absl::Status Put(const Entry& entry);
  absl::StatusOr<std::optional<RowLinks>> Links(const Digest& key);
  // Drops the row, its inputs, its trace, and its header set if no other row has it.
  absl::Status Drop(const Digest& key, int64_t header_set);
  absl::StatusOr<bool> IsNamed(const Digest& artifact);
  // The least recently used key with a tag of `user`, and no pinned one, other than `keep`.
  absl::StatusOr<std::optional<Digest>> OldestOf(UserId user, const std::optional<Digest>& keep);

  // The bytes of an entry and of its tags, for each user who has one; and the sums of all entries.
  absl::StatusOr<std::map<UserId, uint64_t>> HoldersOf(const Digest& key);
  absl::StatusOr<std::map<UserId, uint64_t>> Holders();
  // The same sums of what users have pinned.
  absl::StatusOr<std::map<UserId, uint64_t>> Pinned();
  // Returns the number of matching tags.
  absl::StatusOr<uint64_t> SetPinned(const TagFilter& filter, bool pinned);

  // False if the tag exists already, if there is no such key, or if the owner has reached the limit of tags for the
  // key.
  absl::StatusOr<bool> PutTag(const Digest& key, const Tag& tag);
  // Returns the number of tags dropped.
  absl::StatusOr<uint64_t> DropTagsOf(const Digest& key);
  absl::StatusOr<uint64_t> DropTagsOf(const Digest& key, UserId owner);
  absl::StatusOr<uint64_t> DropTags(const TagFilter& filter);
  absl::StatusOr<std::vector<Digest>> Tagged(const TagFilter& filter);
  absl::StatusOr<bool> IsTagged(const Digest& key);

  // Returns the number of new tags.
  absl::StatusOr<uint64_t> PutUse(const Digest& key, const PendingUse& use);

  absl::StatusOr<Totals> ReadTotals();
  absl::Status Count(Total total, uint64_t n);

  // How much of the file is in use.
  absl::StatusOr<uint64_t> UsedBytes();

  absl::StatusOr<std::vector<KnownFile>> KnownFiles();
  absl::Status PutKnownFile(const KnownFile& file);
  // Removes unreadable rows, and all rows if there are too many.
  absl::Status TidyKnownFiles();

 private:
  absl::StatusOr<int64_t> PutHeaders(const std::string& headers);

  // The statements are destroyed before their database: members are destroyed from last to first.
  Database database_;
  Statement put_headers_, headers_id_, drop_headers_;
  Statement put_, put_inputs_, put_trace_, links_, named_, drop_, drop_inputs_, drop_trace_;
  Statement put_tag_, drop_tags_of_, drop_tags_of_owner_, drop_tags_, set_pinned_, tagged_, is_tagged_;
  Statement oldest_of_, holders_of_, holders_, pinned_, use_, totals_, count_, used_bytes_;
  Statement known_files_, put_known_file_;
};

class IndexReader {
 public:
  absl::Status Open(const std::string& path);

  absl::StatusOr<std::optional<Entry>> Find(const Digest& key);
  absl::StatusOr<std::vector<ListedEntry>> List(const TagFilter& filter);
  absl::StatusOr<ListWeight> Weigh(const TagFilter& filter);
  absl::StatusOr<std::vector<v1::CacheShare>> Shares(std::optional<UserId> owner);
  absl::StatusOr<std::vector<BuiltFrom>> Recent(const Tag& tag, size_t limit);
  absl::StatusOr<std::string> TraceOf(const Digest& key);
  absl::StatusOr<std::vector<Digest>> KeysOf(const Digest& artifact);
  absl::StatusOr<bool> HasTagOf(UserId owner, const Digest& artifact);
  absl::StatusOr<std::vector<Digest>> Artifacts();
  absl::StatusOr<std::vector<SizedArtifact>> ArtifactsAfter(const Digest& digest, size_t limit);
  absl::StatusOr<bool> IsNamed(const Digest& artifact);

 private:
  Database database_;
  Statement find_, list_, weigh_, shares_, recent_, trace_of_, keys_of_, has_tag_, artifacts_, artifacts_after_, named_;
};

}  // namespace kernix::cache
