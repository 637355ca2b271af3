// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/shared_output.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/base/shell_words.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/builder/failure.h"
#include "daemon/builder/files_read.h"
#include "daemon/builder/include_trace.h"
#include "daemon/builder/source_lines.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/plan/plan_parts.h"
#include "daemon/plan/tool_paths.h"

namespace kernix::build {
namespace {

using toolchain::HostCompilerKind;

constexpr char kAssemblySource[] = "kernix-unit/explained.s";
constexpr char kAssemblyObject[] = "kernix-unit/explained.o";

// Adds words for the host compiler, whether the command calls it directly or through nvcc.
void AddHostWords(const std::vector<std::string>& words, Step& step) {
  for (const std::string& word : words) {
    if (step.tool == Tool::kNvcc) step.action.local_words.push_back("-Xcompiler");
    step.action.local_words.push_back(word);
  }
}

QuotableTexts TextsOf(const BuildRequest& request, const HeaderContents& contents) {
  QuotableTexts texts;
  for (const Unit& unit : request.units) {
    for (const language::SourceText& source : unit.sources) texts.Add(source.label, source.text);
  }
  for (const HeaderRef& header : request.headers) {
    const auto content = contents.find(header.digest);
    if (content != contents.end()) texts.Add(HeaderName(request, header), *content->second);
  }
  return texts;
}

// The name in "fatal error: x.h: No such file or directory" (GCC) or "fatal error: 'x.h' file not found" (Clang). Such
// an error is the last line of a trace.
std::vector<std::string> NamesNotRead(std::string_view messages, HostCompilerKind kind) {
  const size_t at = messages.find(kFatalError);
  if (at == std::string_view::npos) return {};
  std::string_view said = messages.substr(at + kFatalError.size());
  said = said.substr(0, said.find('\n'));
  if (kind == HostCompilerKind::kGcc) return {std::string(said.substr(0, said.rfind(": ")))};
  const size_t open = said.find('\'');
  const size_t close = said.rfind('\'');
  if (open == close) return {};
  return {std::string(said.substr(open + 1, close - open - 1))};
}

absl::Status WithoutOutput(const absl::Status& status) {
  v1::ErrorDetail detail = GetErrorDetail(status);
  detail.clear_compiler_output();
  return MakeError(std::move(detail));
}

// The error that replaces output which may quote unknown files.
absl::Status Hidden(const exec::Action& action, std::string_view why) {
  v1::ErrorDetail detail;
  detail.set_kind(v1::ErrorDetail::COMPILATION);
  detail.set_message(StrCat(action.step, " failed. ", why));
  detail.set_command(ShellCommand(exec::LocalCommand(action)));
  detail.set_exit_code(1);
  return MakeError(std::move(detail));
}

constexpr char kUnknownReads[] =
    "The compiler's output is not shown: this kernixd is shared and does not know which files the compiler has read. "
    "Load with a private kernixd to see it";

// The command, changed so that the compiler reports what it opens, handles one architecture at a time, and runs no
// assembler.
exec::Action TellingCommand(const toolchain::Toolchain& toolchain, Step step) {
  exec::Action& action = step.action;
  action.step = StrCat("explain ", action.step);
  action.work = exec::Work::kOther;
  std::erase_if(action.local_words, [](const std::string& word) { return absl::StartsWith(word, "--threads="); });
  action.jobs = 1;
  std::vector<std::string> words = {"-H"};
  if (!step.object.empty()) {
    words.push_back("-S");
    action.outputs = {step.object};  // the assembler's text instead of the object
  }
  if (toolchain.host.kind == HostCompilerKind::kClang) words.emplace_back("-Wno-unused-command-line-argument");
  AddHostWords(words, step);
  return std::move(step.action);
}

exec::Action AssembleCommand(const toolchain::Toolchain& toolchain, const exec::Action& failed, exec::Content text) {
  exec::Action action;
  action.step = StrCat("explain ", failed.step);
  action.argv = {toolchain.host.path, "-c", "-o", kAssemblyObject, kAssemblySource};
  if (toolchain.host.kind == HostCompilerKind::kClang) action.argv.emplace_back("-fno-integrated-as");
  action.environment = failed.environment;
  action.needs_worker = failed.needs_worker;
  action.inputs = {exec::MakeInput(kAssemblySource, std::move(text))};
  action.outputs = {kAssemblyObject};
  action.timeout = failed.timeout;
  action.memory_estimate_bytes = failed.memory_estimate_bytes;
  return action;
}

class Explanation {
 public:
  explicit Explanation(const FailedBuild& build) : build_(build), toolchain_(*build_.request.toolchain) {}

  absl::Status Told() {
    const Step* failed = build_.end.failed.get();
    if (failed == nullptr) return WithoutOutput(build_.end.status);
    // Earlier steps have made the inputs of the failed command.
    KERNIX_RETURN_IF_ERROR(CheckStepsBefore());
    return failed->reads_sources ? Compile(*failed) : build_.end.status;
  }

 private:
  absl::Status CheckStepsBefore() const {
    const std::vector<std::string> compiler = Made(build_.files.dependencies);
    const std::vector<std::string> assembler = Made(build_.files.assembler_dependencies);
    return CheckFilesRead(build_.env, build_.request, build_.contents,
                          {{compiler.begin(), compiler.end()}, {assembler.begin(), assembler.end()}},
                          toolchain::FlagPolicy::kShared);
  }

  // The dependency files that exist.
  std::vector<std::string> Made(const std::vector<std::string>& paths) const {
    std::vector<std::string> texts;
    for (const std::string& path : paths) {
      const auto found = build_.end.outputs.find(path);
      if (found != build_.end.outputs.end()) texts.push_back(FollowLinks(*found->second, build_.files.links));
    }
    return texts;
  }

  absl::Status Compile(const Step& failed) {
    IncludeTrace trace;
    const exec::ActionEnd end =
        build_.executor.Run(TellingCommand(toolchain_, failed), build_.askers, &trace, build_.cancellation);
    if (!end.ok()) return WithoutOutput(end.status());
    const std::string messages = trace.Messages();
    if (!trace.complete()) return Hidden(failed.action, kUnknownReads);
    std::vector<std::string> files;
    for (const std::string& file : trace.files()) files.push_back(BehindLinks(file, build_.files.links));
    KERNIX_RETURN_IF_ERROR(
        CheckIncludes(build_.env, build_.request, build_.contents,
                      {.read = std::move(files), .not_read = NamesNotRead(messages, toolchain_.host.kind)}));
    if (end->exit_code != 0) return Shown(messages, end->exit_code);
    return Assemble(failed, *end);
  }

  absl::Status Assemble(const Step& failed, const exec::ActionResult& compiled) {
    const auto text = compiled.outputs.find(failed.object);
    if (text == compiled.outputs.end()) return Hidden(failed.action, kUnknownReads);
    if (AssemblerMayRead(*text->second)) return AssemblerTextError();
    const exec::ActionEnd end = build_.executor.Run(AssembleCommand(toolchain_, failed.action, text->second),
                                                    build_.askers, nullptr, build_.cancellation);
    if (!end.ok()) return WithoutOutput(end.status());
    if (end->exit_code == 0) return Hidden(failed.action, kUnknownReads);
    return Shown(end->output, end->exit_code);
  }

  absl::Status Shown(std::string_view messages, int exit_code) const {
    exec::ActionResult result;
    result.exit_code = exit_code;
    result.output =
        WithSourceLines(WithUsersNames(messages, build_.files.links), TextsOf(build_.request, build_.contents));
    return StepFailure(build_.end.failed->action, result);
  }

  const FailedBuild& build_;
  const toolchain::Toolchain& toolchain_;
};

}  // namespace

void HideSourceLines(const toolchain::Toolchain& toolchain, Plan& plan) {
  const bool clang = toolchain.host.kind == HostCompilerKind::kClang;
  for (Step& step : plan.steps) {
    if (step.tool == Tool::kOther) continue;
    AddHostWords({clang ? "-fno-caret-diagnostics" : "-fno-diagnostics-show-caret", "-fdiagnostics-color=never"}, step);
  }
}

std::string ShownOfSuccess(const BuildRequest& request, const HeaderContents& contents, std::string_view printed) {
  if (printed.empty()) return "";
  return WithSourceLines(printed, TextsOf(request, contents));
}

bool AssemblerMayRead(std::string_view text) {
  // Assemblers ignore case. MRI syntax has words without a dot.
  static constexpr std::string_view kWords[] = {".include", ".incbin", ".macro", ".irp",      ".irep",
                                                ".rep",     ".mri",    ".alt",   ".endmacro", ".purgem"};
  const std::string lower = absl::AsciiStrToLower(ToAbsl(text));
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

absl::Status ToldFailure(const FailedBuild& build) { return Explanation(build).Told(); }

}  // namespace kernix::build
