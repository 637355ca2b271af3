// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/settings.h"

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/units.h"

namespace kernix::server {
namespace {

// `(options.*....*Field)` is a member of a member: Field names the way there, from ServerOptions on.

// A request travels in one gRPC message, whose length is an int. gRPC accepts twice this limit, so that we can refuse a
// request ourselves.
constexpr uint64_t kLargestRequestLimit = 1ull << 29;

template <auto... Field>
absl::Status SetText(ServerOptions& options, const std::string& text) {
  (options.*....*Field) = text;
  return absl::OkStatus();
}

// A daemon does not depend on its working folder: a relative path would depend on who started it.
template <auto... Field>
absl::Status SetPath(ServerOptions& options, const std::string& text) {
  if (!text.starts_with('/')) {
    return absl::InvalidArgumentError(StrCat("\"", text, "\" is not an absolute path"));
  }
  (options.*....*Field) = NormalizePath(text);
  return absl::OkStatus();
}

template <auto... Field>
absl::Status SetSize(ServerOptions& options, const std::string& text) {
  KERNIX_ASSIGN_OR_RETURN((options.*....*Field), ParseSize(text));
  return absl::OkStatus();
}

// The smallest kernel takes more.
constexpr uint64_t kLeastCacheLimit = 16 << 10;

absl::StatusOr<uint64_t> CacheLimit(const std::string& text) {
  KERNIX_ASSIGN_OR_RETURN(const uint64_t bytes, ParseSize(text));
  if (bytes < kLeastCacheLimit) {
    return absl::InvalidArgumentError(
        StrCat("\"", text, "\" bytes hold no kernel: write a size with its unit, such as \"10GiB\""));
  }
  return bytes;
}

absl::Status SetCacheLimit(ServerOptions& options, const std::string& text) {
  KERNIX_ASSIGN_OR_RETURN(options.cache_limit_bytes, CacheLimit(text));
  return absl::OkStatus();
}

absl::Status SetCacheLimitPerUser(ServerOptions& options, const std::string& text) {
  if (text == "0") {
    options.cache_limit_per_user = 0;
    return absl::OkStatus();
  }
  KERNIX_ASSIGN_OR_RETURN(options.cache_limit_per_user, CacheLimit(text));
  return absl::OkStatus();
}

template <auto... Field>
absl::Status SetDuration(ServerOptions& options, const std::string& text) {
  KERNIX_ASSIGN_OR_RETURN((options.*....*Field), ParseDuration(text));
  return absl::OkStatus();
}

template <auto... Field>
absl::Status SetCount(ServerOptions& options, const std::string& text) {
  int number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < 0) {
    return absl::InvalidArgumentError(StrCat("\"", text, "\" is not a whole number of at least 0"));
  }
  (options.*....*Field) = number;
  return absl::OkStatus();
}

template <auto... Field>
absl::Status SetSwitch(ServerOptions& options, const std::string& text) {
  if (!absl::SimpleAtob(text, &((options.*....*Field)))) {
    return absl::InvalidArgumentError(StrCat("\"", text, "\" is neither true nor false"));
  }
  return absl::OkStatus();
}

absl::Status SetMaxRequest(ServerOptions& options, const std::string& text) {
  KERNIX_ASSIGN_OR_RETURN(const uint64_t bytes, ParseSize(text));
  if (bytes == 0 || bytes > kLargestRequestLimit) {
    return absl::InvalidArgumentError(StrCat("\"", text, "\" is not between 1 byte and 512MiB"));
  }
  options.max_request_bytes = bytes;
  return absl::OkStatus();
}

absl::Status SetUploadTimeout(ServerOptions& options, const std::string& text) {
  KERNIX_ASSIGN_OR_RETURN(const std::chrono::milliseconds timeout, ParseDuration(text));
  if (timeout.count() == 0)
    return absl::InvalidArgumentError("a limit is required: otherwise, a stalled client could block others");
  options.upload_timeout = timeout;
  return absl::OkStatus();
}

// An empty list would silently switch the check off.
absl::Status SetTrustedKeys(ServerOptions& options, const std::string& text) {
  const std::vector<std::string> keys = absl::StrSplit(text, ',');
  if (std::find(keys.begin(), keys.end(), "") != keys.end()) {
    return absl::InvalidArgumentError("a key is empty: leave the setting out to trust everybody who may write");
  }
  options.upstream.trusted_keys = text;
  return absl::OkStatus();
}

// Into a placement, or into an optional one.
template <auto... Field>
absl::Status SetPlacement(ServerOptions& options, const std::string& text) {
  const std::optional<exec::Placement> placement = exec::FindPlacement(text);
  if (!placement) {
    return absl::InvalidArgumentError(StrCat("\"", text, "\" is not one of local, remote, prefer-remote, overflow"));
  }
  (options.*....*Field) = *placement;
  return absl::OkStatus();
}

absl::Status SetSandbox(ServerOptions& options, const std::string& text) {
  if (text == "best") {
    options.sandbox = exec::SandboxChoice::kBest;
  } else if (text == "landlock") {
    options.sandbox = exec::SandboxChoice::kLandlock;
  } else if (text == "none") {
    options.sandbox = exec::SandboxChoice::kNone;
  } else {
    return absl::InvalidArgumentError(StrCat("\"", text, "\" is not one of best, landlock, none"));
  }
  return absl::OkStatus();
}

absl::Status SetPlatform(ServerOptions& options, const std::string& text) {
  std::map<std::string, std::string> platform;
  const std::vector<std::string> properties = absl::StrSplit(text, ',');
  for (const std::string& property : properties) {
    const size_t equals = property.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(StrCat("\"", property, "\" is not NAME=VALUE"));
    }
    if (!platform.emplace(property.substr(0, equals), property.substr(equals + 1)).second) {
      return absl::InvalidArgumentError(StrCat(property.substr(0, equals), " is there twice"));
    }
  }
  options.upstream.platform = std::move(platform);
  return absl::OkStatus();
}

absl::Status SetShippedFolders(ServerOptions& options, const std::string& text) {
  std::vector<std::string> folders = absl::StrSplit(text, ',');
  for (std::string& folder : folders) {
    if (!folder.starts_with('/')) return absl::InvalidArgumentError(StrCat("\"", folder, "\" is not an absolute path"));
    folder = NormalizePath(folder);
  }
  options.upstream.shipped_folders = std::move(folders);
  return absl::OkStatus();
}

absl::Status SetShortcuts(ServerOptions& options, const std::string& text) {
  KERNIX_ASSIGN_OR_RETURN(options.disabled_shortcuts, build::ParseShortcuts(text));
  return absl::OkStatus();
}

absl::Status SetLevel(ServerOptions& options, const std::string& text) {
  if (ParseLogLevel(text, options.log_level)) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("\"", text, "\" is not one of debug, info, warning, error"));
}

template <auto... Field>
bool Same(const ServerOptions& a, const ServerOptions& b) {
  return (a.*....*Field) == (b.*....*Field);
}

constexpr bool kReloadable = true;

std::vector<Setting> MakeSettings() {
  using O = ServerOptions;
  using U = UpstreamSettings;
  return {
      {"socket", "PATH", "Unix socket to listen on (default: in the store's run folder)", SetPath<&O::socket>,
       Same<&O::socket>},
      {"store_directory", "DIR",
       "folder of artifacts; \"A:B\" also reads B (default: $KERNIX_CACHE_DIR, else ~/.cache/kernix)",
       SetPath<&O::store_directory>, Same<&O::store_directory>},
      {"cache_limit_bytes", "SIZE", "artifacts beyond this are evicted, least recently used first (default: 10GiB)",
       SetCacheLimit, Same<&O::cache_limit_bytes>, kReloadable},
      {"cache_limit_per_user", "SIZE", "artifacts that one user has loaded; 0: no limit of its own (default: 0)",
       SetCacheLimitPerUser, Same<&O::cache_limit_per_user>, kReloadable},
      {"jobs", "N", "compile jobs at once (default: 0, the number of processors)", SetCount<&O::jobs>, Same<&O::jobs>},
      {"memory_budget_bytes", "SIZE",
       "memory for all compile jobs together (default: 0, three quarters of the machine's)",
       SetSize<&O::memory_budget_bytes>, Same<&O::memory_budget_bytes>},
      {"job_timeout", "TIME", "longest run of one compile job; 0: no limit (default: 10m)",
       SetDuration<&O::job_timeout>, Same<&O::job_timeout>},
      {"idle_timeout", "TIME", "exit after this long without clients and loads; 0: never (default: 0)",
       SetDuration<&O::idle_timeout>, Same<&O::idle_timeout>, kReloadable},
      {"drain_timeout", "TIME", "how long running loads may take to finish at a stop (default: 30s)",
       SetDuration<&O::drain_timeout>, Same<&O::drain_timeout>, kReloadable},
      {"max_request_bytes", "SIZE", "largest request, and largest upload of its headers (default: 64MiB)",
       SetMaxRequest, Same<&O::max_request_bytes>},
      {"max_output_bytes", "SIZE", "largest file that a compile job may write; 0: no limit (default: 1GiB)",
       SetSize<&O::max_output_bytes>, Same<&O::max_output_bytes>},
      {"max_process_memory_bytes", "SIZE",
       "memory for one process of a compile job; 0: no limit (default: 8GiB if shared, else 0)",
       SetSize<&O::max_process_memory_bytes>, Same<&O::max_process_memory_bytes>},
      {"max_processes_per_job", "N",
       "processes of one compile job at once; 0: no limit (default: 256 if shared, else 0)",
       SetCount<&O::max_processes_per_job>, Same<&O::max_processes_per_job>},
      {"upload_timeout", "TIME", "time for a client to send headers, plus 1s for each MiB (default: 30s)",
       SetUploadTimeout, Same<&O::upload_timeout>},
      {"max_loads_per_user", "N", "loads of one user at once; 0: no limit (default: 500 if shared, else 0)",
       SetCount<&O::max_loads_per_user>, Same<&O::max_loads_per_user>, kReloadable},
      {"max_fetches_per_user", "N", "artifacts sent to one user at once; 0: no limit (default: 500 if shared, else 0)",
       SetCount<&O::max_fetches_per_user>, Same<&O::max_fetches_per_user>, kReloadable},
      {"max_connections_per_user", "N",
       "open connections of one user; 0: as many as descriptors allow (default: 1000 if shared, else 0)",
       SetCount<&O::max_connections_per_user>, Same<&O::max_connections_per_user>},
      {"max_request_bytes_per_user", "SIZE",
       "memory for one user's loads, and for uploads; 0: no limit (default: 512MiB if shared, else 0)",
       SetSize<&O::max_request_bytes_per_user>, Same<&O::max_request_bytes_per_user>},
      {"spawn_socket", "PATH", "socket of the kernix-spawn that runs compilers (default: kernixd starts its own)",
       SetPath<&O::spawn_socket>, Same<&O::spawn_socket>},
      {"sandbox", "RUNG", "what keeps compilers from the machine: best, landlock or none (default: best)", SetSandbox,
       Same<&O::sandbox>},
      {"shared", "", "serve other users of this machine: registered toolchains only, stricter flags",
       SetSwitch<&O::shared>, Same<&O::shared>},
      {"socket_group", "GROUP", "with shared: the group whose members may connect", SetText<&O::socket_group>,
       Same<&O::socket_group>},
      {"unknown_users", "BOOL", "with shared: serve numbers that the user database does not have (default: false)",
       SetSwitch<&O::unknown_users>, Same<&O::unknown_users>},
      {"admin_group", "GROUP", "with shared: members may see and purge everybody's entries, and stop the daemon",
       SetText<&O::admin_group>, Same<&O::admin_group>},
      {"log_file", "PATH", "write the log there, at most 4MiB and as much into PATH.1 (default: to stderr)",
       SetPath<&O::log_file>, Same<&O::log_file>},
      {"log_level", "LEVEL", "debug, info, warning or error (default: info)", SetLevel, Same<&O::log_level>,
       kReloadable},
      {.name = "disabled_shortcuts",
       .value = "NAMES",
       .help = "ways to build faster to switch off, such as stand_ins, to find a faulty one",
       .set = SetShortcuts,
       .same = Same<&O::disabled_shortcuts>,
       .is_list = true},
      {"toolchain_description", "PATH",
       "describes a toolchain of other nodes, or of workers, whose results serve loads that find no compiler",
       SetPath<&O::toolchain_description>, Same<&O::toolchain_description>},
      {"upstream.address", "ADDRESS",
       "share results through this engine of the Remote Execution API: grpc://HOST:PORT, grpcs:// or unix:///PATH",
       SetText<&O::upstream, &U::address>, Same<&O::upstream, &U::address>},
      {"upstream.instance", "NAME", "the engine's instance (default: the one without a name)",
       SetText<&O::upstream, &U::instance>, Same<&O::upstream, &U::instance>},
      {"upstream.ca_file", "PATH", "with grpcs: authorities for the engine's certificate (default: the system's list)",
       SetPath<&O::upstream, &U::ca_file>, Same<&O::upstream, &U::ca_file>},
      {"upstream.certificate_file", "PATH", "with grpcs: this node's own certificate, if the engine asks for one",
       SetPath<&O::upstream, &U::certificate_file>, Same<&O::upstream, &U::certificate_file>},
      {"upstream.key_file", "PATH", "with grpcs: the key of this certificate", SetPath<&O::upstream, &U::key_file>,
       Same<&O::upstream, &U::key_file>},
      {"upstream.token_file", "PATH", "send the token in this file with each call; may be replaced at any time",
       SetPath<&O::upstream, &U::token_file>, Same<&O::upstream, &U::token_file>},
      {"upstream.token_header", "HEADER",
       "the token's header: NAME or \"NAME: SCHEME\" (default: \"authorization: Bearer\")",
       SetText<&O::upstream, &U::token_header>, Same<&O::upstream, &U::token_header>},
      {"upstream.timeout", "TIME", "longest wait for the engine before a load goes on without it (default: 10s)",
       SetDuration<&O::upstream, &U::timeout>, Same<&O::upstream, &U::timeout>},
      {"upstream.read", "BOOL", "take results from the engine (default: true)", SetSwitch<&O::upstream, &U::read>,
       Same<&O::upstream, &U::read>},
      {"upstream.write", "BOOL", "write this node's results to the engine (default: false)",
       SetSwitch<&O::upstream, &U::write>, Same<&O::upstream, &U::write>},
      {"upstream.build_once", "BOOL",
       "let one of several nodes build a kernel, and wait for its result (default: false)",
       SetSwitch<&O::upstream, &U::build_once>, Same<&O::upstream, &U::build_once>},
      {.name = "upstream.trusted_keys",
       .value = "KEYS",
       .help = "take only results that one of these Ed25519 keys has signed (default: trust everybody who may write)",
       .set = SetTrustedKeys,
       .same = Same<&O::upstream, &U::trusted_keys>,
       .is_list = true},
      {"upstream.signing_key_file", "PATH", "sign this node's results with this Ed25519 key",
       SetPath<&O::upstream, &U::signing_key_file>, Same<&O::upstream, &U::signing_key_file>},
      {"upstream.steps", "PLACEMENT",
       "where the steps of builds run: local, remote, prefer-remote or overflow (default: local)",
       SetPlacement<&O::upstream, &U::steps>, Same<&O::upstream, &U::steps>},
      {"upstream.host_compiles", "PLACEMENT", "the same for steps of the host compiler (default: as upstream.steps)",
       SetPlacement<&O::upstream, &U::host_compiles>, Same<&O::upstream, &U::host_compiles>},
      {"upstream.device_compiles", "PLACEMENT",
       "the same for nvcc's own programs: cicc, ptxas, ... (default: as upstream.steps)",
       SetPlacement<&O::upstream, &U::device_compiles>, Same<&O::upstream, &U::device_compiles>},
      {"upstream.links", "PLACEMENT", "the same for links (default: as upstream.steps)",
       SetPlacement<&O::upstream, &U::links>, Same<&O::upstream, &U::links>},
      {"upstream.overflow_after", "TIME", "with overflow: a step that would wait longer here runs on a worker",
       SetDuration<&O::upstream, &U::overflow_after>, Same<&O::upstream, &U::overflow_after>},
      {"upstream.queue_timeout", "TIME",
       "longest wait of a step for a worker (default: 2m; 10m if steps run nowhere else)",
       SetDuration<&O::upstream, &U::queue_timeout>, Same<&O::upstream, &U::queue_timeout>},
      {"upstream.jobs", "N", "steps that the engine has at once (default: 16)", SetCount<&O::upstream, &U::jobs>,
       Same<&O::upstream, &U::jobs>},
      {.name = "upstream.platform",
       .value = "LIST",
       .help = "NAME=VALUE, ...: what a worker must have, such as container-image=docker://...@sha256:...",
       .set = SetPlatform,
       .same = Same<&O::upstream, &U::platform>,
       .is_list = true},
      {.name = "upstream.shipped_folders",
       .value = "DIRS",
       .help = "folders of tools to ship with the steps to workers, such as nvcc's",
       .set = SetShippedFolders,
       .same = Same<&O::upstream, &U::shipped_folders>,
       .is_list = true},
      {"upstream.same_tools", "BOOL",
       "workers have this node's tools, byte for byte: their results have this node's keys (default: false)",
       SetSwitch<&O::upstream, &U::same_tools>, Same<&O::upstream, &U::same_tools>},
  };
}

// All problems, one a line.
absl::Status CheckShared(const ServerOptions& options) {
  std::vector<std::string> problems;
  if (!options.socket_group.empty() && !options.shared) {
    problems.push_back(StrCat(options.OriginOf("socket_group"),
                              "socket_group requires shared = true: a private daemon serves only its own user"));
  }
  if (options.unknown_users && !options.shared) {
    problems.push_back(StrCat(options.OriginOf("unknown_users"),
                              "unknown_users requires shared = true: a private daemon serves only its own user"));
  }
  if (!options.admin_group.empty() && !options.shared) {
    problems.push_back(StrCat(options.OriginOf("admin_group"),
                              "admin_group requires shared = true: a private daemon obeys only its own user and root"));
  }
  if (options.shared && options.toolchains.empty() && options.toolchain_description.empty()) {
    problems.push_back(
        StrCat(options.OriginOf("shared"),
               "a shared daemon compiles only with toolchains that its config file registers: "
               "add at least one [[toolchain]] table with name and host_compiler, or, if this node has no "
               "compiler, toolchain_description"));
  }
  return AllProblems(problems);
}

void CheckOverflow(const ServerOptions& options, std::vector<std::string>& problems) {
  const UpstreamSettings& upstream = options.upstream;
  const bool has_time = upstream.overflow_after.count() > 0;
  if (upstream.Placements().Has(exec::Placement::kOverflow) && !has_time) {
    problems.emplace_back("overflow needs upstream.overflow_after: how long a step may wait here, such as \"2s\"");
  }
  if (has_time && !upstream.Placements().Has(exec::Placement::kOverflow)) {
    problems.push_back(StrCat(options.OriginOf("upstream.overflow_after"),
                              "upstream.overflow_after has no effect: no kind of step runs by \"overflow\""));
  }
}

// A tag can name another image tomorrow, with other tools, under the same keys.
void CheckImage(const ServerOptions& options, std::vector<std::string>& problems) {
  const auto image = options.upstream.platform.find("container-image");
  if (image == options.upstream.platform.end() || options.upstream.same_tools) return;
  if (absl::StrContains(image->second, "@sha256:")) return;
  problems.push_back(StrCat(options.OriginOf("upstream.platform"),
                            "upstream.platform: name the container-image by its "
                            "digest (...@sha256:...), since keys of artifacts stand for its tools: \"",
                            image->second, "\" may be another image tomorrow"));
}

void CheckWorkers(const ServerOptions& options, std::vector<std::string>& problems) {
  const UpstreamSettings& upstream = options.upstream;
  CheckOverflow(options, problems);
  CheckImage(options, problems);
  if (upstream.jobs == 0) {
    problems.push_back(StrCat(options.OriginOf("upstream.jobs"), "upstream.jobs must be at least 1"));
  }
  if (upstream.queue_timeout && upstream.queue_timeout->count() == 0) {
    problems.push_back(StrCat(options.OriginOf("upstream.queue_timeout"),
                              "upstream.queue_timeout must not be 0: without workers, steps would wait for as long as "
                              "they may run"));
  }
  const UpstreamSettings none;
  const bool is_set = upstream.queue_timeout || upstream.jobs != none.jobs || upstream.platform != none.platform ||
                      upstream.shipped_folders != none.shipped_folders || upstream.same_tools;
  if (is_set && upstream.Placements().AllLocal()) {
    problems.emplace_back(
        "upstream.queue_timeout, upstream.jobs, upstream.platform, upstream.shipped_folders and upstream.same_tools "
        "have no effect while all steps run here: set upstream.steps");
  }
}

// All problems, one a line.
absl::Status CheckUpstream(const ServerOptions& options) {
  const UpstreamSettings& upstream = options.upstream;
  std::vector<std::string> problems;
  if (upstream.address.empty() && upstream != UpstreamSettings()) {
    problems.emplace_back("the settings of an upstream have no effect without upstream.address");
  }
  if (upstream.timeout.count() == 0) {
    problems.push_back(StrCat(options.OriginOf("upstream.timeout"),
                              "upstream.timeout must not be 0: loads would wait for an engine that hangs"));
  }
  const bool builds = options.toolchain_description.empty() || upstream.WorkersRunAll();
  if (upstream.build_once && !(upstream.read && (upstream.write || !builds))) {
    problems.push_back(StrCat(options.OriginOf("upstream.build_once"),
                              "upstream.build_once needs upstream.read and upstream.write: a node that waits for "
                              "others must find what they write, and write what they wait for. (One with a "
                              "toolchain_description and no workers need not write.)"));
  }
  if (!builds && !upstream.read) {
    problems.push_back(StrCat(options.OriginOf("toolchain_description"),
                              "toolchain_description needs upstream.read, for what other nodes have built, or "
                              "upstream.steps, for workers that compile"));
  }
  if (upstream.certificate_file.empty() != upstream.key_file.empty()) {
    problems.emplace_back("upstream.certificate_file and upstream.key_file belong together: set both or neither");
  }
  CheckWorkers(options, problems);
  return AllProblems(problems);
}

}  // namespace

absl::Status AllProblems(const std::vector<std::string>& problems) {
  return problems.empty() ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

exec::Placements UpstreamSettings::Placements() const {
  return {.host_compiles = host_compiles.value_or(steps),
          .device_compiles = device_compiles.value_or(steps),
          .links = links.value_or(steps)};
}

bool UpstreamSettings::WorkersRunAll() const { return !Placements().Has(exec::Placement::kLocal); }

std::chrono::milliseconds ServerOptions::QueueTimeout() const {
  const bool has_nowhere_else = upstream.Placements().Has(exec::Placement::kRemote) || !toolchain_description.empty();
  return upstream.queue_timeout.value_or(std::chrono::minutes(has_nowhere_else ? 10 : 2));
}

UserBounds ServerOptions::BoundsPerUser() const {
  return {.loads = max_loads_per_user.value_or(shared ? 500 : 0),
          .fetches = max_fetches_per_user.value_or(shared ? 500 : 0),
          .connections = max_connections_per_user.value_or(shared ? 1000 : 0),
          .request_bytes = max_request_bytes_per_user.value_or(shared ? 512ull << 20 : 0)};
}

std::string ServerOptions::OriginOf(std::string_view setting) const {
  const auto found = origins.find(std::string(setting));
  return found == origins.end() ? "" : found->second;
}

absl::Status CheckSandbox(const ServerOptions& options, const exec::Sandbox& found) {
  // One without compilers of its own leaves its steps to workers.
  const bool runs_compilers = options.shared && !options.toolchains.empty() && !options.upstream.WorkersRunAll();
  const bool is_kept = found.rung != spawn::Rung::kNone;
  if (!runs_compilers || is_kept || options.sandbox == exec::SandboxChoice::kNone) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat(options.OriginOf("shared"),
                          "a shared daemon runs compilers on its users' texts, and this machine has nothing to keep "
                          "them in: ",
                          found.lack, ". If all users trust each other, write sandbox = \"none\""));
}

std::string Setting::Flag() const { return StrCat("--", absl::StrReplaceAll(ToAbsl(name), {{"_", "-"}, {".", "-"}})); }

std::string Setting::Variable() const {
  return StrCat("KERNIX_", absl::AsciiStrToUpper(absl::StrReplaceAll(ToAbsl(name), {{".", "_"}})));
}

const std::vector<Setting>& Settings() {
  static const auto* settings = new std::vector<Setting>(MakeSettings());
  return *settings;
}

const Setting* FindSetting(std::string_view name) {
  for (const Setting& setting : Settings()) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

absl::Status CheckOptions(const ServerOptions& options) {
  if (options.oneshot_fd >= 0 && (options.shared || !options.socket.empty())) {
    return absl::InvalidArgumentError(
        "--oneshot-fd serves one connection of its own user: it accepts neither --socket "
        "nor --shared");
  }
  KERNIX_RETURN_IF_ERROR(CheckShared(options));
  return CheckUpstream(options);
}

}  // namespace kernix::server
