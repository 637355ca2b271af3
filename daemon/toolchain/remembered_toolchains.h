// SPDX-License-Identifier: Apache-2.0
//
// Which toolchains have filled a store, kept in it. Where the store is and they are not, such as in a slim container
// made from the one that built, loads get what the store holds.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "daemon/toolchain/toolchain.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::toolchain {

// Thread-safe. What cannot be written or read is not remembered, and no error.
class RememberedToolchains {
 public:
  // `folders`: of the store, whose folder is made when it is needed, and of those that are only read. Each holds a
  // description of some kilobytes for each toolchain.
  RememberedToolchains(Env& env, std::vector<std::string> folders) : env_(env), folders_(std::move(folders)) {}

  // Writes its description, once for each of this object.
  void Keep(const Toolchain& toolchain);

  // The one that was kept last, in any folder, of those that have what `language` needs, with a state of its
  // description as the only file. Its identity is not set.
  std::optional<Toolchain> Last(v1::Language language) const;

 private:
  Env& env_;
  const std::vector<std::string> folders_;
  Mutex mutex_;
  absl::flat_hash_set<Digest> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::toolchain
