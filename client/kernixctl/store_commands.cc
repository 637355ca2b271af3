// SPDX-License-Identifier: Apache-2.0
//
// The commands that keep a cache whole: `kernixctl cache pin`, `unpin` and `verify`.
#include <unistd.h>

#include <algorithm>
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
#include "common/base/json.h"
#include "common/base/request_checks.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix::ctl {
namespace {

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

std::string Counted(uint64_t number, const char* one, const char* many) {
  return StrCat(number, " ", number == 1 ? one : many);
}

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

Command PinCommand(const ClientOptions& options, bool unpin) {
  const auto name = std::make_shared<std::string>();
  return {.name = unpin ? "unpin" : "pin",
          .summary = unpin ? "Let a full cache drop the entries of a name again" : "Keep the entries of a name",
          .details = unpin ? kUnpinDetails : kPinDetails,
          .options = {{"name", name.get(), "The module's name", {.required = true}}},
          .run = [&options, name, unpin] { return RunPin(options, *name, unpin); }};
}

}  // namespace

Command CachePinCommand(const ClientOptions& options) { return PinCommand(options, /*unpin=*/false); }

Command CacheUnpinCommand(const ClientOptions& options) { return PinCommand(options, /*unpin=*/true); }

Command CacheVerifyCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<VerifyFlags>();
  return {.name = "verify",
          .summary = "Check every artifact, and the index against the files",
          .details = kVerifyDetails,
          .options = {{"--repair", &flags->repair, "Remove what is broken"},
                      {"--json", &flags->json, "Print one JSON object"}},
          .run = [&options, flags] { return RunVerify(options, *flags); }};
}

}  // namespace kernix::ctl
