// SPDX-License-Identifier: Apache-2.0
#include "client/load/diagnostics.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "client/tools/environment.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/wire/input_root.h"
#include "kernix/error.h"

namespace kernix {
namespace {

// "inc/"
std::string_view RootPrefix() {
  static const auto& prefix = *new std::string(StrCat(kIncludeRootsFolder, "/"));
  return prefix;
}

// Skips the folders that an include root is nested in because headers climb above it.
std::string_view SkipClimbs(std::string_view rest) {
  static const auto& folder = *new std::string(StrCat("/", kClimbFolder, "/"));
  while (rest.starts_with(folder)) rest.remove_prefix(folder.size() - 1);
  return rest;
}

// A path name begins a word: it follows a space, a quote (also the UTF-8 quotes that GCC prints), or a bracket.
bool BeginsWord(std::string_view text, size_t at) {
  if (at == 0) return true;
  const auto before = static_cast<unsigned char>(text[at - 1]);
  return absl::ascii_isspace(before) || before >= 0x80 ||
         std::string_view("'\"`([<,=").find(text[at - 1]) != std::string_view::npos;
}

}  // namespace

void PathNames::AddSource(std::string label, std::string path) {
  if (label != path) sources_.emplace_back(std::move(label), std::move(path));
}

bool PathNames::RestoreLabel(std::string_view rest, size_t& length, std::string& path) const {
  for (const auto& [label, full] : sources_) {
    if (!rest.starts_with(label) || rest.size() == label.size()) continue;
    const char after = rest[label.size()];
    if (after != ':' && after != '(') continue;
    length = label.size();
    path = full;
    return true;
  }
  return false;
}

bool PathNames::RestoreRoot(std::string_view rest, size_t& length, std::string& path) const {
  if (!rest.starts_with(RootPrefix())) return false;
  size_t index = 0;
  const char* number = rest.data() + RootPrefix().size();
  const auto [end, error] = std::from_chars(number, rest.data() + rest.size(), index);
  if (error != std::errc() || index >= roots_.size() || end == rest.data() + rest.size() || *end != '/') return false;
  const std::string_view after = SkipClimbs(rest.substr(end - rest.data()));
  length = rest.size() - after.size();
  path = roots_[index];
  return true;
}

std::string PathNames::Restore(std::string_view text) const {
  std::string restored;
  restored.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    size_t length = 0;
    std::string path;
    const std::string_view rest = text.substr(at);
    if (BeginsWord(text, at) && (RestoreLabel(rest, length, path) || RestoreRoot(rest, length, path))) {
      restored += path;
      at += length;
    } else {
      restored += text[at++];
    }
  }
  return restored;
}

namespace {

ErrorCategory CategoryOf(ErrorKind kind) {
  if (kind == v1::ErrorDetail::NOT_REGISTERED_TOOLCHAIN) return ErrorCategory::kToolchain;
  const bool is_known = kind > v1::ErrorDetail::KIND_UNSPECIFIED && kind <= v1::ErrorDetail::NOT_CACHED;
  return is_known ? static_cast<ErrorCategory>(kind) : ErrorCategory::kInternal;
}

}  // namespace

ErrorInfo DescribeError(const absl::Status& status) {
  const v1::ErrorDetail detail = GetErrorDetail(status);
  return {.category = CategoryOf(detail.kind()),
          .compiler_output = detail.compiler_output(),
          .command = detail.command(),
          .exit_code = detail.exit_code()};
}

namespace {

constexpr char kScript[] = "run.sh";

// The paths come from another process.
bool IsInside(const std::string& path) {
  const std::string normal = NormalizePath(path);
  return !path.empty() && path.front() != '/' && normal != ".." && !normal.starts_with("../");
}

absl::Status CheckThereIsOne(const v1::FailedCommand& command) {
  if (!command.word().empty()) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   "this error has no command to run again: only errors of a compiler or linker have one, from your "
                   "own kernixd, and for sources of up to 32 MiB");
}

absl::Status CheckInside(const v1::FailedCommand& command) {
  bool inside = true;
  for (const auto& file : command.file()) inside = inside && IsInside(file.path());
  for (const auto& link : command.link()) inside = inside && IsInside(link.path());
  for (const std::string& folder : command.folder()) inside = inside && IsInside(folder);
  return inside ? absl::OkStatus() : MakeError(v1::ErrorDetail::INTERNAL, "a file of the command leaves its folder");
}

std::string ScriptOf(const v1::FailedCommand& command) {
  std::string script =
      "#!/bin/sh\n# Runs a command that failed in a build of kernix again.\ncd \"$(dirname \"$0\")\" || exit\n"
      "exec env -i TMPDIR=.";
  const std::map<std::string, std::string> variables(command.environment().begin(), command.environment().end());
  for (const auto& [name, value] : variables) StrAppend(&script, " ", ShellQuote(StrCat(name, "=", value)));
  return StrCat(script, " ", ShellCommand({command.word().begin(), command.word().end()}), "\n");
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

absl::StatusOr<std::string> SaveFailedCommand(const absl::Status& error, const std::string& folder) {
  return SaveFailedCommand(GetErrorDetail(error).failed_command(), folder);
}

}  // namespace kernix
