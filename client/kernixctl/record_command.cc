// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/kernixctl/command.h"
#include "client/kernixctl/manifest.h"
#include "client/kernixctl/run_command.h"
#include "client/load/recording.h"
#include "client/tools/absolute_path.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
    R"(Runs COMMAND and writes a manifest of all that it loads, in all its processes, from the cache or not: for each load
the sources, the headers, the options, and the key. `kernixctl prefetch` makes another machine have these kernels. What
does not travel: files that flags name (a library's folder, for example) have to be at the same place there.

Exit codes: that of COMMAND, 128 + N if signal N ended it; 126 or 127 if it cannot be started; 1 if it succeeds and the
manifest cannot be written.

Examples:
  kernixctl record -o kernels.manifest -- python train.py --steps 1
  kernixctl record -o kernels.manifest -- kernixctl build kernels --arch sm_90)";

// As in a shell.
constexpr int kNotFoundCode = 127;
constexpr int kCannotRunCode = 126;

struct RecordFlags {
  std::string output;
  std::vector<std::string> command;
};

// A folder that is removed at the end.
class Scratch {
 public:
  static absl::StatusOr<Scratch> Make() {
    const std::string parent = ProcessGetEnv("TMPDIR").value_or("/tmp");
    KERNIX_ASSIGN_OR_RETURN(std::string path,
                            Env::Posix().CreateTempDirectory(JoinPath(AbsolutePath(parent), "kernix-record-")));
    return Scratch(std::move(path));
  }
  Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (!path_.empty()) (void)Env::Posix().RemoveTree(path_);
  }

  const std::string& path() const { return path_; }

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// A command may run for hours: what can be known before is said before.
absl::Status CheckOutput(const std::string& output) {
  const std::string folder = Dirname(AbsolutePath(output));
  if (access(folder.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("no manifest can be written to ", output, ": ", folder,
                                                            " is not there, or this user may not write to it"));
}

absl::Status Write(const std::string& folder, const std::string& output) {
  KERNIX_ASSIGN_OR_RETURN(const Recording recording, ReadRecording(Env::Posix(), folder));
  KERNIX_RETURN_IF_ERROR(Env::Posix().WriteFileDurably(AbsolutePath(output), ManifestOf(recording), 0644));
  std::cerr << "kernixctl: " << recording.loads.size() << (recording.loads.size() == 1 ? " load" : " loads")
            << " recorded in " << output << "\n";
  return absl::OkStatus();
}

int Run(const RecordFlags& flags) {
  if (const absl::Status output = CheckOutput(flags.output); !output.ok()) return Fail(output);
  const absl::StatusOr<Scratch> scratch = Scratch::Make();
  if (!scratch.ok()) return Fail(scratch.status());
  const absl::StatusOr<int> code = RunInForeground(flags.command, StrCat(kRecordVariable, "=", scratch->path()));
  if (!code.ok()) {
    Fail(code.status());
    return absl::IsNotFound(code.status()) ? kNotFoundCode : kCannotRunCode;
  }
  const absl::Status written = Write(scratch->path(), flags.output);
  if (written.ok()) return *code;
  const int failure = Fail(written);
  return *code == kOk ? failure : *code;
}

}  // namespace

Command RecordCommand() {
  const auto flags = std::make_shared<RecordFlags>();
  return {.name = "record",
          .summary = "Run a command, and note what it loads",
          .details = kDetails,
          .options = {{"-o,--output",
                       &flags->output,
                       "Write the manifest to this file",
                       {.required = true, .names = Names::kFiles}},
                      {"command", &flags->command, "After --: the command and its arguments", {.required = true}}},
          .run = [flags] { return Run(*flags); }};
}

}  // namespace kernix::ctl
