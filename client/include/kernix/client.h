// SPDX-License-Identifier: Apache-2.0
//
// A client of a kernixd, which it finds or starts when first needed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kernix {

// Where to find the daemon and the compilers. Every field has a useful default.
struct ClientOptions {
  // "unix:/path" or a plain path. If empty: $KERNIX_ADDRESS, the machine's service, or a daemon of this user that is
  // started on demand, in this order.
  std::string address;
  // A separate store, served by a daemon of this user. If empty: the user's default store.
  std::string store_directory;
  // The kernixd to start. If empty: $KERNIXD, one beside this library, or one on PATH.
  std::string kernixd;
  // Folders that may contain nvcc in the layout of PyPI wheels (a Python's site-packages).
  std::vector<std::string> site_packages;
  // The program whose loads are remembered, so that after an upgrade of a compiler they are built in the background
  // (docs/production.md). nullopt: this process's executable. Empty: none.
  std::optional<std::string> program;
  std::chrono::milliseconds start_timeout{30'000};
  // Of a call other than a load. A daemon with a large store on a slow disk may take a while to list or purge it.
  std::chrono::milliseconds call_timeout{60'000};
  bool allow_start = true;    // start a daemon if none answers
  bool allow_oneshot = true;  // if no daemon can be started, start a private kernixd for each load
};

struct DaemonInfo {
  std::string address;
  std::string version;
  std::string build_id;
  int64_t pid = 0;
  int64_t uptime_ms = 0;
  std::string store_directory;
  std::vector<std::string> read_stores;  // besides, in the order in which it searches them
  std::string unwritable_store;          // that was named, and cannot be written; empty: it writes that one
  bool shared = false;
  bool draining = false;
  uint32_t running_jobs = 0;
  uint32_t queued_jobs = 0;
};

// Thread-safe, and safe around fork(): no connection and no gRPC thread outlives a call. If another thread forks during
// a call, the call pauses and then continues in the parent. A forked child may use the object that it inherited.
class Client {
 public:
  // Does not connect yet. Reads the environment (KERNIXD, KERNIX_ADDRESS, PATH, TMPDIR, XDG_*, ...) for all later
  // calls; no other thread may change the environment during this call.
  static absl::StatusOr<std::unique_ptr<Client>> Create(ClientOptions options = {});
  virtual ~Client() = default;

  // Starts a daemon if there is none. With `start` false, returns kUnavailable instead.
  virtual absl::StatusOr<DaemonInfo> Info(bool start = true) = 0;
  // Waits until the daemon is gone, or until its drain timeout has passed. Returns kUnavailable if there is no daemon.
  virtual absl::Status Shutdown(std::chrono::milliseconds drain_timeout = std::chrono::milliseconds{0}) = 0;

  virtual const ClientOptions& options() const = 0;
};

}  // namespace kernix
