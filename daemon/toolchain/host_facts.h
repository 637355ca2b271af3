// SPDX-License-Identifier: Apache-2.0
//
// Facts about this host that flags depend on, each found out once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "daemon/toolchain/file_digests.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::toolchain {

// Thread-safe.
class HostFacts {
 public:
  explicit HostFacts(Env& env) : env_(env), digests_(env) {}

  FileDigests& digests() { return digests_; }

  // The meaning of a compiler's `flag` on this processor: "-march=native" -> "-march=znver3", "-mavx2", .... TOOLCHAIN
  // if the compiler does not report it.
  absl::StatusOr<std::vector<std::string>> ExpandNative(const HostCompiler& compiler, const std::string& flag);

 private:
  Env& env_;
  FileDigests digests_;
  Mutex mutex_;
  std::map<std::string, std::vector<std::string>> native_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::toolchain
