// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/load_log.h"

#include <string_view>

#include "common/base/digest.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/strings.h"

namespace kernix::server {
namespace {

std::string FirstLine(const absl::Status& status) {
  const std::string_view message = ToStd(status.message());
  return std::string(message.substr(0, message.find('\n')));
}

void LogDone(const Identity& user, const std::string& name, const std::string& raw_key, std::string_view outcome,
             Duration took) {
  const absl::StatusOr<Digest> key = Digest::FromRaw(raw_key);
  LogOf(user.name(), LogLevel::kInfo, "load",
        {{"user", user.name()},
         {"name", name},
         {"key", key.ok() ? key->Hex().substr(0, 16) : ""},
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
           {"outcome", "failed"},
           {"ms", took.count()},
           {"kind", v1::ErrorDetail::Kind_Name(KindOf(result.status()))},
           {"error", FirstLine(result.status())}});
    return;
  }
  const std::string_view outcome = result->from_upstream() ? "upstream" : result->cache_hit() ? "hit" : "built";
  LogDone(user, name, result->key(), outcome, took);
}

void LogHit(const Identity& user, const std::string& name, const std::string& key, bool from_upstream, Duration took) {
  LogDone(user, name, key, from_upstream ? "upstream" : "hit", took);
}

}  // namespace kernix::server
