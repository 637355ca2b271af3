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

// How a text becomes the value of a field, by the field's type.

absl::Status Read(const std::string& text, std::string& value) {
  value = text;
  return absl::OkStatus();
}

absl::Status Read(const std::string& text, uint64_t& bytes) {
  KERNIX_ASSIGN_OR_RETURN(bytes, ParseSize(text));
  return absl::OkStatus();
}

absl::Status Read(const std::string& text, std::chrono::milliseconds& time) {
  KERNIX_ASSIGN_OR_RETURN(time, ParseDuration(text));
  return absl::OkStatus();
}

absl::Status Read(const std::string& text, int& count) {
  if (absl::SimpleAtoi(text, &count) && count >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("\"", text, "\" is not a whole number of at least 0"));
}

absl::Status Read(const std::string& text, bool& value) {
  if (absl::SimpleAtob(text, &value)) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("\"", text, "\" is neither true nor false"));
}

absl::Status Read(const std::string& text, exec::Placement& value) {
  const std::optional<exec::Placement> placement = exec::FindPlacement(text);
  if (!placement) {
    return absl::InvalidArgumentError(StrCat("\"", text, "\" is not one of local, remote, prefer-remote, overflow"));
  }
  value = *placement;
  return absl::OkStatus();
}

absl::Status Read(const std::string& text, exec::SandboxChoice& value) {
  if (text == "best") {
    value = exec::SandboxChoice::kBest;
  } else if (text == "landlock") {
    value = exec::SandboxChoice::kLandlock;
  } else if (text == "none") {
    value = exec::SandboxChoice::kNone;
  } else {
    return absl::InvalidArgumentError(StrCat("\"", text, "\" is not one of best, landlock, none"));
  }
  return absl::OkStatus();
}

absl::Status Read(const std::string& text, LogLevel& level) {
  if (ParseLogLevel(text, level)) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("\"", text, "\" is not one of debug, info, warning, error"));
}

absl::Status Read(const std::string& text, build::Shortcuts& shortcuts) {
  KERNIX_ASSIGN_OR_RETURN(shortcuts, build::ParseShortcuts(text));
  return absl::OkStatus();
}

absl::Status Read(const std::string& text, std::map<std::string, std::string>& properties) {
  properties.clear();
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  for (const std::string& property : parts) {
    const size_t equals = property.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(StrCat("\"", property, "\" is not NAME=VALUE"));
    }
    if (!properties.emplace(property.substr(0, equals), property.substr(equals + 1)).second) {
      return absl::InvalidArgumentError(StrCat(property.substr(0, equals), " is there twice"));
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Read(const std::string& text, std::optional<T>& value) {
  return Read(text, value.emplace());
}

// Other rules than those of the type.

// A daemon does not depend on its working folder: a relative path would depend on who started it.
absl::Status ReadPath(const std::string& text, std::string& path) {
  if (!text.starts_with('/')) return absl::InvalidArgumentError(StrCat("\"", text, "\" is not an absolute path"));
  path = NormalizePath(text);
  return absl::OkStatus();
}

absl::Status ReadPaths(const std::string& text, std::vector<std::string>& paths) {
  paths = absl::StrSplit(text, ',');
  for (std::string& path : paths) KERNIX_RETURN_IF_ERROR(ReadPath(std::string(path), path));
  return absl::OkStatus();
}

absl::Status ReadCacheLimit(const std::string& text, uint64_t& bytes) {
  constexpr uint64_t kLeast = 16 << 10;  // the smallest kernel takes more
  KERNIX_RETURN_IF_ERROR(Read(text, bytes));
  if (bytes >= kLeast) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("\"", text, "\" bytes hold no kernel: write a size with its unit, such as \"10GiB\""));
}

absl::Status ReadCacheLimitOrNone(const std::string& text, uint64_t& bytes) {
  return text == "0" ? Read(text, bytes) : ReadCacheLimit(text, bytes);
}

absl::Status ReadMaxRequest(const std::string& text, uint64_t& bytes) {
  // A request travels in one gRPC message, whose length is an int. gRPC accepts twice this limit, so that we can refuse
  // a request ourselves.
  constexpr uint64_t kLargest = 1ull << 29;
  KERNIX_RETURN_IF_ERROR(Read(text, bytes));
  if (bytes > 0 && bytes <= kLargest) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("\"", text, "\" is not between 1 byte and 512MiB"));
}

absl::Status ReadUploadTimeout(const std::string& text, std::chrono::milliseconds& time) {
  KERNIX_RETURN_IF_ERROR(Read(text, time));
  if (time.count() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("a limit is required: otherwise, a stalled client could block others");
}

// An empty list would silently switch the check off.
absl::Status ReadTrustedKeys(const std::string& text, std::string& value) {
  const std::vector<std::string> keys = absl::StrSplit(text, ',');
  if (std::find(keys.begin(), keys.end(), "") != keys.end()) {
    return absl::InvalidArgumentError("a key is empty: leave the setting out to trust everybody who may write");
  }
  value = text;
  return absl::OkStatus();
}

// A setting that `reader` reads. It is a member of a member: Field names the way there, from ServerOptions on.
template <auto reader, auto... Field>
Setting RowBy(std::string_view name, std::string_view value, std::string_view help) {
  return {.name = name,
          .value = value,
          .help = help,
          .set = [](ServerOptions& options, const std::string& text) { return reader(text, (options.*....*Field)); },
          .same = [](const ServerOptions& a, const ServerOptions& b) { return (a.*....*Field) == (b.*....*Field); }};
}

template <auto... Field>
Setting Row(std::string_view name, std::string_view value, std::string_view help) {
  return RowBy<[](const std::string& text, auto& field) { return Read(text, field); }, Field...>(name, value, help);
}

Setting Reloadable(Setting setting) {
  setting.reloadable = true;
  return setting;
}

Setting List(Setting setting) {
  setting.is_list = true;
  return setting;
}

std::vector<Setting> MakeSettings() {
  using O = ServerOptions;
  using U = UpstreamSettings;
  return {
      RowBy<ReadPath, &O::socket>("socket", "PATH", "Unix socket to listen on (default: in the store's run folder)"),
      RowBy<ReadPath, &O::store_directory>(
          "store_directory", "DIR",
          "folder of artifacts; \"A:B\" also reads B (default: $KERNIX_CACHE_DIR, else ~/.cache/kernix)"),
      Reloadable(RowBy<ReadCacheLimit, &O::cache_limit_bytes>(
          "cache_limit_bytes", "SIZE",
          "artifacts beyond this are evicted, least recently used first (default: 10GiB)")),
      Reloadable(RowBy<ReadCacheLimitOrNone, &O::cache_limit_per_user>(
          "cache_limit_per_user", "SIZE", "artifacts that one user has loaded; 0: no limit of its own (default: 0)")),
      Row<&O::jobs>("jobs", "N", "compile jobs at once (default: 0, the number of processors)"),
      Row<&O::memory_budget_bytes>(
          "memory_budget_bytes", "SIZE",
          "memory for all compile jobs together (default: 0, three quarters of the machine's)"),
      Row<&O::job_timeout>("job_timeout", "TIME", "longest run of one compile job; 0: no limit (default: 10m)"),
      Reloadable(Row<&O::idle_timeout>("idle_timeout", "TIME",
                                       "exit after this long without clients and loads; 0: never (default: 0)")),
      Reloadable(Row<&O::drain_timeout>("drain_timeout", "TIME",
                                        "how long running loads may take to finish at a stop (default: 30s)")),
      RowBy<ReadMaxRequest, &O::max_request_bytes>(
          "max_request_bytes", "SIZE", "largest request, and largest upload of its headers (default: 64MiB)"),
      Row<&O::max_output_bytes>("max_output_bytes", "SIZE",
                                "largest file that a compile job may write; 0: no limit (default: 1GiB)"),
      Row<&O::max_process_memory_bytes>("max_process_memory_bytes", "SIZE",
                                        "memory for one process of a compile job, in the service for all; 0: no limit "
                                        "(default: 8GiB if shared, else 0)"),
      Row<&O::max_processes_per_job>(
          "max_processes_per_job", "N",
          "processes of one compile job at once; 0: no limit (default: 256 if shared, else 0)"),
      RowBy<ReadUploadTimeout, &O::upload_timeout>(
          "upload_timeout", "TIME", "time for a client to send headers, plus 1s for each MiB (default: 30s)"),
      Reloadable(Row<&O::max_loads_per_user>(
          "max_loads_per_user", "N", "loads of one user at once; 0: no limit (default: 500 if shared, else 0)")),
      Reloadable(Row<&O::max_fetches_per_user>(
          "max_fetches_per_user", "N",
          "artifacts sent to one user at once; 0: no limit (default: 500 if shared, else 0)")),
      Row<&O::max_connections_per_user>(
          "max_connections_per_user", "N",
          "open connections of one user; 0: as many as descriptors allow (default: 1000 if shared, else 0)"),
      Row<&O::max_request_bytes_per_user>(
          "max_request_bytes_per_user", "SIZE",
          "memory for one user's loads, and for uploads; 0: no limit (default: 512MiB if shared, else 0)"),
      RowBy<ReadPath, &O::spawn_socket>(
          "spawn_socket", "PATH", "socket of the kernix-spawn that runs compilers (default: kernixd starts its own)"),
      Row<&O::sandbox>("sandbox", "RUNG",
                       "what keeps compilers from the machine: best, landlock or none (default: best)"),
      Row<&O::shared>("shared", "", "serve other users of this machine: registered toolchains only, stricter flags"),
      Row<&O::socket_group>("socket_group", "GROUP", "with shared: the group whose members may connect"),
      Row<&O::unknown_users>("unknown_users", "BOOL",
                             "with shared: serve numbers that the user database does not have (default: false)"),
      Row<&O::admin_group>("admin_group", "GROUP",
                           "with shared: members may see and purge everybody's entries, and stop the daemon"),
      RowBy<ReadPath, &O::log_file>("log_file", "PATH",
                                    "write the log there, at most 4MiB and as much into PATH.1 (default: to stderr)"),
      Reloadable(Row<&O::log_level>("log_level", "LEVEL", "debug, info, warning or error (default: info)")),
      List(Row<&O::disabled_shortcuts>("disabled_shortcuts", "NAMES",
                                       "ways to build faster to switch off, such as stand_ins, to find a faulty one")),
      RowBy<ReadPath, &O::toolchain_description>(
          "toolchain_description", "PATH",
          "describes a toolchain of other nodes, or of workers, whose results serve loads that find no compiler"),
      Row<&O::upstream, &U::address>(
          "upstream.address", "ADDRESS",
          "share results through this engine of the Remote Execution API: grpc://HOST:PORT, grpcs:// or unix:///PATH"),
      Row<&O::upstream, &U::instance>("upstream.instance", "NAME",
                                      "the engine's instance (default: the one without a name)"),
      RowBy<ReadPath, &O::upstream, &U::ca_file>(
          "upstream.ca_file", "PATH",
          "with grpcs: authorities for the engine's certificate (default: the system's list)"),
      RowBy<ReadPath, &O::upstream, &U::certificate_file>(
          "upstream.certificate_file", "PATH", "with grpcs: this node's own certificate, if the engine asks for one"),
      RowBy<ReadPath, &O::upstream, &U::key_file>("upstream.key_file", "PATH",
                                                  "with grpcs: the key of this certificate"),
      RowBy<ReadPath, &O::upstream, &U::token_file>(
          "upstream.token_file", "PATH", "send the token in this file with each call; may be replaced at any time"),
      Row<&O::upstream, &U::token_header>(
          "upstream.token_header", "HEADER",
          "the token's header: NAME or \"NAME: SCHEME\" (default: \"authorization: Bearer\")"),
      Row<&O::upstream, &U::timeout>("upstream.timeout", "TIME",
                                     "longest wait for the engine before a load goes on without it (default: 10s)"),
      Row<&O::upstream, &U::read>("upstream.read", "BOOL", "take results from the engine (default: true)"),
      Row<&O::upstream, &U::write>("upstream.write", "BOOL",
                                   "write this node's results to the engine (default: false)"),
      Row<&O::upstream, &U::build_once>(
          "upstream.build_once", "BOOL",
          "let one of several nodes build a kernel, and wait for its result (default: false)"),
      List(RowBy<ReadTrustedKeys, &O::upstream, &U::trusted_keys>(
          "upstream.trusted_keys", "KEYS",
          "take only results that one of these Ed25519 keys has signed (default: trust everybody who may write)")),
      RowBy<ReadPath, &O::upstream, &U::signing_key_file>("upstream.signing_key_file", "PATH",
                                                          "sign this node's results with this Ed25519 key"),
      Row<&O::upstream, &U::steps>(
          "upstream.steps", "PLACEMENT",
          "where the steps of builds run: local, remote, prefer-remote or overflow (default: local)"),
      Row<&O::upstream, &U::host_compiles>("upstream.host_compiles", "PLACEMENT",
                                           "the same for steps of the host compiler (default: as upstream.steps)"),
      Row<&O::upstream, &U::device_compiles>(
          "upstream.device_compiles", "PLACEMENT",
          "the same for nvcc's own programs: cicc, ptxas, ... (default: as upstream.steps)"),
      Row<&O::upstream, &U::links>("upstream.links", "PLACEMENT", "the same for links (default: as upstream.steps)"),
      Row<&O::upstream, &U::overflow_after>("upstream.overflow_after", "TIME",
                                            "with overflow: a step that would wait longer here runs on a worker"),
      Row<&O::upstream, &U::queue_timeout>(
          "upstream.queue_timeout", "TIME",
          "longest wait of a step for a worker (default: 2m; 10m if steps run nowhere else)"),
      Row<&O::upstream, &U::jobs>("upstream.jobs", "N", "steps that the engine has at once (default: 16)"),
      List(Row<&O::upstream, &U::platform>(
          "upstream.platform", "LIST",
          "NAME=VALUE, ...: what a worker must have, such as container-image=docker://...@sha256:...")),
      List(RowBy<ReadPaths, &O::upstream, &U::shipped_folders>(
          "upstream.shipped_folders", "DIRS", "folders of tools to ship with the steps to workers, such as nvcc's")),
      Row<&O::upstream, &U::same_tools>(
          "upstream.same_tools", "BOOL",
          "workers have this node's tools, byte for byte: their results have this node's keys (default: false)"),
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
