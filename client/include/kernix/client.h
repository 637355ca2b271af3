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
#include "kernix/trace.h"

namespace kernix {

// Where to find the daemon and the compilers. Every field has a useful default.
struct ClientOptions {
  // "unix:/path" or a plain path. If empty: $KERNIX_ADDRESS, the config file, the machine's service, or a daemon of
  // this user that is started on demand, in this order.
  std::string address;
  // A separate store, served by a daemon of this user. If empty: the user's default store.
  std::string store_directory;
  // The kernixd to start. If empty: $KERNIXD, one beside this library, or one on PATH.
  std::string kernixd;
  // Folders that may contain nvcc in the layout of PyPI wheels (a Python's site-packages).
  std::vector<std::string> site_packages;
  std::chrono::milliseconds start_timeout{30'000};
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
  bool shared = false;
  bool draining = false;
  uint32_t running_jobs = 0;
  uint32_t queued_jobs = 0;
};

// A load that has not ended.
struct RunningLoad {
  uint32_t owner = 0;
  std::string name;
  std::vector<std::string> sources;  // labels
  std::string state;                 // "starting", "queued" or "running"
  std::string step;                  // "compile", "link", ...; empty if none runs
  uint32_t steps_done = 0;
  uint32_t steps_total = 0;
  uint32_t queue_position = 0;  // jobs ahead of it, if it is queued
  int64_t elapsed_ms = 0;
};

struct ToolchainHealth {
  std::string name;     // of a registered toolchain; empty for one that a client named
  std::string tools;    // paths and versions
  std::string problem;  // why it cannot be used now; empty if it can
};

struct CacheShare {
  uint32_t owner = 0;
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

// The engine through which a daemon shares results with other nodes.
struct UpstreamStatus {
  std::string address;
  std::string health;           // "not asked yet", "fails" (each time so far), "answers" or "broken"
  int64_t since_unix_ms = 0;    // since when it answers or is broken; else 0
  std::string last_error;       // empty: none yet
  bool reads = false;           // the daemon takes results from it
  bool writes = false;          // the daemon writes results to it
  bool refuses_writes = false;  // it has said that nobody may
  // Where steps run: "local", "remote", "prefer-remote" or "overflow".
  std::string host_compiles;
  std::string device_compiles;
  std::string links;
  std::string refuses_steps;  // why steps for workers do not run there now; empty: they do, or there are none
};

// What a daemon does now, as this user may see it.
struct DaemonActivity {
  std::vector<RunningLoad> loads;  // the oldest first
  uint32_t hidden_loads = 0;       // of other users
  std::vector<ToolchainHealth> toolchains;
  std::vector<CacheShare> cache;  // the largest first
  uint64_t hidden_entries = 0;    // of other users
  std::optional<UpstreamStatus> upstream;
  // What a daemon that a program started has of it, and could not shed: "at most 2 processors". All of its compilers
  // have the same.
  std::vector<std::string> inherited;
};

// The settings that a daemon has read again.
struct ReloadResult {
  std::vector<std::string> applied;
  std::vector<std::string> needs_restart;
};

struct CacheStats {
  uint64_t builds = 0, hits = 0, misses = 0, joined = 0, failures = 0, evictions = 0, cancelled = 0;
  uint64_t upstream_hits = 0;  // of `misses`: loads that were served by a build of another node
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

// An entry with what it was built from and where it lies.
struct CacheEntryDetail {
  struct Function {
    std::string name;
    std::vector<std::string> tokens;  // canonical arg_spec
  };
  CacheEntryInfo entry;
  std::vector<Function> functions;
  std::vector<std::string> build_options;
  std::string toolchain;
  std::string origin;  // address of the upstream that it came from; empty: built by this daemon
  std::string path;    // in the daemon's store
  std::vector<std::string> required_symbol_versions;
};

struct PurgeFilter {
  std::string name;                           // empty: any name
  std::chrono::milliseconds not_used_for{0};  // 0: any age
};

struct PurgeResult {
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

// Thread-safe, and safe around fork(): no connection and no gRPC thread outlives a call. If another thread forks during
// a call, the call pauses and then continues in the parent. A forked child may use the object that it inherited.
class Client {
 public:
  // Does not connect yet. Reads the environment (KERNIXD, KERNIX_ADDRESS, PATH, TMPDIR, XDG_*, ...) for all later
  // calls; no other thread may change the environment during this call.
  static absl::StatusOr<std::unique_ptr<Client>> Create(ClientOptions options = {});
  virtual ~Client() = default;

  // Info(), Stats(), List(), Trace() and Purge() start a daemon if there is none. With `start` false, they return
  // kUnavailable instead.
  virtual absl::StatusOr<DaemonInfo> Info(bool start = true) = 0;
  virtual absl::StatusOr<CacheStats> Stats(bool start = true) = 0;
  virtual absl::StatusOr<std::vector<CacheEntryInfo>> List(const std::string& name = "", bool start = true) = 0;
  // The entries whose key begins with these hexadecimal digits; one element for each tag. Never starts a daemon.
  virtual absl::StatusOr<std::vector<CacheEntryDetail>> Show(const std::string& key_prefix) = 0;
  // Where the time of the build went that made the entry of `key` (all 64 digits). kNotFound if there is no such entry,
  // kFailedPrecondition if it has no trace.
  virtual absl::StatusOr<BuildTrace> Trace(const std::string& key, bool start = true) = 0;
  virtual absl::StatusOr<PurgeResult> Purge(const PurgeFilter& filter, bool start = true) = 0;
  // Loads, toolchains and the cache by user. Never starts a daemon.
  virtual absl::StatusOr<DaemonActivity> Activity() = 0;
  // Has the daemon read its config file again. Only for the daemon's administrators. Never starts a daemon.
  virtual absl::StatusOr<ReloadResult> Reload() = 0;
  // The daemon's counters and histograms since its start, in Prometheus' text format. Only for the daemon's
  // administrators. Never starts a daemon.
  virtual absl::StatusOr<std::string> Metrics() = 0;
  // Waits until the daemon is gone, or until its drain timeout has passed. Returns kUnavailable if there is no daemon.
  virtual absl::Status Shutdown(std::chrono::milliseconds drain_timeout = std::chrono::milliseconds{0}) = 0;

  virtual const ClientOptions& options() const = 0;
};

}  // namespace kernix
