// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/app/settings.h"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace kernix::server {
namespace {

// The one table whose keys are not settings.
constexpr std::string_view kToolchain = "toolchain";
// How the keys of the one other table begin.
constexpr std::string_view kUpstream = "upstream.";

constexpr std::string_view kScalarKind = "a string, a whole number, true or false";
constexpr std::string_view kListKind = "a list of strings";

class ConfigReader {
 public:
  ConfigReader(const std::string& path, ServerOptions& options) : path_(path), options_(options) {}

  // Goes on after a problem, so that the status has all of them, one a line.
  absl::Status Read(const toml::table& table) {
    std::vector<std::string> problems;
    for (const auto& [key, value] : table) Note(ReadKey(key.str(), value), problems);
    return AllProblems(problems);
  }

  absl::Status Fail(const toml::source_region& where, const std::string& message) const {
    return absl::InvalidArgumentError(StrCat(OriginOf(where), message));
  }

 private:
  static void Note(const absl::Status& status, std::vector<std::string>& problems) {
    if (!status.ok()) problems.emplace_back(status.message());
  }

  std::string OriginOf(const toml::source_region& where) const { return StrCat(path_, ":", where.begin.line, ": "); }

  absl::Status ReadKey(std::string_view key, const toml::node& value) {
    if (key == kToolchain) return ReadToolchains(value);
    if (const toml::table* table = value.as_table()) return ReadTable(key, *table);
    const Setting* setting = FindSetting(key);
    if (setting == nullptr) return Fail(value.source(), UnknownKey(key));
    const std::optional<std::string> text = setting->is_list ? ListText(value) : ScalarText(value);
    if (!text) return Fail(value.source(), StrCat(key, " must be ", setting->is_list ? kListKind : kScalarKind));
    const absl::Status status = setting->set(options_, *text);
    if (!status.ok()) return Fail(value.source(), StrCat(key, ": ", status.message()));
    options_.origins[std::string(key)] = OriginOf(value.source());
    return absl::OkStatus();
  }

  absl::Status ReadTable(std::string_view name, const toml::table& table) {
    std::vector<std::string> problems;
    for (const auto& [key, value] : table) Note(ReadKey(StrCat(name, ".", key.str()), value), problems);
    return AllProblems(problems);
  }

  // ": did you mean cache_limit_bytes?", or nothing. Also a key that `key` is the beginning of. `table` begins them
  // all.
  static std::string Meant(std::string_view key, std::vector<std::string> names, std::string_view table) {
    key.remove_prefix(table.size());
    for (std::string& name : names) name.erase(0, table.size());
    std::string nearest = NearestName(key, names);
    const auto longer =
        std::find_if(names.begin(), names.end(), [&](const auto& name) { return name.starts_with(key); });
    if (nearest.empty() && longer != names.end()) nearest = *longer;
    return nearest.empty() ? "" : StrCat(": did you mean ", table, nearest, "?");
  }

  // Names the keys of the same table alone: errors that travel have a bound.
  static std::string UnknownKey(std::string_view key) {
    const bool is_of_upstream = key.starts_with(kUpstream);
    std::vector<std::string> names;
    for (const Setting& setting : Settings()) {
      if (setting.name.starts_with(kUpstream) == is_of_upstream) names.emplace_back(setting.name);
    }
    const std::string known =
        StrCat(absl::StrJoin(names, ", "), is_of_upstream ? "" : ", [upstream] and [[toolchain]]");
    return StrCat("unknown key \"", key, "\"", Meant(key, names, is_of_upstream ? kUpstream : ""), "; known keys are ",
                  known);
  }

  static std::optional<std::string> ScalarText(const toml::node& node) {
    if (const auto text = node.value_exact<std::string>()) return *text;
    if (const auto number = node.value_exact<int64_t>()) return StrCat(*number);
    if (const auto truth = node.value_exact<bool>()) return *truth ? "true" : "false";
    return std::nullopt;
  }

  // The strings of a list, separated by commas.
  static std::optional<std::string> ListText(const toml::node& node) {
    const toml::array* array = node.as_array();
    if (array == nullptr) return std::nullopt;
    std::vector<std::string> texts;
    for (const toml::node& element : *array) {
      const auto text = element.value_exact<std::string>();
      if (!text) return std::nullopt;
      texts.push_back(*text);
    }
    return absl::StrJoin(texts, ",");
  }

  absl::Status ReadToolchains(const toml::node& node) {
    const toml::array* array = node.as_array();
    if (array == nullptr || !array->is_array_of_tables()) {
      return Fail(node.source(), "write toolchains as [[toolchain]] tables");
    }
    std::vector<std::string> problems;
    for (const toml::node& element : *array) Note(ReadToolchain(*element.as_table()), problems);
    return AllProblems(problems);
  }

  absl::Status ReadToolchain(const toml::table& table) {
    RegisteredToolchain toolchain{.origin = OriginOf(table.source())};
    std::vector<std::string> problems;
    for (const auto& [key, value] : table) Note(ReadToolchainKey(key.str(), value, toolchain), problems);
    if (!problems.empty()) return AllProblems(problems);
    if (toolchain.name.empty() || toolchain.paths.host_compiler().empty()) {
      return Fail(table.source(), "a [[toolchain]] needs name and host_compiler");
    }
    for (const RegisteredToolchain& other : options_.toolchains) {
      if (other.name == toolchain.name) return Fail(table.source(), StrCat("duplicate toolchain \"", other.name, "\""));
    }
    options_.toolchains.push_back(std::move(toolchain));
    return absl::OkStatus();
  }

  absl::Status ReadToolchainKey(std::string_view key, const toml::node& value, RegisteredToolchain& toolchain) {
    v1::ToolchainPaths& paths = toolchain.paths;
    if (key == "name") return ReadName(value, toolchain.name);
    if (key == "host_compiler") return ReadPath(key, value, *paths.mutable_host_compiler());
    if (key == "nvcc") return ReadPath(key, value, *paths.mutable_nvcc());
    if (key == "cuda_include_directories") return ReadPaths(key, value, *paths.mutable_cuda_include_directories());
    if (key == "cuda_library_directories") return ReadPaths(key, value, *paths.mutable_cuda_library_directories());
    return Fail(value.source(), StrCat("unknown key \"", key,
                                       "\" of a toolchain; known keys are name, host_compiler, nvcc, "
                                       "cuda_include_directories, cuda_library_directories"));
  }

  absl::Status ReadName(const toml::node& node, std::string& name) {
    const auto text = node.value_exact<std::string>();
    if (!text || text->empty()) return Fail(node.source(), "name must be a string");
    name = *text;
    return absl::OkStatus();
  }

  absl::Status ReadPath(std::string_view key, const toml::node& node, std::string& path) {
    const auto text = node.value_exact<std::string>();
    if (!text || !text->starts_with('/')) return Fail(node.source(), StrCat(key, " must be an absolute path"));
    path = *text;
    return absl::OkStatus();
  }

  absl::Status ReadPaths(std::string_view key, const toml::node& node,
                         google::protobuf::RepeatedPtrField<std::string>& paths) {
    const toml::array* array = node.as_array();
    if (array == nullptr) return Fail(node.source(), StrCat(key, " must be a list of absolute paths"));
    for (const toml::node& element : *array) KERNIX_RETURN_IF_ERROR(ReadPath(key, element, *paths.Add()));
    return absl::OkStatus();
  }

  const std::string& path_;
  ServerOptions& options_;
};

}  // namespace

absl::Status ParseConfig(const std::string& path, std::string_view text, ServerOptions& options) {
  ConfigReader reader(path, options);
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) return reader.Fail(parsed.error().source(), std::string(parsed.error().description()));
  return reader.Read(parsed.table());
}

absl::Status ReadConfigFile(Env& env, const std::string& path, ServerOptions& options) {
  KERNIX_ASSIGN_OR_RETURN(const std::string text, env.ReadFile(path));
  return ParseConfig(path, text, options);
}

// --- A running daemon ------------------------------------------------------------------------------------------------

namespace {

v1::ReloadResponse Compare(const ServerOptions& started, const ServerOptions& latest, const ServerOptions& fresh) {
  v1::ReloadResponse report;
  for (const Setting& setting : Settings()) {
    if (setting.reloadable && !setting.same(latest, fresh)) report.add_applied(std::string(setting.name));
    if (!setting.reloadable && !setting.same(started, fresh)) report.add_needs_restart(std::string(setting.name));
  }
  if (!SameToolchains(latest.toolchains, fresh.toolchains)) report.add_applied(std::string(kToolchain));
  return report;
}

void LogReload(const absl::StatusOr<v1::ReloadResponse>& report) {
  if (!report.ok()) return Log(LogLevel::kError, "reload_failed", {{"error", report.status().message()}});
  Log(LogLevel::kInfo, "reload", {{"applied", absl::StrJoin(report->applied(), ",")}});
  if (report->needs_restart().empty()) return;
  Log(LogLevel::kWarning, "reload_needs_restart", {{"settings", absl::StrJoin(report->needs_restart(), ",")}});
}

}  // namespace

ServerOptions LiveOptions::Latest() const {
  const MutexLock lock(mutex_);
  return latest_;
}

absl::StatusOr<v1::ReloadResponse> LiveOptions::Reload(const std::function<void(const ServerOptions&)>& apply) {
  absl::StatusOr<v1::ReloadResponse> report = ReadAgain(apply);
  LogReload(report);
  return report;
}

absl::StatusOr<v1::ReloadResponse> LiveOptions::ReadAgain(const std::function<void(const ServerOptions&)>& apply) {
  if (!can_reload()) {
    return absl::FailedPreconditionError(
        "this kernixd was started without --config, so it has no file to read again: restart it to change its "
        "settings");
  }
  const MutexLock one_at_a_time(reloading_);
  KERNIX_ASSIGN_OR_RETURN(const ServerOptions fresh, read_());
  v1::ReloadResponse report = Compare(started_, Latest(), fresh);
  apply(fresh);
  const MutexLock lock(mutex_);
  latest_ = fresh;
  return report;
}

}  // namespace kernix::server
