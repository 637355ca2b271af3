// SPDX-License-Identifier: Apache-2.0
//
// The options of a running daemon, some of which change when its config file is read again.
#pragma once

#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "daemon/app/options.h"
#include "daemon/rpc/backend.h"

namespace kernix::server {

// Thread-safe.
class LiveOptions {
 public:
  LiveOptions(ServerOptions options, ReadOptions read)
      : started_(std::move(options)), read_(std::move(read)), latest_(started_) {}

  // As the daemon was started: for what cannot change.
  const ServerOptions& started() const { return started_; }

  bool can_reload() const { return read_ != nullptr; }

  // As they were read last. Only reloadable settings count; see Setting::reloadable.
  ServerOptions Latest() const;

  // Reads the options again, passes them to `apply`, and logs the outcome. FAILED_PRECONDITION without a config file;
  // INVALID_ARGUMENT, with every problem, if the file is wrong. Then nothing changes.
  absl::StatusOr<v1::ReloadResponse> Reload(const std::function<void(const ServerOptions&)>& apply);

 private:
  absl::StatusOr<v1::ReloadResponse> ReadAgain(const std::function<void(const ServerOptions&)>& apply);

  const ServerOptions started_;
  const ReadOptions read_;
  Mutex reloading_;  // held for as long as that takes, perhaps minutes, if compilers hang
  mutable Mutex mutex_ ABSL_ACQUIRED_AFTER(reloading_);
  ServerOptions latest_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::server
