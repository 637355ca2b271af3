// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>

#include "absl/strings/str_join.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "common/base/json.h"
#include "common/os/env.h"
#include "common/os/private_directory.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
    R"(Lists an entry once for each user and name that it was loaded under (its tags), the last used first.
Users see their own tags; administrators see all.

Examples:
  kernixctl cache list
  kernixctl cache list --name vector_add --json)";

struct Flags {
  std::string name;
  bool json = false;
};

std::string Json(const CacheEntryInfo& entry) {
  return JsonObject()
      .Text("key", entry.key)
      .Text("name", entry.name)
      .Text("language", entry.language)
      .Json("architectures", JsonStrings(entry.architectures))
      .Json("functions", JsonStrings(entry.functions))
      .Number("size", entry.size)
      .Number("created_unix_ms", entry.created_unix_ms)
      .Number("last_used_unix_ms", entry.last_used_unix_ms)
      .Number("hits", entry.hits)
      .Number("owner", uint64_t{entry.owner})
      .Str();
}

std::string Json(const std::vector<CacheEntryInfo>& entries) {
  std::vector<std::string> elements;
  for (const CacheEntryInfo& entry : entries) elements.push_back(Json(entry));
  return JsonArray(elements) + "\n";
}

std::string Text(const std::vector<CacheEntryInfo>& entries) {
  const int64_t now = Env::Posix().UnixMillis();
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "OWNER", "FOR", "SIZE", "HITS", "LAST USED", "KEY", "FUNCTIONS"}};
  for (const CacheEntryInfo& entry : entries) {
    const std::string runs_on = entry.language == "cuda" ? absl::StrJoin(entry.architectures, ",") : "cpu";
    const std::chrono::milliseconds age(std::max<int64_t>(0, now - entry.last_used_unix_ms));
    rows.push_back({entry.name, DescribeUser(entry.owner), runs_on, FormatBytes(entry.size), std::to_string(entry.hits),
                    FormatDuration(age) + " ago", entry.key.substr(0, 12), absl::StrJoin(entry.functions, ", ")});
  }
  return FormatTable(rows);
}

int Run(const GlobalOptions& options, const Flags& flags) {
  return WithClient(options, [&flags](Client& client) -> int {
    const absl::StatusOr<std::vector<CacheEntryInfo>> entries = client.List(flags.name);
    if (!entries.ok()) return Fail(entries.status());
    std::cout << (flags.json ? Json(*entries) : Text(*entries));
    return kOk;
  });
}

}  // namespace

Command CacheListCommand(const GlobalOptions& options) {
  const auto flags = std::make_shared<Flags>();
  return {.name = "list",
          .summary = "List the entries of the cache",
          .details = kDetails,
          .options = {{"--name", &flags->name, "Show only modules with this name"},
                      {"--json", &flags->json, "Print a JSON array of objects"}},
          .run = [&options, flags] { return Run(options, *flags); }};
}

}  // namespace kernix::ctl
