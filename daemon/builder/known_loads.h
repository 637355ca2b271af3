// SPDX-License-Identifier: Apache-2.0
//
// What is known of loads that were looked up before. Processes that load the same kernels send the same requests, and
// the daemon need not check and plan them each time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "daemon/request/request.h"
#include "daemon/toolchain/toolchain.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::build {

// What a lookup needs to know of a load. It follows from the request, its toolchain and the files that its flags name.
struct KnownLoad {
  Digest key;
  toolchain::ToolchainPtr toolchain;
  std::vector<v1::LoadWarning> warnings;
};

using KnownLoadPtr = std::shared_ptr<const KnownLoad>;

// The digest of all that a request holds.
Digest DigestOfRequest(const v1::LoadRequest& request);

// Whether checking `request` has looked at files that are not the toolchain's: libraries and objects that its flags
// name, which may be others by the next load, or nvdisasm.
bool DependsOnFiles(const BuildRequest& request);

// Keeps loads by the digest of their request, at most `limit`; the next one replaces them all. Thread-safe.
class KnownLoads {
 public:
  // Loads with longer warnings are not kept.
  static constexpr size_t kMostWarningBytes = 4096;

  explicit KnownLoads(size_t limit) : limit_(limit) {}

  // Null if the load is not known, or was made with another toolchain.
  KnownLoadPtr Find(const Digest& request, const toolchain::ToolchainPtr& toolchain);

  void Add(const Digest& request, KnownLoadPtr load);

 private:
  const size_t limit_;
  Mutex mutex_;
  absl::flat_hash_map<Digest, KnownLoadPtr> loads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::build
