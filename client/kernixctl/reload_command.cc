// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>

#include "absl/strings/str_join.h"
#include "client/kernixctl/command.h"
#include "common/base/json.h"
#include "common/base/strings.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
    R"(Has the daemon read its config file again, as SIGHUP does, and prints which settings have changed and which
change only at its next start. If the file is wrong, nothing changes. Only for the daemon's administrators. Never
starts a daemon: exit code 3 means that none is running.

Examples:
  kernixctl --address unix:/run/kernix/kernixd.sock reload
  kernixctl reload --json)";

std::string Json(const ReloadResult& result) {
  return JsonObject()
             .Json("applied", JsonStrings(result.applied))
             .Json("needs_restart", JsonStrings(result.needs_restart))
             .Str() +
         "\n";
}

std::string Text(const ReloadResult& result) {
  std::string text =
      result.applied.empty() ? "nothing has changed\n" : StrCat("changed: ", absl::StrJoin(result.applied, ", "), "\n");
  if (!result.needs_restart.empty()) {
    StrAppend(&text, "restart kernixd to change: ", absl::StrJoin(result.needs_restart, ", "), "\n");
  }
  return text;
}

int Run(const GlobalOptions& options, bool json) {
  return WithClient(options, [json](Client& client) -> int {
    const absl::StatusOr<ReloadResult> result = client.Reload();
    if (!result.ok()) return Fail(result.status());
    std::cout << (json ? Json(*result) : Text(*result));
    return kOk;
  });
}

}  // namespace

Command ReloadCommand(const GlobalOptions& options) {
  const auto json = std::make_shared<bool>(false);
  return {.name = "reload",
          .summary = "Have the daemon read its config file again",
          .details = kDetails,
          .options = {{"--json", json.get(), "Print one JSON object"}},
          .run = [&options, json] { return Run(options, *json); }};
}

}  // namespace kernix::ctl
