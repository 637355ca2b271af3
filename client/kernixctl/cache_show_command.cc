// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <memory>

#include "absl/strings/str_join.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "client/kernixctl/kernel_table.h"
#include "client/kernixctl/one_entry.h"
#include "client/load/artifact_kernels.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/private_directory.h"

namespace kernix::ctl {
namespace {

constexpr char kExamples[] = R"(

Examples:
  kernixctl cache show 5d0c2f
  kernixctl cache show 5d0c2f --json)";

struct Flags {
  std::string key;
  bool json = false;
};

// Moments like "2026-01-05 09:12:44 UTC (3 h ago)".
std::string Moment(int64_t unix_ms) {
  const std::chrono::milliseconds age(std::max<int64_t>(0, Env::Posix().UnixMillis() - unix_ms));
  return StrCat(FormatTime(unix_ms), " (", FormatDuration(age), " ago)");
}

std::string RunsOn(const CacheEntryInfo& entry) {
  return entry.language == "cuda" ? StrCat("CUDA, ", absl::StrJoin(entry.architectures, ", ")) : "C++, cpu";
}

std::string OrUnknown(const std::string& text) { return text.empty() ? "not recorded" : text; }

// Of an artifact that this user can read.
absl::StatusOr<std::vector<KernelResources>> KernelsOf(const CacheEntryDetail& entry) {
  KERNIX_ASSIGN_OR_RETURN(const std::string artifact, Env::Posix().ReadFile(entry.path));
  return KernelsInArtifact(artifact);
}

// What the kernels of a CUDA entry use, or why that is not known.
std::string KernelText(const CacheEntryDetail& entry) {
  if (entry.entry.language != "cuda") return "";
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
  const bool is_cuda = first.entry.language == "cuda";
  if (const auto kernels = KernelsOf(first); is_cuda && kernels.ok()) object.Json("kernels", KernelsJson(*kernels));
  return object.Str() + "\n";
}

int Run(const GlobalOptions& options, const Flags& flags) {
  return WithEntry(options, flags.key, [&](Client&, const EntryTags& tags) -> int {
    std::cout << (flags.json ? Json(tags) : Text(tags));
    return kOk;
  });
}

}  // namespace

Command CacheShowCommand(const GlobalOptions& options) {
  const auto flags = std::make_shared<Flags>();
  return {.name = "show",
          .summary = "Show one entry: functions, options, compilers, file, what its kernels use",
          .details = StrCat(kKeyHelp, kExamples),
          .options = {{"key", &flags->key, "The beginning of the entry's key", {.required = true}},
                      {"--json", &flags->json, "Print one JSON object"}},
          .run = [&options, flags] { return Run(options, *flags); }};
}

}  // namespace kernix::ctl
