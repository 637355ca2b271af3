// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>

#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "common/base/strings.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
    R"(Without --name, --older-than or --all, removes nothing (exit code 2). With both --name and --older-than,
removes entries that match both. Programs that have loaded a kernel keep it. In a shared daemon, removes only
your own entries, unless you are an administrator.

Examples:
  kernixctl cache purge --name vector_add
  kernixctl cache purge --older-than 30d
  kernixctl cache purge --all)";

struct Flags {
  std::string name;
  std::string older_than;
  bool all = false;
};

absl::StatusOr<PurgeFilter> FilterFor(const Flags& flags) {
  if (flags.name.empty() && flags.older_than.empty() && !flags.all) {
    return absl::InvalidArgumentError(
        "cache purge needs to know what to remove: --name NAME, --older-than AGE (such as 30d), or --all for "
        "everything");
  }
  PurgeFilter filter{.name = flags.name};
  if (flags.older_than.empty()) return filter;
  const absl::StatusOr<std::chrono::milliseconds> age = ParseAge(flags.older_than);
  if (!age.ok()) return age.status();
  filter.not_used_for = *age;
  return filter;
}

int Run(const GlobalOptions& options, const Flags& flags) {
  const absl::StatusOr<PurgeFilter> filter = FilterFor(flags);
  if (!filter.ok()) return RefuseUsage(ToStd(filter.status().message()));
  return WithClient(options, [&filter](Client& client) -> int {
    const absl::StatusOr<PurgeResult> result = client.Purge(*filter);
    if (!result.ok()) return Fail(result.status());
    std::cout << "removed " << result->entries << (result->entries == 1 ? " entry" : " entries") << ", "
              << FormatBytes(result->bytes) << "\n";
    return kOk;
  });
}

}  // namespace

Command CachePurgeCommand(const GlobalOptions& options) {
  const auto flags = std::make_shared<Flags>();
  return {.name = "purge",
          .summary = "Remove entries",
          .details = kDetails,
          .options = {{"--all", &flags->all, "Everything"},
                      {"--name", &flags->name, "Remove modules with this name", {.excludes = "--all"}},
                      {"--older-than",
                       &flags->older_than,
                       "Remove entries that have not been used for this long: 90s, 10m, 2h, 7d",
                       {.excludes = "--all"}}},
          .run = [&options, flags] { return Run(options, *flags); }};
}

}  // namespace kernix::ctl
