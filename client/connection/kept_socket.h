// SPDX-License-Identifier: Apache-2.0
//
// The connection that a process keeps from one lookup to the next.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "common/os/file_identity.h"
#include "common/os/fork_safety.h"
#include "common/os/unique_fd.h"

namespace kernix {

// Holds at most one socket. Thread-safe.
class KeptSocket {
 public:
  // Never destroyed.
  static KeptSocket& OfProcess();

  // The socket that is kept for `place`, which is then the caller's. None if another one is kept, if it is the parent's
  // (a child has the descriptors of its parent, but must not read what the parent waits for), or if the application has
  // closed it: its number may be another file's by now.
  UniqueFd Take(const std::string& place);

  // Keeps `socket` in place of the one before it.
  void Keep(std::string place, UniqueFd socket);

  // Ends a connection that this process has made. Closing alone is not enough if another thread has forked.
  static void End(UniqueFd socket);

 private:
  struct Kept {
    std::string place;
    UniqueFd socket;
    std::optional<FileId> id;
    pid_t owner = 0;
  };

  // Forgets what `kept` has, without closing what is not ours.
  static void Drop(Kept kept);

  ForkSafeMutex mutex_;
  Kept kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix
