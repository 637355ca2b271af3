// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/live_options.h"

#include "absl/strings/str_join.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "daemon/app/settings.h"

namespace kernix::server {
namespace {

constexpr char kToolchains[] = "toolchain";

ReloadReport Compare(const ServerOptions& started, const ServerOptions& latest, const ServerOptions& fresh) {
  ReloadReport report;
  for (const Setting& setting : Settings()) {
    if (setting.reloadable && !setting.same(latest, fresh)) report.applied.emplace_back(setting.name);
    if (!setting.reloadable && !setting.same(started, fresh)) report.needs_restart.emplace_back(setting.name);
  }
  if (!SameToolchains(latest.toolchains, fresh.toolchains)) report.applied.emplace_back(kToolchains);
  return report;
}

void LogReload(const absl::StatusOr<ReloadReport>& report) {
  if (!report.ok()) return Log(LogLevel::kError, "reload_failed", {{"error", report.status().message()}});
  Log(LogLevel::kInfo, "reload", {{"applied", absl::StrJoin(report->applied, ",")}});
  if (report->needs_restart.empty()) return;
  Log(LogLevel::kWarning, "reload_needs_restart", {{"settings", absl::StrJoin(report->needs_restart, ",")}});
}

}  // namespace

ServerOptions LiveOptions::Latest() const {
  const MutexLock lock(mutex_);
  return latest_;
}

absl::StatusOr<ReloadReport> LiveOptions::Reload(const std::function<void(const ServerOptions&)>& apply) {
  absl::StatusOr<ReloadReport> report = ReadAgain(apply);
  LogReload(report);
  return report;
}

absl::StatusOr<ReloadReport> LiveOptions::ReadAgain(const std::function<void(const ServerOptions&)>& apply) {
  if (!can_reload()) {
    return absl::FailedPreconditionError(
        "this kernixd was started without --config, so it has no file to read again: restart it to change its "
        "settings");
  }
  const MutexLock one_at_a_time(reloading_);
  KERNIX_ASSIGN_OR_RETURN(const ServerOptions fresh, read_());
  ReloadReport report = Compare(started_, Latest(), fresh);
  apply(fresh);
  const MutexLock lock(mutex_);
  latest_ = fresh;
  return report;
}

}  // namespace kernix::server
