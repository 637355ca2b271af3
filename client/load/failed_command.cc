// SPDX-License-Identifier: Apache-2.0
#include "client/load/failed_command.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "client/tools/absolute_path.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/shell_command.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/places.h"
#include "common/wire/input_root.h"
#include "kernix/error.h"

namespace kernix {
namespace {

constexpr char kScript[] = "run.sh";
constexpr char kFailuresFolder[] = "failed";  // in the runtime directory

// The paths come from another process.
bool IsInside(const std::string& path) {
  const std::string normal = NormalizePath(path);
  return !path.empty() && path.front() != '/' && normal != ".." && !normal.starts_with("../");
}

absl::Status CheckThereIsOne(const v1::FailedCommand& command) {
  if (!command.word().empty()) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   "this error has no command that can be run again: only an error of a compiler or linker has one, "
                   "from a kernixd of your own, and for sources of up to 32 MiB");
}

absl::Status CheckInside(const v1::FailedCommand& command) {
  bool inside = true;
  for (const auto& file : command.file()) inside = inside && IsInside(file.path());
  for (const auto& link : command.link()) inside = inside && IsInside(link.path());
  for (const std::string& folder : command.folder()) inside = inside && IsInside(folder);
  return inside ? absl::OkStatus() : MakeError(v1::ErrorDetail::INTERNAL, "a file of the command leaves its folder");
}

// Runs in the folder of its files.
std::string LineInFolder(const v1::FailedCommand& command) {
  std::string line = "env -i TMPDIR=.";
  const std::map<std::string, std::string> variables(command.environment().begin(), command.environment().end());
  for (const auto& [name, value] : variables) StrAppend(&line, " ", ShellQuote(StrCat(name, "=", value)));
  StrAppend(&line, " ", ShellCommand({command.word().begin(), command.word().end()}));
  return line;
}

std::string ScriptOf(const v1::FailedCommand& command) {
  return StrCat(
      "#!/bin/sh\n# Runs a command that failed in a build of kernix again.\ncd \"$(dirname \"$0\")\" || exit\n",
      "exec ", LineInFolder(command), "\n");
}

absl::Status PutFile(Env& env, const std::string& path, const std::string& content, uint32_t mode) {
  KERNIX_RETURN_IF_ERROR(env.CreateDirectories(Dirname(path)));
  return env.WriteFile(path, content, mode);
}

absl::Status PutLink(Env& env, const std::string& path, const std::string& target) {
  KERNIX_RETURN_IF_ERROR(env.CreateDirectories(Dirname(path)));
  if (env.Stat(path, /*follow=*/false).ok()) KERNIX_RETURN_IF_ERROR(env.RemoveFile(path));
  return env.CreateSymlink(target, path);
}

absl::Status PutAll(Env& env, const v1::FailedCommand& command, const std::string& folder) {
  for (const std::string& made : command.folder()) {
    KERNIX_RETURN_IF_ERROR(env.CreateDirectories(JoinPath(folder, made)));
  }
  for (const auto& file : command.file()) {
    KERNIX_RETURN_IF_ERROR(PutFile(env, JoinPath(folder, file.path()), file.content(), 0644));
  }
  for (const auto& link : command.link()) {
    KERNIX_RETURN_IF_ERROR(PutLink(env, JoinPath(folder, link.path()), link.target()));
  }
  return PutFile(env, JoinPath(folder, kScript), ScriptOf(command), 0755);
}

// Removes all but the latest folders in `parent`. Another process may be doing the same.
void RemoveOldFailures(Env& env, const std::string& parent) {
  const absl::StatusOr<std::vector<std::string>> names = env.ListDirectory(parent);
  if (!names.ok() || names->size() <= kKeptFailures) return;
  std::vector<std::pair<int64_t, std::string>> by_age;
  for (const std::string& name : *names) {
    const absl::StatusOr<FileInfo> info = env.Stat(JoinPath(parent, name), /*follow=*/false);
    if (info.ok()) by_age.emplace_back(info->mtime_ns, name);
  }
  std::sort(by_age.rbegin(), by_age.rend());
  for (size_t i = kKeptFailures; i < by_age.size(); ++i) {
    static_cast<void>(env.RemoveTree(JoinPath(parent, by_age[i].second)));
  }
}

}  // namespace

void AddIncludeRoots(const std::vector<v1::Header>& headers, const std::vector<std::string>& roots,
                     v1::FailedCommand& command) {
  std::vector<int> climbs(roots.size());
  for (const v1::Header& header : headers) {
    std::string_view path = header.path();
    int& most = climbs[header.include_root()];
    most = std::max(most, TakeClimbs(path));
  }
  for (size_t i = 0; i < roots.size(); ++i) {
    std::string path = StrCat(kIncludeRootsFolder, "/", i);
    for (int k = 0; k < climbs[i]; ++k) StrAppend(&path, "/", kClimbFolder);
    v1::FailedCommand::Link* link = command.add_link();
    link->set_path(path);
    link->set_target(roots[i]);
  }
}

absl::StatusOr<std::string> SaveFailedCommand(const v1::FailedCommand& command, const std::string& folder) {
  KERNIX_RETURN_IF_ERROR(CheckThereIsOne(command));
  KERNIX_RETURN_IF_ERROR(CheckInside(command));
  const std::string path = AbsolutePath(folder);
  const absl::Status put = PutAll(Env::Posix(), command, path);
  if (put.ok()) return JoinPath(path, kScript);
  return MakeError(v1::ErrorDetail::RESOURCE,
                   StrCat("cannot save the command to ", path, ": ", ToStd(put.message()), ". Choose another folder."));
}

absl::StatusOr<std::string> KeepFailedCommand(const v1::FailedCommand& command) {
  KERNIX_RETURN_IF_ERROR(CheckThereIsOne(command));
  Env& env = Env::Posix();
  KERNIX_ASSIGN_OR_RETURN(const std::string root, RuntimeDirectory(env, ProcessGetEnv, geteuid()));
  const std::string parent = JoinPath(root, kFailuresFolder);
  KERNIX_RETURN_IF_ERROR(env.CreateDirectories(parent, 0700));
  KERNIX_ASSIGN_OR_RETURN(std::string folder, env.CreateTempDirectory(JoinPath(parent, "build-")));
  const absl::Status saved = SaveFailedCommand(command, folder).status();
  if (!saved.ok()) static_cast<void>(env.RemoveTree(folder));
  KERNIX_RETURN_IF_ERROR(saved);
  RemoveOldFailures(env, parent);
  return folder;
}

std::string LineOfFailedCommand(const v1::FailedCommand& command, const std::string& folder) {
  return StrCat("cd ", ShellQuote(folder), " && ", LineInFolder(command));
}

absl::StatusOr<std::string> SaveFailedCommand(const absl::Status& error, const std::string& folder) {
  return SaveFailedCommand(GetErrorDetail(error).failed_command(), folder);
}

}  // namespace kernix
