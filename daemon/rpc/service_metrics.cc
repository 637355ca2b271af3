// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/service_metrics.h"

#include <iterator>
#include <string_view>

#include "common/base/digest.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/strings.h"

namespace kernix::server {
namespace {

// By Refusal.
constexpr const char* kReasons[] = {"stranger",      "connections",  "draining", "loads", "lookups",
                                    "request_bytes", "upload_bytes", "fetches",  "lists", "administrator"};
static_assert(std::size(kReasons) == kRefusalCount);

constexpr char kLoadName[] = "kernix_load_seconds";
constexpr char kLoadHelp[] = "How long loads took, from the request to the answer.";
constexpr char kQuickName[] = "kernix_quick_lookup_seconds";
constexpr char kQuickHelp[] = "How long quick lookups took. After a miss, the client asks again with a load.";

}  // namespace

void ServiceMetrics::Register(MetricsRegistry& registry) const {
  registry.AddHistogram(kLoadName, kLoadHelp, hits_, {{"outcome", "hit"}});
  registry.AddHistogram(kLoadName, kLoadHelp, upstream_hits_, {{"outcome", "upstream"}});
  registry.AddHistogram(kLoadName, kLoadHelp, builds_, {{"outcome", "built"}});
  registry.AddHistogram(kLoadName, kLoadHelp, failures_, {{"outcome", "failed"}});
  registry.AddHistogram(kLoadName, kLoadHelp, not_cached_, {{"outcome", "not_cached"}});
  registry.AddCounters("kernix_builds_after_freeze_total", "Loads of frozen processes that needed a build.", "outcome",
                       {{"built", &frozen_builds_}, {"failed", &frozen_failures_}, {"refused", &frozen_refusals_}});
  registry.AddHistogram(kQuickName, kQuickHelp, quick_hits_, {{"outcome", "hit"}});
  registry.AddHistogram(kQuickName, kQuickHelp, quick_misses_, {{"outcome", "miss"}});
  registry.AddCounters("kernix_lookup_files_total",
                       "Toolchain files that quick lookups checked, and files that were watched instead.", "way",
                       {{"looked_at", &files_checked_}, {"watched", &files_watched_}});
  for (size_t i = 0; i < kRefusalCount; ++i) {
    registry.AddCounter("kernix_refusals_total", "Refused requests and connections.", refusals_[i],
                        {{"reason", kReasons[i]}});
  }
}

void ServiceMetrics::NoteFileCheck(const FileCheck& check) {
  files_checked_.Add(check.checked());
  files_watched_.Add(check.spared());
}

void ServiceMetrics::NoteLoad(const absl::StatusOr<v1::LoadResult>& result, Time took) {
  TimesOf(result).Observe(Seconds(took));
}

void ServiceMetrics::NoteFrozenLoad(const absl::StatusOr<v1::LoadResult>& result) {
  const ErrorKind kind = KindOf(result.status());
  if (result.ok() && !result->cache_hit() && !result->joined()) frozen_builds_.Add();
  if (kind == v1::ErrorDetail::COMPILATION) frozen_failures_.Add();
  if (kind == v1::ErrorDetail::NOT_CACHED) frozen_refusals_.Add();
}

MetricHistogram& ServiceMetrics::TimesOf(const absl::StatusOr<v1::LoadResult>& result) {
  if (!result.ok()) return KindOf(result.status()) == v1::ErrorDetail::NOT_CACHED ? not_cached_ : failures_;
  if (result->from_upstream()) return upstream_hits_;
  return result->cache_hit() ? hits_ : builds_;
}

namespace {

std::string FirstLine(const absl::Status& status) {
  const std::string_view message = ToStd(status.message());
  return std::string(message.substr(0, message.find('\n')));
}

// "" if there is no key.
std::string ShortKeyOf(const std::string& raw_key) {
  const absl::StatusOr<Digest> key = Digest::FromRaw(raw_key);
  return key.ok() ? ShortKey(*key) : "";
}

void LogDone(const Identity& user, const std::string& name, const std::string& raw_key, std::string_view outcome,
             Duration took) {
  LogOf(user.name(), LogLevel::kInfo, "load",
        {{"user", user.name()},
         {"name", name},
         {"key", ShortKeyOf(raw_key)},
         {"outcome", outcome},
         {"ms", took.count()}});
}

}  // namespace

void LogLoad(const Identity& user, const std::string& name, const absl::StatusOr<v1::LoadResult>& result,
             Duration took) {
  if (!result.ok()) {
    LogOf(user.name(), LogLevel::kInfo, "load",
          {{"user", user.name()},
           {"name", name},
           {"key", ShortKeyOf(GetErrorDetail(result.status()).key())},
           {"outcome", "failed"},
           {"ms", took.count()},
           {"kind", v1::ErrorDetail::Kind_Name(KindOf(result.status()))},
           {"error", FirstLine(result.status())}});
    return;
  }
  const std::string_view outcome = result->from_upstream() ? "upstream" : result->cache_hit() ? "hit" : "built";
  LogDone(user, name, result->key(), outcome, took);
}

void LogHit(const Identity& user, const std::string& name, const std::string& key, Duration took) {
  LogDone(user, name, key, "hit", took);
}

}  // namespace kernix::server
