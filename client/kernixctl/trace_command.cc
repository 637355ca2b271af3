// SPDX-License-Identifier: Apache-2.0
#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>
#include <memory>

#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "client/kernixctl/one_entry.h"
#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/os/env.h"
#include "kernix/trace.h"

namespace kernix::ctl {
namespace {

constexpr char kExamples[] = R"(

Prints a line for each step of the build that made the entry, in the order in which the steps began: how long it waited
for its turn and how long it took, and a bar on the time axis of the build. With -o or --json, the same as a trace for
chrome://tracing and Perfetto (https://ui.perfetto.dev).

Examples:
  kernixctl trace 5d0c2f
  kernixctl trace 5d0c2f -o trace.json)";

constexpr size_t kUsualWidth = 80;

struct Flags {
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

int Show(const Flags& flags, const CacheEntryInfo& entry, const BuildTrace& trace) {
  const std::string json = StrCat(ChromeTrace(trace, StrCat("kernixd: ", Title(entry))), "\n");
  if (!flags.output.empty()) {
    const absl::Status written = Env::Posix().WriteFileDurably(flags.output, json, 0644);
    if (!written.ok()) return Fail(Annotate(written, StrCat("cannot write ", flags.output)));
  }
  std::cout << (flags.json ? json : Picture(entry, trace));
  return kOk;
}

int Run(const GlobalOptions& options, const Flags& flags) {
  return WithEntry(options, flags.key, [&](Client& client, const EntryTags& tags) -> int {
    const CacheEntryInfo& entry = tags.front().entry;
    const absl::StatusOr<BuildTrace> trace = client.Trace(entry.key, /*start=*/false);
    return trace.ok() ? Show(flags, entry, *trace) : Fail(trace.status());
  });
}

}  // namespace

Command TraceCommand(const GlobalOptions& options) {
  const auto flags = std::make_shared<Flags>();
  return {.name = "trace",
          .summary = "Show where the time of a build went, by step",
          .details = StrCat(kKeyHelp, kExamples),
          .options = {{"key", &flags->key, "The beginning of the entry's key", {.required = true}},
                      {"-o,--output",
                       &flags->output,
                       "Also write a trace for chrome://tracing to this file",
                       {.names = Names::kFiles}},
                      {"--json", &flags->json, "Print that trace, one JSON object, instead of the picture"}},
          .run = [&options, flags] { return Run(options, *flags); }};
}

}  // namespace kernix::ctl
