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
#include "common/base/exceptions.h"
#include "common/base/shell_command.h"
#include "common/base/strings.h"
#include "daemon/builder/failure.h"
#include "daemon/builder/files_read.h"
#include "daemon/builder/include_trace.h"
#include "daemon/builder/source_lines.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/plan/plan_parts.h"
#include "daemon/plan/tool_places.h"

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
  action.needs_builder = failed.needs_builder;
  action.inputs = {exec::MakeInput(kAssemblySource, std::move(text))};
  action.outputs = {kAssemblyObject};
  action.timeout = failed.timeout;
  action.memory_estimate_bytes = failed.memory_estimate_bytes;
  return action;
}

// Lives as long as the executor has one of its commands.
class Explanation : public std::enable_shared_from_this<Explanation> {
 public:
  Explanation(FailedBuild build, std::function<void(absl::Status)> told)
      : build_(std::move(build)), toolchain_(*build_.request.toolchain), told_(std::move(told)) {}

  void Start() {
    const Step* failed = build_.end.failed.get();
    if (failed == nullptr) return told_(WithoutOutput(build_.end.status));
    // Earlier steps have made the inputs of the failed command.
    const absl::Status before = CheckStepsBefore();
    if (!before.ok()) return told_(before);
    if (failed->reads_sources) return Run(TellingCommand(toolchain_, *failed), &trace_, &Explanation::OnCompiled);
    told_(build_.end.status);
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

  std::vector<std::string> FilesOpened() const {
    std::vector<std::string> files;
    for (const std::string& file : trace_.files()) files.push_back(BehindLinks(file, build_.files.links));
    return files;
  }

  using OnDone = void (Explanation::*)(absl::StatusOr<exec::ActionResult>);

  void Run(exec::Action action, exec::ActionObserver* observer, OnDone on_done) {
    build_.executor.Submit(std::move(action), build_.askers, observer, build_.cancellation,
                           [self = shared_from_this(), on_done](absl::StatusOr<exec::ActionResult> result) {
                             const absl::Status handled = CatchExceptions(kLoadNotHandled, [&] {
                               ((*self).*on_done)(std::move(result));
                               return absl::OkStatus();
                             });
                             if (!handled.ok()) self->told_(handled);
                           });
  }

  void OnCompiled(absl::StatusOr<exec::ActionResult> result) {
    const Step& failed = *build_.end.failed;
    if (!result.ok()) return told_(WithoutOutput(result.status()));
    const std::string messages = trace_.Messages();
    if (!trace_.complete()) return told_(Hidden(failed.action, kUnknownReads));
    const absl::Status includes =
        CheckIncludes(build_.env, build_.request, build_.contents,
                      {.read = FilesOpened(), .not_read = NamesNotRead(messages, toolchain_.host.kind)});
    if (!includes.ok()) return told_(includes);
    if (result->exit_code != 0) return told_(Shown(messages, result->exit_code));
    Assemble(failed, *result);
  }

  void Assemble(const Step& failed, const exec::ActionResult& compiled) {
    const auto text = compiled.outputs.find(failed.object);
    if (text == compiled.outputs.end()) return told_(Hidden(failed.action, kUnknownReads));
    if (AssemblerMayRead(*text->second)) return told_(AssemblerTextError());
    Run(AssembleCommand(toolchain_, failed.action, text->second), nullptr, &Explanation::OnAssembled);
  }

  void OnAssembled(absl::StatusOr<exec::ActionResult> result) {
    if (!result.ok()) return told_(WithoutOutput(result.status()));
    if (result->exit_code == 0) return told_(Hidden(build_.end.failed->action, kUnknownReads));
    told_(Shown(result->output, result->exit_code));
  }

  absl::Status Shown(std::string_view messages, int exit_code) const {
    exec::ActionResult result;
    result.exit_code = exit_code;
    result.output =
        WithSourceLines(WithUsersNames(messages, build_.files.links), TextsOf(build_.request, build_.contents));
    return StepFailure(build_.end.failed->action, result);
  }

  const FailedBuild build_;
  const toolchain::Toolchain& toolchain_;
  const std::function<void(absl::Status)> told_;
  IncludeTrace trace_;
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

void TellFailure(FailedBuild build, std::function<void(absl::Status)> told) {
  std::make_shared<Explanation>(std::move(build), std::move(told))->Start();
}

}  // namespace kernix::build
