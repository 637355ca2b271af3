// SPDX-License-Identifier: Apache-2.0
//
// The commands about one entry of the cache: `kernixctl cache show` and `kernixctl trace`.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "client/kernixctl/module_report.h"
#include "client/load/kernel_resources.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/flags/languages.h"
#include "common/os/env.h"
#include "common/os/private_directory.h"
#include "kernix/trace.h"

namespace kernix::ctl {
namespace {

// What --help says about KEY.
constexpr char kKeyHelp[] =
    R"(KEY is the beginning of an entry's key, as `kernixctl cache list` shows it: enough digits to tell it from all
other entries that you may see. Never starts a daemon: exit code 3 means that none is running.)";

// One entry; an element for each of its tags.
using EntryTags = std::vector<CacheEntryDetail>;

constexpr size_t kKeyDigits = 64;
// In the message about an ambiguous key.
constexpr size_t kShownDigits = 12;
constexpr size_t kMostShown = 5;

bool IsKey(const std::string& text) {
  return !text.empty() && text.size() <= kKeyDigits &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_isxdigit(c); });
}

int RefuseNone(const std::string& key) {
  return Fail(absl::NotFoundError(
      StrCat("no entry of yours has a key that begins with ", key, "; `kernixctl cache list` shows the keys")));
}

int RefuseSeveral(const std::string& key, const EntryTags& found) {
  std::map<std::string, std::string> names;
  for (const CacheEntryDetail& entry : found) names.emplace(entry.entry.key, entry.entry.name);
  std::vector<std::string> shown;
  for (const auto& [each, name] : names) {
    if (shown.size() < kMostShown)
      shown.push_back(StrCat(each.substr(0, std::max(kShownDigits, key.size() + 1)), " (", name, ")"));
  }
  return RefuseUsage(StrCat(names.size(), " entries have a key that begins with ", key, ": ",
                            absl::StrJoin(shown, ", "), names.size() > shown.size() ? ", ..." : "",
                            "; give more digits"));
}

// Calls `use` with the only entry whose key begins with `key`, and returns its exit code. If there is none, or there
// are several, says so on stderr, and returns the matching exit code.
int WithEntry(const GlobalOptions& options, const std::string& key,
              const std::function<int(Client&, const EntryTags&)>& use) {
  const std::string digits = absl::AsciiStrToLower(key);
  if (!IsKey(digits)) {
    return RefuseUsage(
        StrCat("\"", key, "\" is not the beginning of a key: a key has ", kKeyDigits, " hexadecimal digits"));
  }
  return WithClient(options, [&](Client& client) -> int {
    const absl::StatusOr<EntryTags> found = client.Show(digits);
    if (!found.ok()) return Fail(found.status());
    if (found->empty()) return RefuseNone(digits);
    const bool several = std::any_of(found->begin(), found->end(), [&](const CacheEntryDetail& other) {
      return other.entry.key != found->front().entry.key;
    });
    if (several) return RefuseSeveral(digits, *found);
    return use(client, *found);
  });
}

constexpr char kShowExamples[] = R"(

Examples:
  kernixctl cache show 5d0c2f
  kernixctl cache show 5d0c2f --json)";

struct ShowFlags {
  std::string key;
  bool json = false;
};

// Moments like "2026-01-05 09:12:44 UTC (3 h ago)".
std::string Moment(int64_t unix_ms) {
  const std::chrono::milliseconds age(std::max<int64_t>(0, Env::Posix().UnixMillis() - unix_ms));
  return StrCat(FormatTime(unix_ms), " (", FormatDuration(age), " ago)");
}

std::string RunsOn(const CacheEntryInfo& entry) {
  return StrCat(TraitsOf(entry.language).name, ", ",
                entry.architectures.empty() ? "cpu" : absl::StrJoin(entry.architectures, ", "));
}

std::string OrUnknown(const std::string& text) { return text.empty() ? "not recorded" : text; }

// Of an artifact that this user can read.
absl::StatusOr<std::vector<KernelResources>> KernelsOf(const CacheEntryDetail& entry) {
  KERNIX_ASSIGN_OR_RETURN(const std::string artifact, Env::Posix().ReadFile(entry.path));
  return KernelsInArtifact(artifact);
}

// What the kernels of an entry for GPUs use, or why that is not known.
std::string KernelText(const CacheEntryDetail& entry) {
  if (entry.entry.architectures.empty()) return "";
  const absl::StatusOr<std::vector<KernelResources>> kernels = KernelsOf(entry);
  if (!kernels.ok()) return StrCat("\nwhat the kernels use is not known: ", ToStd(kernels.status().message()), "\n");
  return kernels->empty() ? "" : StrCat("\n", KernelTable(*kernels));
}

std::string Text(const EntryTags& tags) {
  const CacheEntryDetail& first = tags.front();
  std::vector<std::vector<std::string>> rows = {{"key", first.entry.key}};
  for (const CacheEntryDetail& tag : tags) {
    rows.push_back({"tag", StrCat(tag.entry.name, " of ", DescribeUser(tag.entry.owner))});
  }
  rows.push_back({"language", RunsOn(first.entry)});
  for (const CacheEntryDetail::Function& function : first.functions) {
    rows.push_back({"function", StrCat(function.name, ": ", absl::StrJoin(function.tokens, " "))});
  }
  rows.push_back({"size", FormatBytes(first.entry.size)});
  rows.push_back({first.origin.empty() ? "built" : "fetched", Moment(first.entry.created_unix_ms)});
  if (!first.origin.empty()) rows.push_back({"from", first.origin});
  rows.push_back({"last used", Moment(first.entry.last_used_unix_ms)});
  rows.push_back({"hits", StrCat(first.entry.hits)});
  rows.push_back({"toolchain", OrUnknown(first.toolchain)});
  rows.push_back({"options", OrUnknown(absl::StrJoin(first.build_options, " "))});
  if (!first.required_symbol_versions.empty()) {
    rows.push_back({"needs", absl::StrJoin(first.required_symbol_versions, ", ")});
  }
  rows.push_back({"path", first.path});
  return FormatTable(rows) + KernelText(first);
}

std::string JsonOfTags(const EntryTags& tags) {
  std::vector<std::string> elements;
  for (const CacheEntryDetail& tag : tags) {
    elements.push_back(JsonObject().Text("name", tag.entry.name).Number("owner", uint64_t{tag.entry.owner}).Str());
  }
  return JsonArray(elements);
}

std::string JsonOfFunctions(const CacheEntryDetail& entry) {
  std::vector<std::string> elements;
  for (const CacheEntryDetail::Function& function : entry.functions) {
    elements.push_back(
        JsonObject().Text("name", function.name).Text("arg_spec", absl::StrJoin(function.tokens, " ")).Str());
  }
  return JsonArray(elements);
}

std::string Json(const EntryTags& tags) {
  const CacheEntryDetail& first = tags.front();
  JsonObject object;
  object.Text("key", first.entry.key)
      .Json("tags", JsonOfTags(tags))
      .Text("language", first.entry.language)
      .Json("architectures", JsonStrings(first.entry.architectures))
      .Json("functions", JsonOfFunctions(first))
      .Number("size", first.entry.size)
      .Number("created_unix_ms", first.entry.created_unix_ms)
      .Number("last_used_unix_ms", first.entry.last_used_unix_ms)
      .Number("hits", first.entry.hits)
      .Text("origin", first.origin)
      .Text("toolchain", first.toolchain)
      .Json("build_options", JsonStrings(first.build_options))
      .Json("required_symbol_versions", JsonStrings(first.required_symbol_versions))
      .Text("path", first.path);
  const bool for_gpus = !first.entry.architectures.empty();
  if (const auto kernels = KernelsOf(first); for_gpus && kernels.ok()) object.Json("kernels", KernelsJson(*kernels));
  return object.Str() + "\n";
}

int RunShow(const GlobalOptions& options, const ShowFlags& flags) {
  return WithEntry(options, flags.key, [&](Client&, const EntryTags& tags) -> int {
    std::cout << (flags.json ? Json(tags) : Text(tags));
    return kOk;
  });
}

}  // namespace

Command CacheShowCommand(const GlobalOptions& options) {
  const auto flags = std::make_shared<ShowFlags>();
  return {.name = "show",
          .summary = "Show one entry: functions, options, compilers, file, what its kernels use",
          .details = StrCat(kKeyHelp, kShowExamples),
          .options = {{"key", &flags->key, "The beginning of the entry's key", {.required = true}},
                      {"--json", &flags->json, "Print one JSON object"}},
          .run = [&options, flags] { return RunShow(options, *flags); }};
}

namespace {

constexpr char kTraceExamples[] = R"(

Prints a line for each step of the build that made the entry, in the order in which the steps began: how long it waited
for its turn and how long it took, and a bar on the time axis of the build. With -o or --json, the same as a trace for
chrome://tracing and Perfetto (https://ui.perfetto.dev).

Examples:
  kernixctl trace 5d0c2f
  kernixctl trace 5d0c2f -o trace.json)";

constexpr size_t kUsualWidth = 80;

struct TraceFlags {
  std::string key;
  std::string output;
  bool json = false;
};

size_t WidthOfTerminal() {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualWidth;
}

// "vector_add 5d0c2f6e81aa"
std::string Title(const CacheEntryInfo& entry) { return StrCat(entry.name, " ", entry.key.substr(0, 12)); }

std::string Picture(const CacheEntryInfo& entry, const BuildTrace& trace) {
  return StrCat(Printable(Title(entry)), ", built ", FormatTime(trace.began_unix_ms), "\n",
                DrawTrace(trace, WidthOfTerminal()));
}

int Show(const TraceFlags& flags, const CacheEntryInfo& entry, const BuildTrace& trace) {
  const std::string json = StrCat(ChromeTrace(trace, StrCat("kernixd: ", Title(entry))), "\n");
  if (!flags.output.empty()) {
    const absl::Status written = Env::Posix().WriteFileDurably(flags.output, json, 0644);
    if (!written.ok()) return Fail(Annotate(written, StrCat("cannot write ", flags.output)));
  }
  std::cout << (flags.json ? json : Picture(entry, trace));
  return kOk;
}

int RunTrace(const GlobalOptions& options, const TraceFlags& flags) {
  return WithEntry(options, flags.key, [&](Client& client, const EntryTags& tags) -> int {
    const CacheEntryInfo& entry = tags.front().entry;
    const absl::StatusOr<BuildTrace> trace = client.Trace(entry.key, /*start=*/false);
    return trace.ok() ? Show(flags, entry, *trace) : Fail(trace.status());
  });
}

}  // namespace

Command TraceCommand(const GlobalOptions& options) {
  const auto flags = std::make_shared<TraceFlags>();
  return {.name = "trace",
          .summary = "Show where the time of a build went, by step",
          .details = StrCat(kKeyHelp, kTraceExamples),
          .options = {{"key", &flags->key, "The beginning of the entry's key", {.required = true}},
                      {"-o,--output",
                       &flags->output,
                       "Also write a trace for chrome://tracing to this file",
                       {.names = Names::kFiles}},
                      {"--json", &flags->json, "Print that trace, one JSON object, instead of the picture"}},
          .run = [&options, flags] { return RunTrace(options, *flags); }};
}

}  // namespace kernix::ctl
