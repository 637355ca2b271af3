// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/failure.h"

#include <algorithm>
#include <csignal>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/base/strings.h"
#include "daemon/exec/root_path.h"
#include "daemon/language/write/kernel_headers.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/tool_paths.h"

namespace kernix::build {
namespace {

// The linkers' messages about symbols, libraries and flags, after a position like "unit.o: in function `f':
// unit.cc:(.text+0x1f): ".
constexpr absl::string_view kLinkPhrases[] = {"undefined reference to", "undefined symbol", "multiple definition of",
                                              "duplicate symbol",       "cannot find",      "unable to find",
                                              "unrecognized option"};

// GCC and Clang: "k.cc:3:5: error: ..."; GNU as: "k.cc:3: Error: ..."; nvcc: "k.cu(3): error: ...", "nvcc fatal   :
// ...", "ptxas error   : ..."; the loader, about a tool.
constexpr absl::string_view kErrorWords[] = {
    "error:", ": Error: ", "error :", "fatal   :", "fatal :", "error   :", "error while loading shared libraries"};

std::string LinkError(absl::string_view line) {
  for (const absl::string_view phrase : kLinkPhrases) {
    const size_t at = line.find(phrase);
    if (at != absl::string_view::npos) return std::string(line.substr(at));
  }
  return "";
}

bool LooksLikeError(absl::string_view line) {
  return std::any_of(std::begin(kErrorWords), std::end(kErrorWords),
                     [line](absl::string_view word) { return absl::StrContains(line, word); });
}

// Of the files that a failed command brings along.
constexpr size_t kMostCommandBytes = 32 << 20;

void AddFile(v1::FailedCommand& command, std::string path, std::string content) {
  v1::FailedCommand::File* file = command.add_file();
  file->set_path(std::move(path));
  file->set_content(std::move(content));
}

// The inputs, and the tree of kernel headers. nullopt if there are too many bytes.
std::optional<v1::FailedCommand> FilesOf(const exec::Action& action) {
  v1::FailedCommand command;
  size_t bytes = 0;
  for (const exec::InputFile& input : action.inputs) {
    if (input.content == nullptr) return std::nullopt;
    bytes += input.content->size();
    if (bytes > kMostCommandBytes) return std::nullopt;
    AddFile(command, input.path, std::string(*input.content));
  }
  if (action.trees == nullptr) return command;
  for (const language::GeneratedFile& header : language::KernelHeaders()) {
    AddFile(command, JoinPath(kKernelHeaders, header.path), header.text);
  }
  return command;
}

}  // namespace

std::string FirstError(std::string_view output) {
  const std::vector<absl::string_view> lines = absl::StrSplit(ToAbsl(output), '\n');
  for (const absl::string_view line : lines) {
    if (std::string found = LinkError(line); !found.empty() && !LooksLikeError(line)) return found;
    if (LooksLikeError(line)) return std::string(absl::StripAsciiWhitespace(line));
  }
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (const auto text = absl::StripAsciiWhitespace(*line); !text.empty()) return std::string(text);
  }
  return "";
}

namespace {

// What happened if a signal of a crash has ended the tool, or a program that it ran. Empty otherwise.
std::string Crash(int exit_code) {
  constexpr int kSignals[] = {SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV};
  const int signal = exit_code - 128;  // as shells and Env have it
  if (std::find(std::begin(kSignals), std::end(kSignals), signal) == std::end(kSignals)) return "";
  return StrCat("the compiler crashed (signal ", signal, "). Try another version of it, or a lower optimization level");
}

}  // namespace

absl::Status StepFailure(const exec::Action& action, const exec::ActionResult& result) {
  std::string output = WithUsersNames(result.output, action.links);
  std::string error = FirstError(output);
  if (error.empty()) error = Crash(result.exit_code);
  if (error.empty()) error = StrCat("exit code ", result.exit_code, " without a message");
  const std::vector<std::string> words = exec::LocalCommand(action);
  const std::string advice = AdviceForFailure(error, words);
  v1::ErrorDetail detail;
  detail.set_kind(v1::ErrorDetail::COMPILATION);
  detail.set_message(StrCat(action.step, " failed: ", error, advice.empty() ? "" : ". ", advice));
  detail.set_compiler_output(std::move(output));
  detail.set_command(ShellCommand(words));
  detail.set_exit_code(result.exit_code);
  return MakeError(std::move(detail));
}

absl::Status WithFailedCommand(const absl::Status& error, const exec::Action& action) {
  std::optional<v1::FailedCommand> command = FilesOf(action);
  if (!command) return error;
  for (const std::string& word : exec::LocalCommand(action)) command->add_word(exec::ExpandRoot(word, "."));
  for (const auto& [name, value] : exec::LocalEnvironment(action)) {
    (*command->mutable_environment())[name] = exec::ExpandRoot(value, ".");
  }
  for (const exec::InputLink& link : action.links) {
    v1::FailedCommand::Link* added = command->add_link();
    added->set_path(link.path);
    added->set_target(link.target);
  }
  std::set<std::string> folders;
  for (const std::string& output : action.outputs) folders.insert(Dirname(output));
  for (const std::string& folder : folders) command->add_folder(folder);
  v1::ErrorDetail detail = GetErrorDetail(error);
  *detail.mutable_failed_command() = *std::move(command);
  return MakeError(std::move(detail));
}

}  // namespace kernix::build
