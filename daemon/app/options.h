// SPDX-License-Identifier: Apache-2.0
//
// The settings of kernixd and where they come from: flags take precedence over environment, environment over file.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/paths.h"
#include "common/os/env.h"
#include "daemon/exec/action.h"
#include "daemon/exec/sandbox.h"
#include "daemon/plan/shortcuts.h"
#include "daemon/remote/upstream.h"
#include "daemon/request/toolchain_policy.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::server {

// The engine of the Remote Execution API that this kernixd shares results through: the table [upstream].
struct UpstreamSettings : remote::UpstreamOptions {
  bool read = true;
  bool write = false;
  bool build_once = false;       // lets one node build what several need at the same moment
  std::string trusted_keys;      // Ed25519, base64, separated by commas; empty: all writers are believed
  std::string signing_key_file;  // PEM; empty: what this node writes is not signed
  // Where steps run, and the exceptions for kinds of work.
  exec::Placement steps = exec::Placement::kLocal;
  std::optional<exec::Placement> host_compiles, device_compiles, links;
  std::chrono::milliseconds overflow_after{0};  // a longer wait for this machine sends a step away; 0: not set
  std::optional<std::chrono::milliseconds> queue_timeout;  // longest wait for a worker; see ServerOptions::QueueTimeout
  int jobs = 16;                                           // steps that are with the engine at once
  std::map<std::string, std::string> platform;             // what a worker must have
  std::vector<std::string> shipped_folders;                // of tools that travel with the steps
  bool same_tools = false;                                 // workers have the tools of this node, byte for byte

  exec::Placements Placements() const;
  // Whether workers may run every step that compiles or links.
  bool WorkersRunAll() const;
  bool operator==(const UpstreamSettings&) const = default;
};

// What one user may have at once. 0: no limit.
struct UserBounds {
  int loads;
  int fetches;             // of artifacts
  int connections;         // in any case, file descriptors limit them
  uint64_t request_bytes;  // what loads under way cost, and of headers that are uploaded for them
};

// The TOML file can set every field except those at the end, under its own name. For fields marked (F),
// there are also a flag --with-dashes and an environment variable KERNIX_<NAME>. A field of a table has the table's
// name before its own: --upstream-address, KERNIX_UPSTREAM_ADDRESS.
struct ServerOptions {
  std::string socket;                               // (F) path of the Unix socket; empty: in the store's run folder
  std::string store_directory;                      // (F) empty: the user's default
  uint64_t cache_limit_bytes = 10ull << 30;         // (F) "10GiB"
  uint64_t cache_limit_per_user = 0;                // (F) "1GiB"; 0: no limit
  int jobs = 0;                                     // (F) parallel compile jobs; 0: processors
  uint64_t memory_budget_bytes = 0;                 // (F) for all jobs together; 0: three quarters of the machine's
  std::chrono::milliseconds job_timeout{600'000};   // (F) "10m"
  std::chrono::milliseconds idle_timeout{0};        // (F) exit after this long without a client or load; 0: never
  std::chrono::milliseconds drain_timeout{30'000};  // (F) how long SIGTERM lets running loads continue
  uint64_t max_request_bytes = 64ull << 20;         // (F)
  uint64_t max_output_bytes = 1ull << 30;           // (F) of each file that a job makes, and of all its outputs
  std::optional<int> max_fetches_per_user;          // (F) see UserBounds
  // (F) Of each process of a job; 0: no limit. Unset: 8 GiB with `shared`, otherwise no limit.
  std::optional<uint64_t> max_process_memory_bytes;
  std::optional<int> max_processes_per_job;  // (F) at once; 0: no limit. Unset: 256 with `shared`, otherwise no limit
  std::chrono::milliseconds upload_timeout{30'000};    // (F) time for a client to send headers, plus 1 s per MiB
  std::optional<int> max_loads_per_user;               // (F) see UserBounds, as the next two
  std::optional<int> max_connections_per_user;         // (F)
  std::optional<uint64_t> max_request_bytes_per_user;  // (F)
  std::string spawn_socket;  // (F) of a kernix-spawn that runs as a service; empty: kernixd starts its own
  exec::SandboxChoice sandbox = exec::SandboxChoice::kBest;  // (F) "best", "landlock" or "none"
  bool shared = false;                          // (F) serves other users: registered toolchains only, stricter flags
  bool unknown_users = false;                   // (F) with shared: serves users who are not in the user database, too
  std::string socket_group;                     // (F) with shared: the group whose members may connect
  std::string admin_group;                      // (F) with shared: members may do what root may; empty: nobody
  std::string log_file;                         // (F) empty: the log goes to stderr
  LogLevel log_level = LogLevel::kInfo;         // (F)
  build::Shortcuts disabled_shortcuts;          // none by default
  UpstreamSettings upstream;                    // (F) each of its fields
  std::string toolchain_description;            // (F) a file: serves loads that name no compiler; empty: nothing does
  std::vector<RegisteredToolchain> toolchains;  // file only: [[toolchain]] tables
  // Where the file sets a setting: "/etc/kernix/kernixd.toml:7: ". Not an option.
  std::map<std::string, std::string> origins;
  int oneshot_fd = -1;  // --oneshot-fd N: serve this connected socket until it closes, then exit

  // $KERNIX_STARTED_BY_CLIENT, from the client that starts kernixd, which then sheds what it has inherited; see
  // ShedInherited().
  bool started_by_client = false;
  std::vector<std::string> inherited = {};  // then: what ShedInherited() could not shed
  exec::Sandbox found_sandbox = {};         // what FindSandbox() has found. Not an option.

  // How long a step may wait for a worker. Where steps can run nowhere else, they are patient: workers may have to be
  // started first.
  std::chrono::milliseconds QueueTimeout() const;

  // As they are set. Unset: no limit, since a private daemon has one user, or with `shared` what any user needs.
  UserBounds BoundsPerUser() const;

  // For messages; empty if the file does not set it.
  std::string OriginOf(std::string_view setting) const;
};

// Reads the options again, as at the start. Null for a daemon without a config file, which has nothing to read again.
using ReadOptions = std::function<absl::StatusOr<ServerOptions>()>;

// The options of a running daemon, some of which change when its config file is read again. Thread-safe.
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

// All files of a load (objects of separate units, PTX, ...) may together be this many times as large as the largest
// file.
inline constexpr uint64_t kFilesOfALoad = 4;
// All loads of a user that have not ended may have this many times as much.
inline constexpr uint64_t kLargestLoadsOfAUser = 4;

// Describes the tools at `paths` in the file `output`.
struct DescriptionTask {
  std::string output;
  v1::ToolchainPaths paths;
};

// The result of parsing: options, or a text to print and an exit code (--help, --version, bad flags).
struct ParsedCommandLine {
  ServerOptions options;
  bool has_config = false;  // --config was given
  bool check_only = false;  // --check-config: the options are consistent; look at what they name, and exit
  std::optional<DescriptionTask> describe;  // --describe-toolchain: do that, and exit
  bool exit_now = false;
  int exit_code = 0;
  std::string text;
};

// `arguments` must not include the program's name.
ParsedCommandLine ParseCommandLine(Env& env, const GetEnv& get_env, const std::vector<std::string>& arguments);

// INVALID_REQUEST if this daemon would run compilers on other users' texts without a sandbox, and nobody has said that
// it may.
absl::Status CheckSandbox(const ServerOptions& options, const exec::Sandbox& found);

}  // namespace kernix::server
