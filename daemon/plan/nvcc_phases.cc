// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/nvcc_phases.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/plan_parts.h"

namespace kernix::build {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

bool IsNameCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Splits a line as a shell does, as far as nvcc's lines need it: words in blanks, double quotes, and variables.
class ShellLine {
 public:
  ShellLine(std::string_view line, const Variables& variables) : line_(line), variables_(variables) {}

  // nullopt for a line with anything else that a shell would interpret.
  std::optional<Command> Words() {
    while (at_ < line_.size()) {
      if (!Take(line_[at_++])) return std::nullopt;
    }
    if (quoted_) return std::nullopt;
    EndWord();
    return std::move(words_);
  }

 private:
  bool Take(char c) {
    if (c == '"') {
      quoted_ = !quoted_;
      in_word_ = true;
      return true;
    }
    if (c == ' ' && !quoted_) {
      EndWord();
      return true;
    }
    if (c == '$') return TakeVariable();
    constexpr std::string_view kInterpreted = "`\\'";
    constexpr std::string_view kInterpretedUnquoted = "|&;<>()*?[]#!{}\t";
    if (kInterpreted.find(c) != std::string_view::npos) return false;
    if (!quoted_ && kInterpretedUnquoted.find(c) != std::string_view::npos) return false;
    word_ += c;
    in_word_ = true;
    return true;
  }

  bool TakeVariable() {
    const size_t begin = at_;
    while (at_ < line_.size() && IsNameCharacter(line_[at_])) ++at_;
    const auto variable = variables_.find(line_.substr(begin, at_ - begin));
    if (variable == variables_.end()) return false;
    word_ += variable->second;
    in_word_ = true;
    return true;
  }

  void EndWord() {
    if (in_word_) words_.push_back(std::exchange(word_, ""));
    in_word_ = false;
  }

  const std::string_view line_;
  const Variables& variables_;
  size_t at_ = 0;
  bool quoted_ = false;
  bool in_word_ = false;
  std::string word_;
  Command words_;
};

// "NAME=value". A command's first word never holds "=".
bool ReadVariable(std::string_view line, Variables& variables) {
  size_t end = 0;
  while (end < line.size() && IsNameCharacter(line[end])) ++end;
  if (end == 0 || end == line.size() || line[end] != '=') return false;
  variables.insert_or_assign(std::string(line.substr(0, end)), std::string(line.substr(end + 1)));
  return true;
}

}  // namespace

std::optional<DryRun> ReadDryRun(std::string_view output) {
  constexpr std::string_view kMark = "#$ ";
  constexpr std::string_view kOwnWork = "-- Filter Dependencies --";
  Variables variables;
  DryRun dry_run;
  for (const absl::string_view absl_line : absl::StrSplit(ToAbsl(output), '\n')) {
    std::string_view line(absl_line.data(), absl_line.size());
    if (line.empty()) continue;
    if (!line.starts_with(kMark)) return std::nullopt;
    line.remove_prefix(kMark.size());
    if (line.starts_with(kOwnWork) || ReadVariable(line, variables)) continue;
    std::optional<Command> words = ShellLine(line, variables).Words();
    if (!words || words->empty()) return std::nullopt;
    dry_run.commands.push_back(*std::move(words));
  }
  dry_run.path = std::move(variables["PATH"]);
  return dry_run;
}

namespace {

// How one of nvcc's programs says what it writes, as far as later programs or the load need it.
struct Program {
  std::string_view name;
  StepKind kind;
  uint64_t memory_bytes;
  bool is_reused;                         // it reads nothing but its inputs and the toolkit's own files, and takes time
  std::vector<std::string_view> outputs;  // flags; the path is the next word, or follows if the flag ends in "="
};

constexpr uint64_t kMiB = 1ull << 20;

const std::vector<Program>& DevicePrograms() {
  static const auto& programs = *new std::vector<Program>{
      {"cudafe++", StepKind::kCudafe, 512 * kMiB, true, {"--gen_c_file_name"}},
      {"cicc", StepKind::kCicc, 1024 * kMiB, true, {"-o", "--stub_file_name"}},
      {"ptxas", StepKind::kPtxas, 1024 * kMiB, true, {"-o"}},
      {"fatbinary", StepKind::kOther, 256 * kMiB, false, {"--embedded-fatbin="}},
  };
  return programs;
}
constexpr uint64_t kPreprocessMemory = 256 * kMiB;
constexpr uint64_t kHostCompileMemory = 512 * kMiB;

bool Has(const Command& command, std::string_view word) {
  return std::find(command.begin(), command.end(), word) != command.end();
}

// The value of a flag, in the next word or after "="; empty if the command does not have it.
std::string Value(const Command& command, std::string_view flag) {
  for (size_t i = 0; i < command.size(); ++i) {
    if (command[i] == flag && i + 1 < command.size()) return command[i + 1];
    if (flag.ends_with('=') && command[i].starts_with(flag)) return command[i].substr(flag.size());
  }
  return "";
}

constexpr char kHost[] = "host";

// "sm_90" or "compute_90"; kHost for a program that does not compile for a GPU.
std::string ArchitectureOf(const Command& command) {
  if (const std::string arch = Value(command, "-arch"); !arch.empty()) return arch;
  if (const std::string arch = Value(command, "-arch="); !arch.empty()) return arch;
  const std::string number = Value(command, "-D__CUDA_ARCH__=");  // "900"
  return number.empty() ? kHost : StrCat("compute_", number.substr(0, number.size() - 1));
}

// Whether g++ keeps static functions that nobody calls since it does not optimize: the last "-O..." counts.
bool DoesNotOptimize(const Command& host_command) {
  const auto last = std::find_if(host_command.rbegin(), host_command.rend(),
                                 [](const std::string& word) { return word.starts_with("-O"); });
  return last == host_command.rend() || *last == "-O0" || Has(host_command, "-fno-toplevel-reorder") ||
         Has(host_command, "-fno-unit-at-a-time");
}

// "-g", "-ggdb", "-generate-line-info", "-fkeep-inline-functions".
bool ShowsUnused(const Command& command) {
  return std::any_of(command.begin(), command.end(),
                     [](const std::string& word) { return word.starts_with("-g") || word.starts_with("-fkeep-"); });
}

// Whether the host's object holds lines of the unit: in debug information, and in what sanitizers and profiles say.
bool HoldsLines(const Command& command) {
  return std::any_of(command.begin(), command.end(), [](const std::string& word) {
    return word.starts_with("-g") || word.starts_with("-fsanitize") || word.starts_with("-fprofile") ||
           word == "--coverage" || word == "-coverage";
  });
}

// Whether cicc keeps what no kernel uses, such as static variables of functions that only the host instantiates (-rdc,
// -ewp, -keep-device-functions), or may fail for an unused variable of the host (-Werror all-warnings, -diag-error).
bool MindsUnused(const Command& cicc) {
  const bool has_errors =
      std::any_of(cicc.begin(), cicc.end(), [](const std::string& word) { return word.starts_with("--diag_error"); });
  return has_errors || Has(cicc, "--device-c") || Has(cicc, "--partial-link") || Has(cicc, "--keep-device-functions") ||
         Has(cicc, "--promote_warnings");
}

// Whether a command names a file: as a word of its own, or as a value.
bool Mentions(const Command& command, const std::string& path) {
  return std::any_of(command.begin(), command.end(), [&](const std::string& word) {
    return word == path || (word.ends_with(path) && word[word.size() - path.size() - 1] == '=');
  });
}

// nvcc calls a file "unit.ptx" for one architecture, and "unit.compute_90.ptx" for several. Gives it the latter name,
// so that one architecture more leaves the steps of the first as they are.
void NameArchitecture(std::vector<Command>& commands, const std::string& unit) {
  std::vector<std::string> architectures;
  for (const Command& command : commands) {
    if (Basename(command.front()) == "cicc") architectures.push_back(ArchitectureOf(command));
  }
  if (architectures.size() != 1) return;
  const std::string name = Basename(unit);
  const std::string stem = name.substr(0, name.rfind('.') + 1);  // "unit."
  for (Command& command : commands) {
    for (std::string& word : command) {
      const size_t begin = word.find_last_of("/=") + 1;  // of the file's name
      if (word.compare(begin, stem.size(), stem) != 0) continue;
      const std::string_view rest = std::string_view(word).substr(begin + stem.size());
      // The host's object holds the name of the C++ file.
      const bool is_of_architecture = rest == "cpp1.ii" || rest == "ptx" ||
                                      (rest.starts_with("cudafe1.") && rest != "cudafe1.cpp") ||
                                      (rest.starts_with("sm_") && rest.ends_with(".cubin"));
      if (is_of_architecture) word.insert(begin + stem.size(), StrCat(architectures.front(), "."));
    }
  }
}

class PhaseMaker {
 public:
  PhaseMaker(const Step& compile, const std::string& path, ProgramFolder programs) : compile_(compile) {
    const auto host = compile.action.local_paths.find(Value(compile.action.argv, "-ccbin"));
    host_compiler_ = host == compile.action.local_paths.end() ? Value(compile.action.argv, "-ccbin") : host->second;
    nvcc_folder_ = Dirname(compile.action.argv.front());
    program_folder_ = programs == ProgramFolder::kBesideNvcc ? nvcc_folder_ : Dirname(host_compiler_);
    cicc_folder_ = CiccFolder(path);
    const std::string& step = compile.action.step;  // "compile a.cu"
    if (const size_t unit = step.find(' '); unit != std::string::npos) unit_ = step.substr(unit);
  }

  std::optional<Phases> Make(const std::vector<Command>& commands) {
    phases_.unit = compile_.action.argv.back();
    for (const Command& command : commands) {
      if (!Add(command)) return std::nullopt;
    }
    if (phases_.host_compile.action.argv.empty()) return std::nullopt;
    for (const std::string& output : compile_.action.outputs) {
      if (output != compile_.nvcc->dependencies && !made_.contains(output)) return std::nullopt;
    }
    if (!std::any_of(commands.begin(), commands.end(), HoldsLines)) {
      for (Step& step : phases_.compile) FindDeviceUnit(step);
    }
    return std::move(phases_);
  }

 private:
  // What cicc makes for the host names lines.
  void FindDeviceUnit(Step& step) const {
    if (step.kind != StepKind::kCicc) return;
    step.reuse->host_bodies_count = compile_.nvcc->host_bodies_count || MindsUnused(step.action.argv);
    for (const std::string& input : step.inputs_from_steps) {
      if (std::count(phases_.preprocessed.begin(), phases_.preprocessed.end(), input) > 0)
        step.reuse->device_unit = input;
    }
  }

  bool Add(const Command& command) {
    if (!phases_.host_compile.action.argv.empty()) return false;  // the last one
    if (command.front() == host_compiler_) {
      if (Has(command, "-E")) return AddPreprocess(command);
      return Has(command, "-c") && AddHostCompile(command);
    }
    const std::string name = Basename(command.front());
    for (const Program& program : DevicePrograms()) {
      if (program.name == name) return AddDeviceProgram(program, command);
    }
    return false;
  }

  bool AddPreprocess(Command command) {
    const std::string output = Value(command, "-o");
    if (output.empty() || Has(command, "-M") || Has(command, "-MM")) return false;
    const std::string dependencies = StrCat(output, ".d");
    Append(command, {"-MD", "-MF", dependencies});
    const std::string name = StrCat("preprocess ", ArchitectureOf(command));
    if (ArchitectureOf(command) == kHost) phases_.host_pass = phases_.preprocess.size();
    phases_.toolkit_headers = ToolkitHeaders(command);
    phases_.dependencies.push_back(dependencies);
    phases_.preprocessed.push_back(output);
    Step& step = phases_.preprocess.emplace_back();
    step.kind = StepKind::kPreprocess;
    return AddStep(step, name, std::move(command), kPreprocessMemory, {output, dependencies}, std::nullopt);
  }

  // The last folder of those that are searched first, if the compile's own command does not have it.
  std::string ToolkitHeaders(const Command& command) const {
    const auto last = std::find_if(command.rbegin(), command.rend(),
                                   [](const std::string& word) { return word.starts_with("-I") && word.size() > 2; });
    return last == command.rend() || Has(compile_.action.argv, *last) ? "" : *last;
  }

  bool AddDeviceProgram(const Program& program, Command command) {
    if (Has(command, "-show-src")) return false;  // it would read the sources (-src-in-ptx)
    std::vector<std::string> outputs;
    for (const std::string_view flag : program.outputs) {
      std::string path = Value(command, flag);
      if (path.empty()) return false;
      outputs.push_back(std::move(path));
    }
    if (command.front() == program.name) {
      command.front() = JoinPath(program.kind == StepKind::kCicc ? cicc_folder_ : program_folder_, command.front());
    }
    if (program.kind == StepKind::kCudafe) {
      std::erase(command, "--gen_module_id_file");
      stub_ = Value(command, "--stub_file_name");
      phases_.host_text = outputs.front();
    }
    if (program.name == "fatbinary") fatbins_ = outputs;
    const std::string name = StrCat(program.name, " ", ArchitectureOf(command));
    Step& step = phases_.compile.emplace_back();
    step.kind = program.kind;
    const bool added = AddStep(step, name, std::move(command), program.memory_bytes, outputs,
                               program.is_reused ? std::optional<Reuse>(Reuse()) : std::nullopt);
    step.action.work = exec::Work::kDeviceCompile;
    KeepWhatIsRead(step.action);
    return added;
  }

  // nvcc's own programs read what earlier ones have made, and their toolkit's files. They name the unit in messages,
  // with its text as it was preprocessed. Staging the rest costs more than some of them take. They run no other tool,
  // so PATH need not have the host compiler's folder.
  static void KeepWhatIsRead(exec::Action& action) {
    action.environment["PATH"] = "/usr/bin:/bin";
    const std::string module_id = Value(action.argv, "--module_id_file_name");
    std::erase_if(action.inputs, [&](const exec::InputFile& input) { return input.path != module_id; });
    std::erase_if(action.links, [&](const exec::InputLink& link) {
      const std::string folder = link.path + "/";
      return std::none_of(action.argv.begin(), action.argv.end(),
                          [&](const std::string& word) { return word.find(folder) != std::string::npos; });
    });
    action.trees = nullptr;
  }

  // For releases before 12.5, which name cicc without a folder, and have a folder of its own on PATH before nvcc's.
  // A distribution has it beside nvcc.
  std::string CiccFolder(std::string_view path) const {
    for (const absl::string_view folder : absl::StrSplit(ToAbsl(path), ':')) {
      if (folder == ToAbsl(nvcc_folder_)) break;
      if (absl::EndsWith(folder, "/nvvm/bin")) return std::string(folder);
    }
    return nvcc_folder_;
  }

  // What cudafe++ wrote includes the stub that a cicc writes, and that includes the embedded fatbinary.
  bool AddHostCompile(Command command) {
    if (DoesNotOptimize(command)) phases_.shows_unused = true;
    const std::string object = Value(command, "-o");
    const std::string dependencies = StrCat(object, ".d");
    std::vector<std::string> outputs = {object, dependencies};
    Reuse reuse = {.dependencies = {dependencies}};
    for (const std::string& output : compile_.action.outputs) {
      if (output == object || !Has(command, output)) continue;
      outputs.push_back(output);  // lists what the assembler has read
      reuse.dependencies.push_back(output);
    }
    Append(command, {"-MD", "-MF", dependencies});
    phases_.dependencies.push_back(dependencies);
    std::vector<std::string> included = fatbins_;
    for (const std::string& made : made_) {
      if (Basename(made) == stub_) included.push_back(made);
    }
    if (included.size() != fatbins_.size() + 1) return false;
    phases_.host_compile.kind = StepKind::kHostCompile;
    const bool added = AddStep(phases_.host_compile, "host compile", std::move(command), kHostCompileMemory, outputs,
                               std::move(reuse), included);
    phases_.host_compile.action.batch_rank = compile_.nvcc->host_batch_rank;
    return added;
  }

  bool AddStep(Step& step, std::string_view name, Command command, uint64_t memory_bytes,
               const std::vector<std::string>& outputs, std::optional<Reuse> reuse,
               const std::vector<std::string>& included = {}) {
    if (ShowsUnused(command)) phases_.shows_unused = true;
    step.action = compile_.action;
    step.action.step = StrCat(name, unit_);
    step.action.argv = WithPlaceholders(std::move(command));
    step.action.tool_uses_shell = false;
    step.action.memory_estimate_bytes = memory_bytes;
    step.action.outputs = outputs;
    step.inputs_from_steps = included;
    for (const std::string& made : made_) {
      if (Mentions(step.action.argv, made)) step.inputs_from_steps.push_back(made);
    }
    if (const std::string path = Value(step.action.argv, "--module_id_file_name"); !path.empty()) {
      step.action.inputs.push_back(exec::MakeInput(path, ModuleId()));
      if (reuse) reuse->inputs.push_back(path);
    }
    if (reuse) Append(reuse->inputs, step.inputs_from_steps);
    step.reuse = std::move(reuse);
    for (const std::string& output : outputs) {
      if (!made_.insert(output).second) return false;
    }
    return true;
  }

  // As the compile's own command has them: what follows holds no place of this machine.
  Command WithPlaceholders(Command command) const {
    for (const auto& [placeholder, value] : compile_.action.local_paths) {
      for (std::string& word : command) {
        const std::string map = StrCat("-ffile-prefix-map=", value, "=");
        if (word == value) word = placeholder;
        if (word.starts_with(map)) word = StrCat("-ffile-prefix-map=", placeholder, "=", word.substr(map.size()));
      }
    }
    return command;
  }

  // In nvcc's form: "_<8 digits>_<length>_<file name>_<8 digits>".
  std::string ModuleId() const {
    const std::string digits = DigestOf(StrCat("kernix-module ", compile_.object)).Hex();
    return StrCat("_", digits.substr(0, 8), "_7_unit_cu_", digits.substr(8, 8));
  }

  const Step& compile_;
  std::string host_compiler_;  // as nvcc names it
  std::string nvcc_folder_;
  std::string program_folder_;
  std::string cicc_folder_;
  std::string unit_;  // " a.cu", if the load has several units
  Phases phases_;
  std::set<std::string> made_;        // outputs
  std::string stub_;                  // the name by which cudafe++'s output includes it
  std::vector<std::string> fatbins_;  // as C++ sources
};

}  // namespace

exec::Action DryRunOf(const Step& compile) {
  exec::Action action = compile.action;
  action.step = "dry run";
  action.work = exec::Work::kOther;
  action.argv.emplace_back("--dryrun");
  action.inputs.clear();
  action.trees = nullptr;
  action.outputs.clear();
  action.memory_estimate_bytes = 64 * kMiB;
  return action;
}

std::optional<Phases> PhasesOf(const Step& compile, std::string_view dry_run, ProgramFolder programs) {
  std::optional<DryRun> read = ReadDryRun(dry_run);
  if (!read) return std::nullopt;
  NameArchitecture(read->commands, compile.action.argv.back());
  return PhaseMaker(compile, read->path, programs).Make(read->commands);
}

}  // namespace kernix::build
