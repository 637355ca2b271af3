// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/tool_query.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/os/spawner.h"

namespace kernix::toolchain {
namespace {

// At least two, because a task may only wait for a process.
size_t Threads() {
  constexpr size_t kMost = 8;
  return std::clamp<size_t>(std::thread::hardware_concurrency(), 2, kMost);
}

}  // namespace

void RunSideBySide(const std::vector<std::function<void()>>& tasks) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < tasks.size(); i = next++) tasks[i]();
  };
  std::vector<std::future<void>> helpers;  // their ends are waited for, whatever is thrown
  try {
    while (helpers.size() + 1 < std::min(tasks.size(), Threads())) {
      helpers.push_back(std::async(std::launch::async, work));
    }
  } catch (const std::system_error&) {  // there are no more threads to be had: the others do all
  }
  work();
  for (std::future<void>& helper : helpers) helper.get();
}

namespace {

constexpr std::chrono::seconds kPatience{60};

absl::Status AskError(const std::vector<std::string>& argv, std::string_view what, const ProcessResult& result) {
  v1::ErrorDetail detail;
  detail.set_kind(v1::ErrorDetail::TOOLCHAIN);
  detail.set_message(StrCat(argv.front(), " ", what, ":\n", result.output));
  detail.set_compiler_output(result.output);
  detail.set_command(absl::StrJoin(argv, " "));
  detail.set_exit_code(result.exit_code);
  return MakeError(std::move(detail));
}

// Why `program` did not start. The system's words do not tell a script from its interpreter.
absl::Status StartError(Env& env, const std::string& program, const absl::Status& why) {
  const bool has_no_format = absl::StrContains(why.message(), "Exec format error");
  const bool is_there = has_no_format || (absl::IsNotFound(why) && env.Stat(program).ok());
  return MakeError(v1::ErrorDetail::TOOLCHAIN,
                   StrCat(why.message(), is_there ? ". If it is a script, its first line must name an interpreter that "
                                                    "is there, such as #!/bin/sh"
                                                  : ""));
}

}  // namespace

Variables ToolEnvironment(const std::string& program, const Variables& needed) {
  std::string path = Dirname(program);
  for (const char* folder : {"/usr/bin", "/bin"}) {
    if (path != folder) path += StrCat(":", folder);
  }
  // nvcc puts a folder in front of LD_LIBRARY_PATH. An empty one, which follows if the variable is not set, would be
  // the working folder. There is no such folder on any machine.
  Variables environment = needed;
  environment.insert({{"LC_ALL", "C"}, {"LD_LIBRARY_PATH", "/nonexistent"}, {"PATH", path}});
  return environment;
}

ProcessSpec ToolQuery(Env& env, const std::vector<std::string>& argv, const Variables& needed,
                      const std::vector<std::string>& folders) {
  std::vector<std::string> readable = spawn::ToolFolders(env, argv, needed);
  readable.insert(readable.end(), folders.begin(), folders.end());
  return {.argv = argv,
          .environment = ToolEnvironment(argv.front(), needed),
          .working_directory = "/",
          .enclosure = {.readable = std::move(readable), .scratch = ""},
          .timeout = kPatience};
}

bool DoesNotWork(const absl::Status& status) {
  return KindOf(status) == v1::ErrorDetail::TOOLCHAIN && GetErrorDetail(status).exit_code() != 0;
}

absl::StatusOr<std::string> AskTool(Env& env, const std::vector<std::string>& argv, const Variables& needed,
                                    const std::vector<std::string>& folders) {
  const absl::StatusOr<ProcessResult> result = env.RunProcess(ToolQuery(env, argv, needed, folders), nullptr, nullptr);
  if (!result.ok()) return StartError(env, argv.front(), result.status());
  if (result->timed_out) return AskError(argv, StrCat("did not answer within ", kPatience.count(), " s"), *result);
  if (result->exit_code != 0) return AskError(argv, "does not work", *result);
  return result->output;
}

std::vector<std::string> SplitLines(std::string_view text) {
  return absl::StrSplit(ToAbsl(text), absl::ByAnyChar("\r\n"), absl::SkipEmpty());
}

std::optional<std::string> LineAfter(std::string_view text, std::string_view prefix) {
  for (const std::string& line : SplitLines(text)) {
    if (line.starts_with(prefix)) return line.substr(prefix.size());
  }
  return std::nullopt;
}

std::vector<std::string> SplitCommand(std::string_view line) {
  std::vector<std::string> parts;
  bool quoted = false;
  bool open = false;  // a part has begun
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      open = false;
      continue;
    }
    if (!std::exchange(open, true)) parts.emplace_back();
    if (c != '"') parts.back() += c;
  }
  return parts;
}

std::optional<std::string> FindFile(Env& env, const std::vector<std::string>& folders, const std::string& name) {
  for (const std::string& folder : folders) {
    const std::string path = NormalizePath(JoinPath(folder, name));
    const absl::StatusOr<FileInfo> info = env.Stat(path);
    if (info.ok() && info->type == FileType::kRegular) return path;
  }
  return std::nullopt;
}

std::vector<std::string> ExistingFolders(Env& env, const std::vector<std::string>& folders) {
  std::vector<std::string> existing;
  for (const std::string& folder : folders) {
    const absl::StatusOr<std::string> real = env.RealPath(folder);
    if (!real.ok() || std::find(existing.begin(), existing.end(), *real) != existing.end()) continue;
    const absl::StatusOr<FileInfo> info = env.Stat(*real);
    if (info.ok() && info->type == FileType::kDirectory) existing.push_back(*real);
  }
  return existing;
}

}  // namespace kernix::toolchain
