// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/build_record.h"

#include "absl/status/statusor.h"
#include "daemon/base/strings.h"
#include "daemon/base/version.h"

namespace kernix {
namespace {

constexpr std::string_view kSocketSuffix = ".sock";

std::string RecordOf(pid_t pid) { return StrCat(pid, " ", BuildId(), "\n"); }

}  // namespace

std::string BuildRecordPath(std::string_view socket) {
  if (socket.ends_with(kSocketSuffix)) socket.remove_suffix(kSocketSuffix.size());
  return StrCat(socket, ".build");
}

absl::Status WriteBuildRecord(Env& env, std::string_view socket, pid_t pid) {
  return env.WriteFile(BuildRecordPath(socket), RecordOf(pid), 0644);
}

bool IsOfThisBuild(Env& env, std::string_view socket, pid_t pid) {
  const absl::StatusOr<std::string> record = env.ReadFile(BuildRecordPath(socket));
  return record.ok() && *record == RecordOf(pid);
}

}  // namespace kernix
