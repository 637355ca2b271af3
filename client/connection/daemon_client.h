// SPDX-License-Identifier: Apache-2.0
//
// What a load needs of the client's connection, beyond its public face.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "kernix/client.h"
#include "kernix/load.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

// The content of a header that the request named by digest. Called for headers that the daemon has not got yet.
using BlobProvider = std::function<absl::StatusOr<std::string>(const Digest&)>;

// Client::Create() makes one of these: every Client is a DaemonClient.
class DaemonClient : public Client {
 public:
  // Runs one Load call to its end: finds or starts the daemon (falling back from a shared service that lacks the
  // toolchain to the user's own daemon, with a warning through `callbacks`; and to a oneshot daemon where none can be
  // started), uploads headers, reports progress. A daemon that dies under the call is started again and the call made
  // once more. A fork in another thread interrupts the call, which is then made again. Errors carry the daemon's
  // ErrorDetail.
  virtual absl::StatusOr<v1::LoadResult> SendLoad(const v1::LoadRequest& request, const BlobProvider& blobs,
                                                  const LoadCallbacks& callbacks) = 0;

  // The path of a file with the artifact's content that this process can open: the daemon's own where possible, else a
  // copy streamed once into this user's local store (<cache>/kernix/fetched/<digest>.so), checked against the digest.
  virtual absl::StatusOr<std::string> LocalArtifact(const v1::LoadResult& result) = 0;

  // A folder of this user's store that only this user can change, made when absent, for what clients know of headers:
  // <cache>/kernix/headers.
  virtual absl::StatusOr<std::string> HeaderFolder() = 0;
};

// How often this process has purged a cache or found something gone from one: what it had loaded before may be gone.
uint64_t CacheRemovals();
void CountCacheRemoval();

}  // namespace kernix
