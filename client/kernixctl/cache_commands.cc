// SPDX-License-Identifier: Apache-2.0
//
// `kernixctl cache` and its commands, but `show`: stats, list and purge; pin, unpin and verify, which keep a cache
// whole.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "client/kernixctl/progress_line.h"
#include "client/kernixctl/reports.h"
#include "common/base/json.h"
#include "common/base/request_checks.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/flags/languages.h"
#include "common/os/env.h"
#include "common/os/private_directory.h"

namespace kernix::ctl {
namespace {

// --- Stats

constexpr char kStatsDetails[] =
    R"(The counts start at the creation of the store; `kernixctl metrics` has times, those of the upstream, and more. Starts
the daemon if none is running.

Examples:
  kernixctl cache stats
  kernixctl cache stats --json
  kernixctl --store /scratch/kernix cache stats)";

std::string Json(const v1::GetCacheStatsResponse& stats) { return FieldsOf(stats).Str() + "\n"; }

std::string AtMost(uint64_t bytes, uint64_t limit) {
  return FormatBytes(bytes) + (limit == 0 ? "" : " of at most " + FormatBytes(limit));
}

std::string Text(const v1::GetCacheStatsResponse& stats) {
  const auto row = [](const char* name, uint64_t value) {
    return std::vector<std::string>{name, std::to_string(value)};
  };
  return FormatTable({{"store", stats.store_directory()},
                      row("entries", stats.entries()),
                      {"size", AtMost(stats.bytes(), stats.limit_bytes())},
                      {"your entries, each in full", AtMost(stats.held_bytes(), stats.limit_bytes_per_user())},
                      row("hits", stats.hits()),
                      row("misses", stats.misses()),
                      row("  that joined a build", stats.joined()),
                      row("  that another node had built", stats.upstream_hits()),
                      row("builds", stats.builds()),
                      row("failed builds", stats.failures()),
                      row("cancelled builds", stats.cancelled()),
                      row("evictions", stats.evictions())});
}

// --- List

constexpr char kListDetails[] =
    R"(Lists an entry once for each of its tags (the user and the name of a load), the last used first.
Users see their own tags; administrators see all.

Examples:
  kernixctl cache list
  kernixctl cache list --name vector_add --json)";

struct ListFlags {
  std::string name;
  bool json = false;
};

std::string Json(const v1::CacheEntry& entry) {
  return FieldsOf(entry)
      .Text("key", KeyOf(entry))
      .Text("user", DescribeUser(entry.owner()))
      .Text("language", TraitsOf(entry.language()).id)
      .Json("architectures", JsonOfTexts(entry.architecture()))
      .Json("functions", JsonOfTexts(entry.function()))
      .Str();
}

std::string Text(const CacheEntries& entries) {
  const int64_t now = Env::Posix().UnixMillis();
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "OWNER", "FOR", "SIZE", "HITS", "LAST USED", "PINNED", "KEY", "FUNCTIONS"}};
  for (const v1::CacheEntry& entry : entries) {
    const std::string runs_on = entry.architecture().empty() ? "cpu" : absl::StrJoin(entry.architecture(), ",");
    const std::chrono::milliseconds age(std::max<int64_t>(0, now - entry.last_used_unix_ms()));
    rows.push_back({entry.name(), DescribeUser(entry.owner()), runs_on, FormatBytes(entry.size()),
                    std::to_string(entry.hits()), FormatDuration(age) + " ago", entry.pinned() ? "yes" : "no",
                    KeyOf(entry).substr(0, 12), absl::StrJoin(entry.function(), ", ")});
  }
  return FormatTable(rows);
}

// --- Purge

constexpr char kPurgeDetails[] =
    R"(Without --name, --older-than or --all, removes nothing (exit code 2). With both --name and --older-than,
removes entries that match both. Pinned entries stay, unless you give --pinned. Programs that have loaded a kernel
keep it. In a shared daemon, removes only your own entries, unless you are an administrator.

Examples:
  kernixctl cache purge --name vector_add
  kernixctl cache purge --older-than 30d
  kernixctl cache purge --all --pinned)";

struct PurgeFlags {
  std::string name;
  std::string older_than;
  bool all = false;
  bool pinned = false;
};

absl::StatusOr<v1::PurgeCacheRequest> RequestFor(const PurgeFlags& flags) {
  if (flags.name.empty() && flags.older_than.empty() && !flags.all) {
    return absl::InvalidArgumentError(
        "name the entries to remove: --name NAME, --older-than AGE (such as 30d), or --all for "
        "everything");
  }
  v1::PurgeCacheRequest request;
  if (flags.all) request.set_all(true);
  if (!flags.name.empty()) {
    KERNIX_RETURN_IF_ERROR(CheckModuleName(flags.name));
    request.set_name(flags.name);
  }
  if (!flags.older_than.empty()) {
    const absl::StatusOr<std::chrono::milliseconds> age = ParseAge(flags.older_than);
    if (!age.ok()) return age.status();
    request.set_older_than_ms(age->count());
  }
  request.set_pinned(flags.pinned);
  return request;
}

std::string Counted(uint64_t number, const char* one, const char* many) {
  return StrCat(number, " ", number == 1 ? one : many);
}

int RunPurge(const ClientOptions& options, const PurgeFlags& flags) {
  const absl::StatusOr<v1::PurgeCacheRequest> request = RequestFor(flags);
  if (!request.ok()) return RefuseUsage(ToStd(request.status().message()));
  return PrintAnswer(options, [&request](DaemonClient& client) -> absl::StatusOr<std::string> {
    KERNIX_ASSIGN_OR_RETURN(const auto removed,
                            client.Ask<v1::PurgeCacheResponse>("PurgeCache", *request, /*start=*/true));
    return StrCat("removed ", Counted(removed.removed_entries(), "entry", "entries"), ", ",
                  FormatBytes(removed.removed_bytes()),
                  removed.kept_entries() == 0
                      ? ""
                      : StrCat("; ", Counted(removed.kept_entries(), "pinned one stays", "pinned ones stay"),
                               " (--pinned removes them, too)"),
                  "\n");
  });
}

// --- Pin

constexpr char kPinDetails[] =
    R"(Pins the entries that NAME has now; what is built under that name later is not pinned. A full cache, and `cache
purge` without --pinned, leave pinned entries. At most half of the cache can be pinned. In a shared daemon, pins your
own entries, at most an eighth of the cache, unless you are an administrator.

Examples:
  kernixctl cache pin vector_add
  kernixctl cache list --name vector_add)";

constexpr char kUnpinDetails[] =
    R"(Then a full cache drops the entries of NAME like any other. In a shared daemon, unpins only your own entries, unless
you are an administrator.

Examples:
  kernixctl cache unpin vector_add)";

int RunPin(const ClientOptions& options, const std::string& name, bool unpin) {
  return PrintAnswer(options, [&](DaemonClient& client) -> absl::StatusOr<std::string> {
    v1::PinCacheRequest request;
    KERNIX_RETURN_IF_ERROR(CheckModuleName(name));
    request.set_name(name);
    request.set_unpin(unpin);
    KERNIX_ASSIGN_OR_RETURN(const auto now, client.Ask<v1::PinCacheResponse>("PinCache", request, /*start=*/true));
    return StrCat(unpin ? "unpinned " : "pinned ", Counted(now.entries(), "entry", "entries"), "; now ",
                  FormatBytes(now.pinned_bytes()), " of at most ", FormatBytes(now.most_bytes()), " are pinned\n");
  });
}

// --- Verify

constexpr char kVerifyDetails[] =
    R"(Reads each artifact and compares its content with its digest, and the index with the files, in pieces and at a low
priority. Lists what is missing, damaged, unreadable, or not in the index, and then exits with 1. --repair removes
everything listed except unreadable files; the next load builds those kernels again. In a shared daemon, for administrators.

Examples:
  kernixctl cache verify
  kernixctl cache verify --repair)";

struct VerifyFlags {
  bool repair = false;
  bool json = false;
};

using Problem = v1::VerifyCacheResponse::Problem;

std::string Percent(const v1::VerifyCacheResponse& checked) {
  const uint64_t all = std::max<uint64_t>({1, checked.total_bytes(), checked.bytes()});
  return StrCat(100 * checked.bytes() / all, " %");
}

// The sum of all pieces.
absl::StatusOr<v1::VerifyCacheResponse> Verify(DaemonClient& client, bool repair) {
  ProgressLine progress("cache verify", std::cerr, isatty(STDERR_FILENO) == 1);
  v1::VerifyCacheRequest request;
  request.set_repair(repair);
  v1::VerifyCacheResponse all;
  do {
    KERNIX_ASSIGN_OR_RETURN(auto piece, client.Ask<v1::VerifyCacheResponse>("VerifyCache", request, /*start=*/true));
    piece.set_artifacts(piece.artifacts() + all.artifacts());
    piece.set_bytes(piece.bytes() + all.bytes());
    request.set_after(piece.next());
    all.MergeFrom(piece);
    progress.SetState(Percent(all));
    progress.Poll();
  } while (!request.after().empty());
  return all;
}

std::string KindOf(const Problem& problem) { return absl::AsciiStrToLower(Problem::Kind_Name(problem.kind())); }

std::vector<std::string> KeysOf(const Problem& problem) {
  std::vector<std::string> keys;
  for (const std::string& key : problem.key()) keys.push_back(absl::BytesToHexString(key));
  return keys;
}

std::string Text(const v1::VerifyCacheResponse& checked, uint64_t left) {
  std::vector<std::vector<std::string>> rows = {{"PROBLEM", "REPAIRED", "FILE", "ENTRIES"}};
  for (const Problem& problem : checked.problem()) {
    std::vector<std::string> entries = KeysOf(problem);
    for (std::string& key : entries) key.resize(12);
    if (!problem.error().empty()) entries.push_back(problem.error());
    rows.push_back({KindOf(problem), problem.repaired() ? "yes" : "no", problem.path(), absl::StrJoin(entries, ", ")});
  }
  const uint64_t found = checked.problem_size();
  return StrCat(found == 0 ? "" : FormatTable(rows), "checked ", Counted(checked.artifacts(), "artifact", "artifacts"),
                ", ", FormatBytes(checked.bytes()), ": ", Counted(found, "problem", "problems"),
                left == 0 ? "" : StrCat(", ", left, " not repaired"), "\n");
}

std::string Json(const v1::VerifyCacheResponse& checked) {
  const auto problem_json = [](const Problem& problem) {
    return FieldsOf(problem).Text("kind", KindOf(problem)).Json("keys", JsonStrings(KeysOf(problem))).Str();
  };
  return JsonObject()
             .Number("artifacts", checked.artifacts())
             .Number("bytes", checked.bytes())
             .Json("problems", JsonOfAll(checked.problem(), problem_json))
             .Str() +
         "\n";
}

int RunVerify(const ClientOptions& options, const VerifyFlags& flags) {
  return WithClient(options, [&](DaemonClient& client) -> int {
    const absl::StatusOr<v1::VerifyCacheResponse> checked = Verify(client, flags.repair);
    if (!checked.ok()) return Fail(checked.status());
    const auto left = static_cast<uint64_t>(std::count_if(checked->problem().begin(), checked->problem().end(),
                                                          [](const Problem& p) { return !p.repaired(); }));
    std::cout << (flags.json ? Json(*checked) : Text(*checked, left));
    return left == 0 ? kOk : kFailure;
  });
}

}  // namespace

std::string KeyOf(const v1::CacheEntry& entry) { return absl::BytesToHexString(entry.key()); }

absl::StatusOr<std::string> CacheStatsJson(DaemonClient& client, bool start) {
  KERNIX_ASSIGN_OR_RETURN(const auto stats, client.Stats(start));
  return Json(stats);
}

std::string EntriesJson(const CacheEntries& entries) {
  return JsonOfAll(entries, [](const v1::CacheEntry& entry) { return Json(entry); }) + "\n";
}

namespace {

// --- The commands

Command StatsCommand(const ClientOptions& options) {
  const auto json = std::make_shared<bool>(false);
  const auto answer = [json](DaemonClient& client) -> absl::StatusOr<std::string> {
    KERNIX_ASSIGN_OR_RETURN(const auto stats, client.Stats());
    return *json ? Json(stats) : Text(stats);
  };
  return {.name = "stats",
          .summary = "Show hits, builds and size",
          .details = kStatsDetails,
          .options = {{"--json", json.get(), "Print one JSON object"}},
          .run = [&options, answer] { return PrintAnswer(options, answer); }};
}

Command ListCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<ListFlags>();
  const auto answer = [flags](DaemonClient& client) -> absl::StatusOr<std::string> {
    v1::ListCacheRequest request;
    if (!flags->name.empty()) KERNIX_RETURN_IF_ERROR(CheckModuleName(flags->name));
    request.set_name(flags->name);
    KERNIX_ASSIGN_OR_RETURN(const auto found, client.Ask<v1::ListCacheResponse>("ListCache", request, /*start=*/true));
    return flags->json ? EntriesJson(found.entry()) : Text(found.entry());
  };
  return {.name = "list",
          .summary = "List the entries of the cache",
          .details = kListDetails,
          .options = {{"--name", &flags->name, "Show only modules with this name"},
                      {"--json", &flags->json, "Print a JSON array of objects"}},
          .run = [&options, answer] { return PrintAnswer(options, answer); }};
}

Command PurgeCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<PurgeFlags>();
  return {.name = "purge",
          .summary = "Remove entries",
          .details = kPurgeDetails,
          .options = {{"--all", &flags->all, "Everything"},
                      {"--name", &flags->name, "Remove modules with this name", {.excludes = "--all"}},
                      {"--older-than",
                       &flags->older_than,
                       "Remove entries not used for this long: 90s, 10m, 2h, 7d",
                       {.excludes = "--all"}},
                      {"--pinned", &flags->pinned, "Remove pinned entries, too"}},
          .run = [&options, flags] { return RunPurge(options, *flags); }};
}

Command PinCommand(const ClientOptions& options, bool unpin) {
  const auto name = std::make_shared<std::string>();
  return {.name = unpin ? "unpin" : "pin",
          .summary = unpin ? "Let a full cache drop the entries of a name again" : "Keep the entries of a name",
          .details = unpin ? kUnpinDetails : kPinDetails,
          .options = {{"name", name.get(), "The module's name", {.required = true}}},
          .run = [&options, name, unpin] { return RunPin(options, *name, unpin); }};
}

Command VerifyCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<VerifyFlags>();
  return {.name = "verify",
          .summary = "Check every artifact, and the index against the files",
          .details = kVerifyDetails,
          .options = {{"--repair", &flags->repair, "Remove what is broken"},
                      {"--json", &flags->json, "Print one JSON object"}},
          .run = [&options, flags] { return RunVerify(options, *flags); }};
}

constexpr char kDetails[] = R"(Examples:
  kernixctl cache stats
  kernixctl cache list --name vector_add
  kernixctl cache show 5d0c2f
  kernixctl cache purge --older-than 30d
  kernixctl cache pin vector_add
  kernixctl cache verify --repair)";

}  // namespace

Command CacheCommand(const ClientOptions& options) {
  return {.name = "cache",
          .summary = "The cache of compiled kernels",
          .details = kDetails,
          .subcommands = {StatsCommand(options), ListCommand(options), CacheShowCommand(options), PurgeCommand(options),
                          PinCommand(options, /*unpin=*/false), PinCommand(options, /*unpin=*/true),
                          VerifyCommand(options)}};
}

}  // namespace kernix::ctl
