// SPDX-License-Identifier: Apache-2.0
//
// The connection to a kernixd, which is found or started when it is first needed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kernix {

// Where daemon and compilers may be found. Every field has a sensible default.
struct ClientOptions {
  // "unix:/path", or a bare path. Empty: $KERNIX_ADDRESS, the config file, the machine's service, else a daemon of this
  // user that is started on demand.
  std::string address;
  // A store of one's own: a daemon of this user that serves it. Empty: the user's default store.
  std::string store_directory;
  // The kernixd to start. Empty: $KERNIXD, beside this library, or on PATH.
  std::string kernixd;
  // Folders in which nvcc may lie as PyPI wheels put it (a Python's site-packages).
  std::vector<std::string> site_packages;
  std::chrono::milliseconds start_timeout{30'000};
  bool allow_start = true;    // start a daemon when none answers
  bool allow_oneshot = true;  // when none can be started, one private kernixd a load
};

struct DaemonInfo {
  std::string address;
  std::string version;
  std::string build_id;
  int64_t pid = 0;
  int64_t uptime_ms = 0;
  std::string store_directory;
  bool shared = false;
  bool draining = false;
  uint32_t running_jobs = 0;
  uint32_t queued_jobs = 0;
};

struct CacheStats {
  uint64_t builds = 0, hits = 0, misses = 0, joined = 0, failures = 0, evictions = 0, cancelled = 0;
  uint64_t entries = 0, bytes = 0, limit_bytes = 0;
  std::string store_directory;
};

struct CacheEntryInfo {
  std::string key;
  std::string name;
  std::string language;  // "cpp" or "cuda"
  std::vector<std::string> architectures;
  std::vector<std::string> functions;
  uint64_t size = 0;
  int64_t created_unix_ms = 0;
  int64_t last_used_unix_ms = 0;
  uint64_t hits = 0;
  uint32_t owner = 0;  // the user who loaded it under this name
};

struct PurgeFilter {
  std::string name;                           // empty: of any name
  std::chrono::milliseconds not_used_for{0};  // 0: of any age
};

struct PurgeResult {
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

// Thread-safe, and safe around fork(): no connection and no gRPC thread outlives a call; a call that runs while another
// thread forks is paused and goes on in the parent. A forked child may use the object it inherited.
class Client {
 public:
  // Does not connect yet. What the environment says (KERNIXD, KERNIX_ADDRESS, PATH, TMPDIR, XDG_*, ...) is read here,
  // while no other thread may change it, and holds for all later calls.
  static absl::StatusOr<std::unique_ptr<Client>> Create(ClientOptions options = {});
  virtual ~Client() = default;

  // These start a daemon when there is none, except Info(), Stats(), List(), Purge() and Shutdown() with `start` false:
  // then kUnavailable.
  virtual absl::StatusOr<DaemonInfo> Info(bool start = true) = 0;
  virtual absl::StatusOr<CacheStats> Stats(bool start = true) = 0;
  virtual absl::StatusOr<std::vector<CacheEntryInfo>> List(const std::string& name = "", bool start = true) = 0;
  virtual absl::StatusOr<PurgeResult> Purge(const PurgeFilter& filter, bool start = true) = 0;
  // What the daemon has counted and measured since it started, in Prometheus' text format. For its administrators;
  // never starts one.
  virtual absl::StatusOr<std::string> Metrics() = 0;
  // Waits until the daemon is gone, or its drain timeout has passed.
  virtual absl::Status Shutdown(std::chrono::milliseconds drain_timeout = std::chrono::milliseconds{0}) = 0;

  virtual const ClientOptions& options() const = 0;
};

}  // namespace kernix
