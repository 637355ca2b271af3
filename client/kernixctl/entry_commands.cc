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
#include "client/kernixctl/compile_module.h"
#include "client/kernixctl/format.h"
#include "client/kernixctl/reports.h"
#include "client/load/kernel_resources.h"
#include "client/load/trace.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/flags/languages.h"
#include "common/os/env.h"
#include "common/os/private_directory.h"

namespace kernix::ctl {
namespace {

// The text of --help about KEY.
constexpr char kKeyHelp[] =
    R"(KEY is an unambiguous beginning of an entry's key, as `kernixctl cache list` shows it. Never starts a daemon: exit
code 3 means that none is running.)";

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

int RefuseSeveral(const std::string& key, const CacheEntries& found) {
  std::map<std::string, std::string> names;
  for (const v1::CacheEntry& entry : found) names.emplace(KeyOf(entry), entry.name());
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
int WithEntry(const ClientOptions& options, const std::string& key,
              const std::function<int(DaemonClient&, const CacheEntries&)>& use) {
  const std::string digits = absl::AsciiStrToLower(key);
  if (!IsKey(digits)) {
    return RefuseUsage(
        StrCat("\"", key, "\" is not the beginning of a key: a key has ", kKeyDigits, " hexadecimal digits"));
  }
  return WithClient(options, [&](DaemonClient& client) -> int {
    v1::ListCacheRequest request;
    request.set_key_prefix(digits);
    const auto response = client.Ask<v1::ListCacheResponse>("ListCache", request);
    if (!response.ok()) return Fail(response.status());
    const CacheEntries& found = response->entry();
    if (found.empty()) return RefuseNone(digits);
    const bool several = std::any_of(found.begin(), found.end(),
                                     [&](const v1::CacheEntry& other) { return other.key() != found[0].key(); });
    return several ? RefuseSeveral(digits, found) : use(client, found);
  });
}

// --- Show

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

std::string RunsOn(const v1::CacheEntry& entry) {
  return StrCat(TraitsOf(entry.language()).name, ", ",
                entry.architecture().empty() ? "cpu" : absl::StrJoin(entry.architecture(), ", "));
}

std::string OrUnknown(const std::string& text) { return text.empty() ? "not recorded" : text; }

// Of an artifact that this user can read.
absl::StatusOr<std::vector<KernelResources>> KernelsOf(const v1::CacheEntry& entry) {
  KERNIX_ASSIGN_OR_RETURN(const std::string artifact, Env::Posix().ReadFile(entry.detail().artifact_path()));
  return KernelsInArtifact(artifact);
}

// The resources of the kernels of an entry for GPUs, or why they are not known.
std::string KernelText(const v1::CacheEntry& entry) {
  if (entry.architecture().empty()) return "";
  const absl::StatusOr<std::vector<KernelResources>> kernels = KernelsOf(entry);
  if (!kernels.ok()) return StrCat("\nthe kernels' resources are not known: ", ToStd(kernels.status().message()), "\n");
  return kernels->empty() ? "" : StrCat("\n", KernelTable(*kernels));
}

std::string Text(const CacheEntries& tags) {
  const v1::CacheEntry& first = tags[0];
  const v1::CacheEntryDetail& detail = first.detail();
  std::vector<std::vector<std::string>> rows = {{"key", KeyOf(first)}};
  for (const v1::CacheEntry& tag : tags) {
    rows.push_back({"tag", StrCat(tag.name(), " of ", DescribeUser(tag.owner()), tag.pinned() ? ", pinned" : "")});
  }
  rows.push_back({"language", RunsOn(first)});
  for (const v1::ResolvedFunction& function : detail.function()) {
    rows.push_back({"function", StrCat(function.name(), ": ", absl::StrJoin(function.tokens(), " "))});
  }
  rows.push_back({"size", FormatBytes(first.size())});
  rows.push_back({detail.origin().empty() ? "built" : "fetched", Moment(first.created_unix_ms())});
  if (!detail.origin().empty()) rows.push_back({"from", detail.origin()});
  rows.push_back({"last used", Moment(first.last_used_unix_ms())});
  rows.push_back({"hits", StrCat(first.hits())});
  rows.push_back({"toolchain", OrUnknown(detail.toolchain())});
  rows.push_back({"options", OrUnknown(absl::StrJoin(detail.build_option(), " "))});
  if (!detail.required_symbol_version().empty()) {
    rows.push_back({"needs", absl::StrJoin(detail.required_symbol_version(), ", ")});
  }
  rows.push_back({"path", detail.artifact_path()});
  return FormatTable(rows) + KernelText(first);
}

}  // namespace

std::string EntryJson(const CacheEntries& tags) {
  const v1::CacheEntry& first = tags[0];
  const v1::CacheEntryDetail& detail = first.detail();
  const auto tag_json = [](const v1::CacheEntry& tag) {
    return JsonObject()
        .Text("name", tag.name())
        .Number("owner", uint64_t{tag.owner()})
        .Boolean("pinned", tag.pinned())
        .Str();
  };
  const auto function_json = [](const v1::ResolvedFunction& function) {
    return JsonObject().Text("name", function.name()).Text("arg_spec", absl::StrJoin(function.tokens(), " ")).Str();
  };
  JsonObject object;
  object.Text("key", KeyOf(first))
      .Json("tags", JsonOfAll(tags, tag_json))
      .Text("language", TraitsOf(first.language()).id)
      .Json("architectures", JsonOfTexts(first.architecture()))
      .Json("functions", JsonOfAll(detail.function(), function_json))
      .Number("size", first.size())
      .Number("created_unix_ms", first.created_unix_ms())
      .Number("build_ms", first.build_ms())
      .Number("last_used_unix_ms", first.last_used_unix_ms())
      .Number("hits", first.hits())
      .Text("origin", detail.origin())
      .Text("toolchain", detail.toolchain())
      .Json("build_options", JsonOfTexts(detail.build_option()))
      .Json("required_symbol_versions", JsonOfTexts(detail.required_symbol_version()))
      .Text("path", detail.artifact_path());
  const bool for_gpus = !first.architecture().empty();
  if (const auto kernels = KernelsOf(first); for_gpus && kernels.ok()) object.Json("kernels", KernelsJson(*kernels));
  return object.Str() + "\n";
}

namespace {

int RunShow(const ClientOptions& options, const ShowFlags& flags) {
  return WithEntry(options, flags.key, [&](DaemonClient&, const CacheEntries& tags) -> int {
    std::cout << (flags.json ? EntryJson(tags) : Text(tags));
    return kOk;
  });
}

// --- Trace

constexpr char kTraceExamples[] = R"(

Prints a line for each step of the entry's build, in the order of their starts: the step's waiting time, its running
time, and a bar on the time axis of the build. With -o or --json, writes the same as a trace for chrome://tracing and
Perfetto (https://ui.perfetto.dev).

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
std::string Title(const v1::CacheEntry& entry) { return StrCat(entry.name(), " ", KeyOf(entry).substr(0, 12)); }

std::string Picture(const v1::CacheEntry& entry, const v1::BuildTrace& trace) {
  return StrCat(Printable(Title(entry)), ", built ", FormatTime(trace.began_unix_ms()), "\n",
                DrawTrace(trace, WidthOfTerminal()));
}

int Show(const TraceFlags& flags, const v1::CacheEntry& entry, const v1::BuildTrace& trace) {
  const std::string json = StrCat(ChromeTrace(trace, StrCat("kernixd: ", Title(entry))), "\n");
  if (!flags.output.empty()) {
    const absl::Status written = Env::Posix().WriteFileDurably(flags.output, json, 0644);
    if (!written.ok()) return Fail(Annotate(written, StrCat("cannot write ", flags.output)));
  }
  std::cout << (flags.json ? json : Picture(entry, trace));
  return kOk;
}

int RunTrace(const ClientOptions& options, const TraceFlags& flags) {
  return WithEntry(options, flags.key, [&](DaemonClient& client, const CacheEntries& tags) -> int {
    const absl::StatusOr<v1::BuildTrace> trace = client.Trace(KeyOf(tags[0]), /*start=*/false);
    return trace.ok() ? Show(flags, tags[0], *trace) : Fail(trace.status());
  });
}

}  // namespace

Command CacheShowCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<ShowFlags>();
  return {.name = "show",
          .summary = "Show one entry: functions, options, compilers, file, kernels' resources",
          .details = StrCat(kKeyHelp, kShowExamples),
          .options = {{"key", &flags->key, "The beginning of the entry's key", {.required = true}},
                      {"--json", &flags->json, "Print one JSON object"}},
          .run = [&options, flags] { return RunShow(options, *flags); }};
}

Command TraceCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<TraceFlags>();
  return {.name = "trace",
          .summary = "Show the times of a build, by step",
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
