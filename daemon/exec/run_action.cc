// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/spawner.h"
#include "daemon/exec/executor.h"
#include "daemon/exec/machine_limits.h"
#include "daemon/exec/root_path.h"

namespace kernix::exec {
namespace {

// The tools' messages about failures of the machine. They run with LC_ALL=C, so these are the exact words.
struct Telltale {
  std::string_view text;
  std::string_view meaning;
};
constexpr std::string_view kOutOfMemory = "was refused memory";
constexpr std::string_view kKilled = "was killed, most likely for lack of memory";
constexpr std::string_view kOutOfTime = "used more processor time than";
constexpr std::string_view kOutOfSpace = "found no space left";
constexpr std::string_view kOutputTooLarge = "made a file larger than";
constexpr Telltale kTelltales[] = {
    {"File size limit exceeded", kOutputTooLarge},  // g++ and collect2, about their children
    {"died due to signal 25", kOutputTooLarge},     // nvcc
    {"No space left on device", kOutOfSpace},
    {"Disk quota exceeded", kOutOfSpace},
    {"fatal error: when writing output to", kOutOfSpace},   // GCC, followed by the reason of an earlier failure
    {"Killed signal terminated program", kKilled},          // g++
    {"internal compiler error: Killed (program", kKilled},  // g++ before GCC 9
    {"unable to execute command: Killed", kKilled},         // clang++
    {"terminated with signal 9", kKilled},                  // collect2, about ld
    {"died due to signal 9", kKilled},                      // nvcc
    {"virtual memory exhausted", kOutOfMemory},             // g++
    {"out of memory allocating", kOutOfMemory},             // cc1plus, as
    {": memory exhausted", kOutOfMemory},                   // ld, as
    {"LLVM ERROR: out of memory", kOutOfMemory},            // cicc, clang
    {"what():  std::bad_alloc", kOutOfMemory},
    {"catastrophic error: out of memory", kOutOfMemory},  // cudafe++
    {"Memory allocation failure", kOutOfMemory},          // ptxas
    {"CPU time limit exceeded", kOutOfTime},              // g++ and collect2, about their children
    {"died due to signal 24", kOutOfTime},                // nvcc
};

constexpr std::string_view kKeepStoreElsewhere = "keep the store in another folder (store_directory, KERNIX_CACHE_DIR)";

// Keeps the kind of an error that has one; gives `kind` to a bare error of the operating system.
absl::Status WithKind(const absl::Status& status, ErrorKind kind) {
  if (absl::IsResourceExhausted(status)) kind = v1::ErrorDetail::RESOURCE;
  return MakeError(kind, ToStd(status.message()));
}

// Describes what to do when the disk of `directory` is full.
std::string FreeSpace(const std::string& directory) {
  return StrCat("free space on the disk of ", directory, ", for example with `kernixctl cache purge`, or ",
                kKeepStoreElsewhere);
}

absl::Status StagingError(const absl::Status& status, std::string_view what, const RunOptions& options) {
  const absl::Status error = Annotate(WithKind(status, v1::ErrorDetail::INTERNAL), what);
  if (!absl::IsResourceExhausted(status)) return error;
  return MakeError(v1::ErrorDetail::RESOURCE, StrCat(error.message(), ": ", FreeSpace(options.scratch_directory)));
}

// True for a path that stays inside the root.
bool IsInside(const std::string& path) {
  if (path.empty() || path.front() == '/') return false;
  const std::string normal = NormalizePath(path);
  return normal != "." && normal != ".." && !normal.starts_with("../");
}

bool IsTooDeep(const std::string& path) {
  const std::string normal = NormalizePath(path);
  return std::count(normal.begin(), normal.end(), '/') >= kMaxMountDepth;
}

const std::vector<MountedTree>& TreesOf(const Action& action) {
  static const auto& none = *new std::vector<MountedTree>();
  return action.trees == nullptr ? none : *action.trees;
}

absl::Status CheckPaths(const Action& action) {
  const auto bad = [&](const std::string& path) {
    return MakeError(v1::ErrorDetail::INTERNAL,
                     StrCat("step \"", action.step, "\": path \"", path, "\" is outside the action's root"));
  };
  for (const InputFile& input : action.inputs) {
    if (!IsInside(input.path)) return bad(input.path);
  }
  for (const std::string& output : action.outputs) {
    if (!IsInside(output)) return bad(output);
  }
  for (const InputLink& link : action.links) {
    if (!IsInside(link.path)) return bad(link.path);
  }
  for (const MountedTree& mounted : TreesOf(action)) {
    if (!IsInside(mounted.path)) return bad(mounted.path);
    if (IsTooDeep(mounted.path)) {
      return MakeError(
          v1::ErrorDetail::INTERNAL,
          StrCat("step \"", action.step, "\": a tree cannot be mounted as deep as \"", mounted.path, "\""));
    }
  }
  return absl::OkStatus();
}

absl::Status MountTree(Env& env, const std::string& scratch_directory, const std::string& root,
                       const MountedTree& mounted) {
  KERNIX_ASSIGN_OR_RETURN(const std::string folder, mounted.tree->Stage(env, scratch_directory));
  const std::string path = JoinPath(root, mounted.path);
  KERNIX_RETURN_IF_ERROR(env.CreateDirectories(Dirname(path)));
  return env.CreateSymlink(folder, path);
}

absl::Status MakeLink(Env& env, const std::string& root, const InputLink& link) {
  const std::string path = JoinPath(root, link.path);
  KERNIX_RETURN_IF_ERROR(env.CreateDirectories(Dirname(path)));
  return env.CreateSymlink(link.target, path);
}

absl::Status StageInputs(Env& env, const std::string& scratch_directory, const std::string& root,
                         const Action& action) {
  for (const MountedTree& mounted : TreesOf(action)) {
    KERNIX_RETURN_IF_ERROR(MountTree(env, scratch_directory, root, mounted));
  }
  for (const InputLink& link : action.links) KERNIX_RETURN_IF_ERROR(MakeLink(env, root, link));
  std::set<std::string> folders;
  for (const std::string& output : action.outputs) folders.insert(Dirname(JoinPath(root, output)));
  for (const std::string& folder : folders) KERNIX_RETURN_IF_ERROR(env.CreateDirectories(folder));
  return WriteInputs(env, root, action.inputs);
}

// All files of a job may together be this many times as large as the largest one.
constexpr uint64_t kFilesOfAJob = 4;

// Twice the processor time that the action can use within its time limit: only a process that escaped the time limit
// reaches it. 0: no limit.
std::chrono::seconds CpuLimit(const Action& action) {
  constexpr int kMostThreads = 4;  // of one process: ptxas --split-compile
  return 2 * kMostThreads * std::chrono::ceil<std::chrono::seconds>(action.timeout);
}

// The folders of the toolchain: those that links, the paths of tools, and the environment lead to. A path's target may
// be an installation, too.
std::vector<std::string> ReadableFolders(Env& env, const Action& action) {
  std::vector<std::string> programs;
  for (const auto& [placeholder, path] : action.local_paths) programs.push_back(path);
  std::vector<std::string> folders = spawn::ToolFolders(env, programs, LocalEnvironment(action));
  for (const InputLink& link : action.links) folders.push_back(link.target);
  return folders;
}

// The first folder of `path` below `scratch`.
std::string NameIn(const std::string& scratch, const std::string& path) {
  const std::string name = path.substr(scratch.size() + 1);
  return name.substr(0, name.find('/'));
}

void Enclose(Env& env, const Action& action, const std::string& root, ProcessSpec& spec) {
  const std::string scratch = Dirname(root);
  spec.enclosure = {.readable = ReadableFolders(env, action), .scratch = scratch};
  for (const MountedTree& mounted : TreesOf(action)) {
    spec.folders.push_back(NameIn(scratch, env.RealPath(mounted.tree->Folder()).value_or(mounted.tree->Folder())));
  }
  spec.writable = NameIn(scratch, root);
}

ProcessSpec MakeProcessSpec(Env& env, const Action& action, const std::string& root, const RunOptions& options) {
  ProcessSpec spec;
  for (const std::string& word : LocalCommand(action)) spec.argv.push_back(ExpandRoot(word, root));
  for (const auto& [name, value] : LocalEnvironment(action)) spec.environment[name] = ExpandRoot(value, root);
  spec.environment.try_emplace("TMPDIR", root);
  spec.working_directory = root;
  Enclose(env, action, root, spec);
  spec.timeout = action.timeout;
  spec.max_file_bytes = options.max_output_bytes;
  spec.max_folder_bytes = kFilesOfAJob * options.max_output_bytes;
  spec.max_address_space_bytes = options.max_process_memory_bytes;
  spec.max_cpu_time = CpuLimit(action);
  spec.max_processes = options.max_processes;
  spec.niceness = options.niceness;
  return spec;
}

// The last check of what a shell will see.
absl::Status CheckForShell(const Action& action, const std::string& root) {
  if (!action.tool_uses_shell) return absl::OkStatus();
  for (const std::string& word : LocalCommand(action)) {
    if (IsHarmlessWord(ExpandRoot(word, root))) continue;
    return MakeError(v1::ErrorDetail::INTERNAL,
                     StrCat("step \"", action.step, "\": a shell would interpret the word \"", word, "\""));
  }
  if (IsHarmlessQuoted(root)) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::RESOURCE,
                   StrCat("step \"", action.step, "\": ", Basename(ToolPath(action)), " cannot work in ", Dirname(root),
                          ", because it passes that path to a shell, which would interpret its $, `, \" or \\: ",
                          kKeepStoreElsewhere));
}

absl::Status StartError(const absl::Status& status, const Action& action) {
  if (absl::IsCancelled(status)) return MakeError(v1::ErrorDetail::CANCELLED, ToStd(status.message()));
  if (absl::IsInvalidArgument(status)) {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                     StrCat("step \"", action.step, "\": ", status.message(), ". Use fewer or shorter flags."));
  }
  const bool no_program = absl::IsNotFound(status) || absl::IsPermissionDenied(status);
  return Annotate(WithKind(status, no_program ? v1::ErrorDetail::TOOLCHAIN : v1::ErrorDetail::INTERNAL),
                  StrCat("step \"", action.step, "\""));
}

absl::StatusOr<ProcessResult> RunCommand(Env& env, const std::string& root, const RunOptions& options,
                                         const Action& action, ActionObserver* observer, Cancellation* cancellation) {
  RootRemover remover(root);
  const auto show = [&](const std::string& text) {
    if (observer != nullptr && !text.empty()) observer->OnOutput(text);
  };
  if (observer != nullptr) observer->OnStarted(action);
  absl::StatusOr<ProcessResult> result = env.RunProcess(
      MakeProcessSpec(env, action, root, options), [&](std::string_view piece) { show(remover.Feed(piece)); },
      cancellation);
  show(remover.Finish());
  if (!result.ok()) return StartError(result.status(), action);
  result->output = RemoveRoot(result->output, root);
  return result;
}

absl::Status MachineFailure(const Action& action, const ProcessResult& process, std::string_view what) {
  v1::ErrorDetail detail;
  detail.set_kind(v1::ErrorDetail::RESOURCE);
  detail.set_message(StrCat("step \"", action.step, "\": ", Basename(ToolPath(action)), " ", what));
  detail.set_compiler_output(process.output);
  detail.set_command(absl::StrJoin(LocalCommand(action), " "));
  detail.set_exit_code(process.exit_code);
  return MakeError(std::move(detail));
}

std::string WhatToRaise(uint64_t max_output_bytes) {
  return StrCat(max_output_bytes,
                " bytes, this kernixd's max_output_bytes: raise it (--max-output-bytes, KERNIX_MAX_OUTPUT_BYTES), or "
                "make the kernel's static data smaller");
}

std::string FilesTooLarge(uint64_t max_output_bytes) {
  return StrCat("made files of more than ", kFilesOfAJob * max_output_bytes, " bytes together, ", kFilesOfAJob,
                " times ", WhatToRaise(max_output_bytes));
}

// The limit that applied may be that of kernixd's own process.
std::string TooLarge(Env& env, uint64_t max_output_bytes) {
  const std::optional<uint64_t> limit = FileSizeLimit(env, max_output_bytes);
  if (max_output_bytes != 0 && limit == max_output_bytes) {
    return StrCat(kOutputTooLarge, " ", WhatToRaise(max_output_bytes));
  }
  return StrCat(kOutputTooLarge, " ", limit ? StrCat(*limit, " bytes") : "it may",
                ", kernixd's own limit: raise it (ulimit -f; LimitFSIZE= of a systemd unit), or make the kernel's "
                "static data smaller");
}

// Some tools misreport a full disk; cudafe++ reports an error of its own. The files that they wrote are still there.
bool IsDiskFull(Env& env, const std::string& root) {
  constexpr uint64_t kNextToNothing = 64 << 10;
  const absl::StatusOr<uint64_t> free = env.FreeBytes(root);
  return free.ok() && *free < kNextToNothing;
}

std::string WhatMemoryToRaise(const RunOptions& options) {
  return StrCat(options.max_process_memory_bytes,
                " bytes, this kernixd's max_process_memory_bytes. Make the kernel smaller, or raise it "
                "(--max-process-memory-bytes, KERNIX_MAX_PROCESS_MEMORY_BYTES)");
}

std::string NoMemory(const RunOptions& options) {
  if (options.max_process_memory_bytes == 0) return StrCat(kOutOfMemory, ": the machine has no more");
  return StrCat(kOutOfMemory, ": one process of a job may have ", WhatMemoryToRaise(options));
}

// The kernel kills a process at a hard limit of processor time, also one of kernixd's own.
std::string Killed(Env& env, const ProcessResult& process) {
  const std::optional<uint64_t> limit = HardCpuLimit(env);
  const auto used = std::chrono::ceil<std::chrono::seconds>(process.processor).count();
  if (!limit || static_cast<uint64_t>(used) < *limit) return std::string(kKilled);
  return StrCat(kOutOfTime, " ", *limit, " s, kernixd's own limit: raise it (ulimit -t; LimitCPU= of a systemd unit)");
}

std::string NoProcessorTime(const Action& action) {
  return StrCat(kOutOfTime, " ", CpuLimit(action).count(),
                " s, a limit derived from this kernixd's job_timeout: raise it (--job-timeout, KERNIX_JOB_TIMEOUT)");
}

std::string TooManyProcesses(const RunOptions& options) {
  return StrCat("ran more than ", options.max_processes,
                " processes at once, this kernixd's max_processes_per_job: let it start fewer (flags such as -flto=N), "
                "or raise it (--max-processes-per-job, KERNIX_MAX_PROCESSES_PER_JOB)");
}

std::string TooMuchMemory(const RunOptions& options) {
  return StrCat("was killed, because its processes together had all of the memory that a job may have: ",
                WhatMemoryToRaise(options));
}

std::string Exceeded(ProcessResult::Excess excess, const RunOptions& options) {
  if (excess == ProcessResult::Excess::kProcesses) return TooManyProcesses(options);
  if (excess == ProcessResult::Excess::kBytesOfFiles) return FilesTooLarge(options.max_output_bytes);
  return TooMuchMemory(options);
}

// Describes why a command failed if its input was not at fault.
std::optional<std::string> WhatGaveOut(Env& env, const std::string& root, const RunOptions& options,
                                       const Action& action, const ProcessResult& process) {
  const auto words = [&](std::string_view meaning) {
    if (meaning == kOutputTooLarge) return TooLarge(env, options.max_output_bytes);
    if (meaning == kOutOfMemory) return NoMemory(options);
    if (meaning == kKilled) return Killed(env, process);
    if (meaning == kOutOfTime) return NoProcessorTime(action);
    if (meaning == kOutOfSpace) return StrCat(kOutOfSpace, ": ", FreeSpace(options.scratch_directory));
    return std::string(meaning);
  };
  if (process.signal == SIGKILL) return words(kKilled);
  if (process.signal == SIGXFSZ) return words(kOutputTooLarge);
  if (process.signal == SIGXCPU) return words(kOutOfTime);
  for (const Telltale& telltale : kTelltales) {
    if (process.output.find(telltale.text) != std::string::npos) return words(telltale.meaning);
  }
  if (IsDiskFull(env, root)) return words(kOutOfSpace);
  return std::nullopt;
}

// Distinguishes a failure of the machine from a command that rejected its input.
absl::Status CheckMachine(Env& env, const std::string& root, const RunOptions& options, const Action& action,
                          const ProcessResult& process) {
  if (process.timed_out) {
    return MachineFailure(action, process,
                          StrCat("did not end within ", std::chrono::duration<double>(action.timeout).count(),
                                 " s, this kernixd's job_timeout: raise it (--job-timeout, KERNIX_JOB_TIMEOUT)"));
  }
  if (process.excess != ProcessResult::Excess::kNone) {
    return MachineFailure(action, process, Exceeded(process.excess, options));
  }
  if (process.exit_code == 0) return absl::OkStatus();
  const std::optional<std::string> what = WhatGaveOut(env, root, options, action, process);
  return what ? MachineFailure(action, process, *what) : absl::OkStatus();
}

// Follows no links, in the whole path: a command must not make the daemon read another file. The command's processes
// have ended, so nothing changes any more.
absl::StatusOr<FileInfo> StatOutput(Env& env, const std::string& root, const std::string& path) {
  const std::string file = JoinPath(root, path);
  KERNIX_ASSIGN_OR_RETURN(const FileInfo info, env.Stat(file, /*follow=*/false));
  KERNIX_ASSIGN_OR_RETURN(const std::string real_root, env.RealPath(root));
  KERNIX_ASSIGN_OR_RETURN(const std::string real_file, env.RealPath(file));
  const bool has_links = real_file != NormalizePath(JoinPath(real_root, path));
  if (info.type != FileType::kRegular || has_links) return absl::NotFoundError(StrCat(file, " is not a regular file"));
  return info;
}

absl::StatusOr<Content> ReadOutput(Env& env, const std::string& root, const std::string& path) {
  KERNIX_RETURN_IF_ERROR(StatOutput(env, root, path).status());
  KERNIX_ASSIGN_OR_RETURN(std::string data, env.ReadFile(JoinPath(root, path)));
  return MakeContent(std::move(data));
}

// Runs before the outputs are read, since reading puts them into this process's memory.
absl::Status CheckOutputSizes(Env& env, const std::string& root, const Action& action, uint64_t max_output_bytes) {
  uint64_t bytes = 0;
  for (const std::string& path : action.outputs) {
    const absl::StatusOr<FileInfo> info = StatOutput(env, root, path);
    if (info.ok()) bytes += info->size;
  }
  if (max_output_bytes == 0 || bytes <= max_output_bytes) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::RESOURCE, StrCat("step \"", action.step, "\": its outputs have ", bytes,
                                                     " bytes, more than ", WhatToRaise(max_output_bytes)));
}

using Replacements = std::vector<std::pair<absl::string_view, std::string>>;

Replacements LocalPaths(const Action& action) { return {action.local_paths.begin(), action.local_paths.end()}; }

absl::Status ReadOutputs(Env& env, const std::string& root, const Action& action, ActionResult& result) {
  for (const std::string& path : action.outputs) {
    absl::StatusOr<Content> content = ReadOutput(env, root, path);
    if (content.ok()) {
      result.outputs[path] = *std::move(content);
    } else if (result.exit_code == 0) {
      return Annotate(WithKind(content.status(), v1::ErrorDetail::INTERNAL),
                      StrCat("step \"", action.step, "\" succeeded without writing \"", path, "\""));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> LocalCommand(const Action& action) {
  std::vector<std::string> words;
  const Replacements paths = LocalPaths(action);
  for (const std::string& word : action.argv) words.push_back(absl::StrReplaceAll(word, paths));
  return words;
}

std::map<std::string, std::string> LocalEnvironment(const Action& action) {
  std::map<std::string, std::string> environment = action.environment;
  const Replacements paths = LocalPaths(action);
  for (auto& [name, value] : environment) value = absl::StrReplaceAll(value, paths);
  return environment;
}

std::string ToolPath(const Action& action) {
  const std::string path = LocalCommand(action).front();
  for (const InputLink& link : action.links) {
    if (path.starts_with(link.path + "/")) return link.target + path.substr(link.path.size());
  }
  return path;
}

absl::StatusOr<ActionResult> RunAction(Env& env, const RunOptions& options, const Action& action,
                                       ActionObserver* observer, Cancellation* cancellation) {
  if (cancellation != nullptr && cancellation->cancelled()) {
    return MakeError(v1::ErrorDetail::CANCELLED, StrCat("step \"", action.step, "\" was cancelled"));
  }
  KERNIX_RETURN_IF_ERROR(CheckPaths(action));
  const absl::StatusOr<std::string> root = MakeScratchFolder(env, options.scratch_directory, "action-");
  if (!root.ok()) return StagingError(root.status(), "cannot create a folder to build in", options);
  const absl::Cleanup remove = [&] { RemoveScratchFolder(env, *root); };
  KERNIX_RETURN_IF_ERROR(CheckForShell(action, *root));
  const absl::Status staged = StageInputs(env, options.scratch_directory, *root, action);
  if (!staged.ok()) return StagingError(staged, "cannot write the build's input files", options);

  KERNIX_ASSIGN_OR_RETURN(const ProcessResult process, RunCommand(env, *root, options, action, observer, cancellation));
  KERNIX_RETURN_IF_ERROR(CheckMachine(env, *root, options, action, process));
  KERNIX_RETURN_IF_ERROR(CheckOutputSizes(env, *root, action, options.max_output_bytes));
  ActionResult result;
  result.exit_code = process.exit_code;
  result.output = process.output;
  result.wall = process.wall;
  result.processor = process.processor;
  result.peak_memory_bytes = process.max_rss_bytes;
  KERNIX_RETURN_IF_ERROR(ReadOutputs(env, *root, action, result));
  return result;
}

}  // namespace kernix::exec
