// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/live_options.h"

#include "absl/strings/str_join.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "daemon/app/settings.h"

namespace kernix::server {
namespace {

constexpr char kToolchains[] = "toolchain";

v1::ReloadResponse Compare(const ServerOptions& started, const ServerOptions& latest, const ServerOptions& fresh) {
  v1::ReloadResponse report;
  for (const Setting& setting : Settings()) {
    if (setting.reloadable && !setting.same(latest, fresh)) report.add_applied(std::string(setting.name));
    if (!setting.reloadable && !setting.same(started, fresh)) report.add_needs_restart(std::string(setting.name));
  }
  if (!SameToolchains(latest.toolchains, fresh.toolchains)) report.add_applied(kToolchains);
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
