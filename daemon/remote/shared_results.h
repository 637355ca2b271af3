// SPDX-License-Identifier: Apache-2.0
//
// What nodes share through an upstream, by key: results, and who builds one that several need.
//
// A key does not cover the headers of the toolchain that a build reads: a node takes a result only if its own headers
// are the same. Results of one key with different headers stand side by side, in two levels of the action cache:
//
//   key                           -> file "headers": the names of the headers that builds of this key have read
//   key + digests of this node's
//         headers of such names   -> file "statement" (common/wire/statement.h), and the result's files
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/base/metrics.h"
#include "common/wire/statement.h"
#include "daemon/exec/blob.h"
#include "daemon/remote/upstream.h"

namespace kernix::remote {

struct SharedResult {
  std::vector<StatedHeader> headers;                         // that the build has read, sorted by name
  std::vector<std::pair<std::string, exec::Content>> files;  // names and contents
};

// The digest of this node's header of that portable name; nullopt if it has none.
using DigestOfHeader = std::function<std::optional<Digest>(const std::string& name)>;

// Whom a node believes, and as whom it writes.
struct SharingTrust {
  TrustedKeys trusted;                   // empty: whoever may write to the upstream is believed
  std::optional<SigningKey> signs_with;  // nothing: what this node writes is not signed
};

// Thread-safe. Calls take until their limits, as those of Upstream. A result costs two questions if the engine sends
// small files along with results, else four, and one or two for each further list of headers.
class SharedResults {
 public:
  // Builds of one key seldom read different headers. The oldest list goes.
  static constexpr size_t kMostHeaderLists = 8;

  // `upstream` must outlive it.
  SharedResults(Upstream& upstream, SharingTrust trust) : upstream_(upstream), trust_(std::move(trust)) {}

  // The result of `key` whose headers this node has with the same content. nullopt: there is none, or none that this
  // node believes; files of more than `max_bytes` together count as none, and are not read. Every byte has been checked
  // against a digest, and the digests against the statement, which is signed if `trust` demands that. Errors are the
  // upstream's.
  absl::StatusOr<std::optional<SharedResult>> Find(const Digest& key, const DigestOfHeader& digest_of_header,
                                                   uint64_t max_bytes, const Limits& limits);

  // Writes a result, and the list of its headers if the key does not have it yet. If two nodes add lists to one key at
  // the same moment, one list may be lost; a node that misses the result then builds, and writes the list again.
  absl::Status Put(const Digest& key, const SharedResult& result, const Limits& limits);

  // How long one question takes at most.
  Duration timeout() const { return upstream_.timeout(); }

  // False: the upstream is known to be broken, so that calls would fail at once.
  bool IsAnswered() const { return upstream_.state().health != v1::UpstreamStatus::BROKEN; }

  // The registry must not be read after the object is destroyed.
  void Register(MetricsRegistry& registry) const;

 private:
  using HeaderNames = std::vector<std::string>;
  using Contents = std::map<exec::BlobDigest, exec::Content>;

  absl::StatusOr<std::optional<SharedResult>> FindNow(const Digest& key, const DigestOfHeader& digest_of_header,
                                                      uint64_t max_bytes, const Limits& limits);
  absl::StatusOr<std::vector<HeaderNames>> ReadLists(const Digest& key, const Limits& limits);
  absl::StatusOr<std::optional<SharedResult>> FindWith(const Digest& key, const std::vector<StatedHeader>& headers,
                                                       uint64_t max_bytes, const Limits& limits);
  absl::StatusOr<bool> ReadMissing(const std::vector<exec::BlobDigest>& digests, uint64_t max_bytes,
                                   const Limits& limits, Contents& contents);
  std::nullopt_t NotBelieved(const Digest& key, std::string_view why);
  std::nullopt_t TooLarge(const Digest& key, uint64_t bytes, uint64_t most);
  absl::Status AddList(const Digest& key, HeaderNames names, const Limits& limits);

  Upstream& upstream_;
  const SharingTrust trust_;
  MetricCounter found_;
  MetricCounter absent_;
  MetricCounter other_headers_;
  MetricCounter not_believed_;
  MetricCounter too_large_;
  MetricCounter written_;
};

// Which node builds a key that several need: a note in the action cache, which has no locks.

// The numbers are those of a Claim in shared_result.proto.
enum class ClaimState {
  kBuilding,
  kBuilt,   // the result was written
  kFailed,  // the compiler refuses, or the result cannot be shared: other nodes should build by themselves
  kLeft,    // it is no longer built there: another node should take over
};

struct BuildClaim {
  std::string node;
  uint64_t beat = 0;  // grows while the node builds
  ClaimState state = ClaimState::kBuilding;
  bool operator==(const BuildClaim&) const = default;
};

// Thread-safe. Calls block until their limits, as those of Upstream. Errors are the upstream's.
class BuildClaims {
 public:
  // `node`: a name that no other process has. `upstream` must outlive it.
  BuildClaims(Upstream& upstream, std::string node) : upstream_(upstream), node_(std::move(node)) {}

  const std::string& node() const { return node_; }

  // The last claim of `key`; nullopt: none.
  absl::StatusOr<std::optional<BuildClaim>> Read(const Digest& key, const Limits& limits);

  // Replaces whatever claim there is by one of this node.
  absl::Status Write(const Digest& key, uint64_t beat, ClaimState state, const Limits& limits);

 private:
  Upstream& upstream_;
  const std::string node_;
};

}  // namespace kernix::remote
