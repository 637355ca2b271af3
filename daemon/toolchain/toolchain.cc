// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/toolchain.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/flags/languages.h"
#include "common/os/file_identity.h"
#include "daemon/toolchain/cuda_toolkit.h"
#include "daemon/toolchain/description.h"
#include "daemon/toolchain/host_compiler.h"
#include "daemon/toolchain/tool_query.h"

namespace kernix::toolchain {
namespace {

// Keeps each file once. A file that was seen in two states stays in the list twice, so the list never passes as
// unchanged.
void RemoveDoubles(std::vector<WatchedFile>& files) {
  std::stable_sort(files.begin(), files.end(),
                   [](const WatchedFile& a, const WatchedFile& b) { return a.path < b.path; });
  files.erase(std::unique(files.begin(), files.end()), files.end());
}

Digest IdentityOf(const Toolchain& toolchain) {
  CanonicalHasher hasher("kernix-toolchain-1");
  hasher.Field("host", toolchain.host.identity);
  if (toolchain.cuda) hasher.Field("cuda", toolchain.cuda->identity);
  for (const auto& [name, value] : toolchain.host.variables) hasher.Field(name, value);
  return hasher.Finish();
}

std::string EntryKey(const v1::ToolchainPaths& paths, v1::Language language) {
  std::string key = StrCat(static_cast<int>(language), "\n", absl::StrJoin(ProgramsOf(paths, language), "\n"));
  for (const std::string& variable : paths.variable()) StrAppend(&key, "\nV", variable);
  for (const std::string& folder : paths.cuda_include_directories()) StrAppend(&key, "\nI", folder);
  for (const std::string& folder : paths.cuda_library_directories()) StrAppend(&key, "\nL", folder);
  return key;
}

// A folder that is not absolute would be one of the action's root.
Variables VariablesOf(const v1::ToolchainPaths& paths) {
  Variables variables;
  for (const std::string& variable : paths.variable()) {
    const size_t equals = variable.find('=');
    if (equals == std::string::npos) continue;
    std::vector<std::string> folders = absl::StrSplit(variable.substr(equals + 1), ':');
    std::erase_if(folders, [](const std::string& folder) { return !folder.starts_with('/'); });
    if (!folders.empty()) variables[variable.substr(0, equals)] = absl::StrJoin(folders, ":");
  }
  return variables;
}

}  // namespace

struct ToolchainRegistry::Entry {
  Mutex turn;  // of whoever looks at the tools; the others who need them wait
  Mutex mutex ABSL_ACQUIRED_AFTER(turn);
  ToolchainPtr toolchain ABSL_GUARDED_BY(mutex);
  std::optional<UsedTools> used ABSL_GUARDED_BY(mutex);  // once found

  ToolchainPtr Get() {
    const MutexLock lock(mutex);
    return toolchain;
  }

  void Set(ToolchainPtr found, UsedTools tools) {
    const MutexLock lock(mutex);
    toolchain = std::move(found);
    used = std::move(tools);
  }
};

std::string DescribeTools(const Toolchain& toolchain) {
  std::string tools = StrCat(toolchain.host.path, " ", toolchain.host.version);
  if (toolchain.cuda) StrAppend(&tools, ", ", toolchain.cuda->nvcc, " ", toolchain.cuda->version);
  if (toolchain.described != nullptr) StrAppend(&tools, " (described by ", toolchain.described->file, ")");
  return tools;
}

std::vector<std::string> ProgramsOf(const v1::ToolchainPaths& paths, v1::Language language) {
  std::vector<std::string> programs = {paths.host_compiler()};
  if (TraitsOf(language).needs_nvcc) programs.push_back(paths.nvcc());
  return programs;
}

bool LacksTools(const v1::ToolchainPaths& paths, v1::Language language) {
  const std::vector<std::string> programs = ProgramsOf(paths, language);
  return std::find(programs.begin(), programs.end(), "") != programs.end();
}

v1::Language LanguageOf(const v1::ToolchainPaths& paths) {
  return paths.nvcc().empty() ? v1::LANGUAGE_CPP : v1::LANGUAGE_CUDA;
}

v1::ToolchainPaths WithoutVariables(v1::ToolchainPaths paths) {
  paths.clear_variable();
  return paths;
}

ToolchainRegistry::ToolchainRegistry(Env& env, std::string_view compiler_setting, std::string description)
    : env_(env),
      compiler_setting_(compiler_setting),
      description_(std::move(description)),
      facts_(std::make_shared<HostFacts>(env)) {}

FileDigests& ToolchainRegistry::digests() { return facts_->digests(); }

std::string ToolchainRegistry::KeyOf(const v1::ToolchainPaths& paths, v1::Language language) const {
  const bool described = !description_.empty() && LacksTools(paths, language);
  return EntryKey(described ? v1::ToolchainPaths() : paths, language);
}

std::shared_ptr<ToolchainRegistry::Entry> ToolchainRegistry::EntryOf(const v1::ToolchainPaths& paths,
                                                                     v1::Language language) {
  const std::string key = KeyOf(paths, language);
  const MutexLock lock(mutex_);
  if (const std::shared_ptr<Entry>* const known = entries_.Find(key)) return *known;
  auto entry = std::make_shared<Entry>();
  entries_.Put(key, entry);
  return entry;
}

absl::StatusOr<ToolchainPtr> ToolchainRegistry::Resolve(const v1::ToolchainPaths& paths, v1::Language language) {
  const absl::StatusOr<ToolchainPtr> found = ResolveAs(WithoutVariables(paths), language);
  if (found.ok() || !DoesNotWork(found.status())) return found;
  if (!paths.variable().empty()) {
    const absl::StatusOr<ToolchainPtr> found_with = ResolveAs(paths, language);
    if (found_with.ok()) return found_with;
  }
  return WithRemedy(found.status());
}

absl::Status ToolchainRegistry::WithRemedy(const absl::Status& does_not_work) const {
  v1::ErrorDetail detail = GetErrorDetail(does_not_work);
  std::string& message = *detail.mutable_message();
  if (!message.ends_with('\n')) message += '\n';
  StrAppend(&message,
            "kernixd runs compilers without the variables of your shell; a private one tries LD_LIBRARY_PATH, "
            "GCC_EXEC_PREFIX and COMPILER_PATH. If the compiler needs others, set ",
            compiler_setting_, " to a script that sets them and runs the compiler");
  return MakeError(std::move(detail));
}

absl::StatusOr<ToolchainPtr> ToolchainRegistry::ResolveAs(const v1::ToolchainPaths& paths, v1::Language language) {
  const std::shared_ptr<Entry> entry = EntryOf(paths, language);
  const MutexLock turn(entry->turn);
  const ToolchainPtr known = entry->Get();
  if (known != nullptr && Unchanged(env_, known->files)) return known;
  KERNIX_ASSIGN_OR_RETURN(ToolchainPtr found, Probe(paths, language));
  entry->Set(found, {paths, language});
  return found;
}

void ToolchainRegistry::RememberIn(std::vector<std::string> folders) {
  auto memory = std::make_shared<RememberedToolchains>(env_, std::move(folders));
  const MutexLock lock(mutex_);
  memory_ = std::move(memory);
}

void ToolchainRegistry::Remember(const Toolchain& toolchain) {
  if (const std::shared_ptr<RememberedToolchains> memory = Memory()) memory->Keep(toolchain);
}

std::shared_ptr<RememberedToolchains> ToolchainRegistry::Memory() {
  const MutexLock lock(mutex_);
  return memory_;
}

std::vector<ToolchainPtr> ToolchainRegistry::Remembered(v1::Language language) {
  std::vector<ToolchainPtr> toolchains;
  if (const std::shared_ptr<RememberedToolchains> memory = Memory()) {
    for (Toolchain& toolchain : memory->All(language)) toolchains.push_back(Complete(std::move(toolchain)));
  }
  return toolchains;
}

bool ToolchainRegistry::HasFound(const v1::ToolchainPaths& paths, v1::Language language) {
  return Found(paths, language) != nullptr;
}

ToolchainPtr ToolchainRegistry::Found(const v1::ToolchainPaths& paths, v1::Language language) {
  ToolchainPtr found = FoundAs(WithoutVariables(paths), language);
  return found != nullptr || paths.variable().empty() ? found : FoundAs(paths, language);
}

ToolchainPtr ToolchainRegistry::FoundAs(const v1::ToolchainPaths& paths, v1::Language language) {
  const std::string key = KeyOf(paths, language);
  const MutexLock lock(mutex_);
  const std::shared_ptr<Entry>* const entry = entries_.Find(key);
  return entry == nullptr ? nullptr : (*entry)->Get();
}

ToolchainPtr ToolchainRegistry::FindKnown(const v1::ToolchainPaths& paths, v1::Language language, FileCheck& check) {
  ToolchainPtr known = Found(paths, language);
  if (known == nullptr || !check.Unchanged({known, &known->files})) return nullptr;
  return known;
}

std::vector<UsedTools> ToolchainRegistry::Used() {
  std::vector<std::shared_ptr<Entry>> entries;
  {
    MutexLock lock(mutex_);
    for (const auto& [key, entry] : entries_) entries.push_back(entry);
  }
  std::vector<UsedTools> used;
  for (const std::shared_ptr<Entry>& entry : entries) {
    MutexLock lock(entry->mutex);
    if (entry->used) used.push_back(*entry->used);
  }
  return used;
}

absl::StatusOr<ToolchainPtr> ToolchainRegistry::Probe(const v1::ToolchainPaths& paths, v1::Language language) {
  if (LacksTools(paths, language)) {
    if (!description_.empty()) return Described(language);
    const std::vector<ToolchainPtr> remembered = Remembered(language);
    return remembered.empty() ? LackOf(paths) : absl::StatusOr<ToolchainPtr>(remembered.front());
  }
  Toolchain toolchain;
  std::vector<WatchedFile>& files = toolchain.files;
  const Variables variables = VariablesOf(paths);
  KERNIX_ASSIGN_OR_RETURN(toolchain.host, ProbeHostCompiler(env_, facts_->digests(), paths.host_compiler(),
                                                            compiler_setting_, variables, files));
  if (TraitsOf(language).needs_nvcc) {
    KERNIX_ASSIGN_OR_RETURN(toolchain.cuda, ProbeCudaToolkit(env_, facts_->digests(), paths, toolchain.host, files));
  }
  toolchain.identity = IdentityOf(toolchain);
  return Complete(std::move(toolchain));
}

absl::StatusOr<ToolchainPtr> ToolchainRegistry::Described(v1::Language language) const {
  const WatchedFile state = StateOf(env_, description_);  // before it is read
  const absl::StatusOr<std::string> text = env_.ReadFile(description_);
  if (!text.ok()) {
    return MakeError(v1::ErrorDetail::TOOLCHAIN,
                     StrCat("toolchain_description: cannot read the file: ", text.status().message()));
  }
  KERNIX_ASSIGN_OR_RETURN(Toolchain toolchain, ReadDescription(description_, *text, language));
  toolchain.files = {state};
  toolchain.identity = IdentityOf(toolchain);
  return Complete(std::move(toolchain));
}

absl::Status ToolchainRegistry::LackOf(const v1::ToolchainPaths& paths) const {
  const std::string what =
      paths.host_compiler().empty()
          ? StrCat("there is no C++ compiler: install g++ or clang++, or set ", compiler_setting_, " to one")
          : StrCat("there is no nvcc: ", kHowToGetNvcc);
  return MakeError(v1::ErrorDetail::TOOLCHAIN, what, absl::StatusCode::kUnimplemented);
}

ToolchainPtr ToolchainRegistry::Complete(Toolchain toolchain) const {
  RemoveDoubles(toolchain.files);
  toolchain.environment = ToolEnvironment(toolchain.host.path, toolchain.host.variables);
  toolchain.environment["PWD"] = "/proc/self/cwd";
  // The value of __DATE__ and __TIME__, so that they do not make every artifact different: 2000-01-01.
  toolchain.environment["SOURCE_DATE_EPOCH"] = "946684800";
  toolchain.facts = facts_;
  return std::make_shared<const Toolchain>(std::move(toolchain));
}

void RememberedToolchains::Keep(const Toolchain& toolchain) {
  if (toolchain.described != nullptr) return;
  {
    const MutexLock lock(mutex_);
    if (!kept_.insert(toolchain.identity).second) return;
  }
  const std::string& folder = folders_.front();
  if (!env_.CreateDirectories(folder, 0700).ok()) return;
  (void)env_.WriteFileDurably(JoinPath(folder, toolchain.identity.Hex()), DescribeWithoutFiles(toolchain), 0600);
}

std::vector<Toolchain> RememberedToolchains::All(v1::Language language) const {
  std::vector<std::pair<int64_t, std::string>> descriptions;  // by age
  for (const std::string& folder : folders_) {
    const absl::StatusOr<std::vector<std::string>> names = env_.ListDirectory(folder);
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      const std::string path = JoinPath(folder, name);
      const absl::StatusOr<FileInfo> info = env_.Stat(path);
      if (info.ok()) descriptions.emplace_back(info->mtime_ns, path);
    }
  }
  std::sort(descriptions.rbegin(), descriptions.rend());
  std::vector<Toolchain> toolchains;
  absl::flat_hash_set<Digest> identities;  // several folders may have one, and for C++ the toolkits make no difference
  for (const auto& [age, path] : descriptions) {
    if (toolchains.size() == kMostTried) break;
    const WatchedFile state = StateOf(env_, path);  // before it is read
    const absl::StatusOr<std::string> text = env_.ReadFile(path);
    if (!text.ok()) continue;
    absl::StatusOr<Toolchain> toolchain = ReadDescription(path, *text, language);
    if (!toolchain.ok()) continue;
    toolchain->described = std::make_shared<const DescribedFiles>(DescribedFiles{.file = path, .of_store = true});
    toolchain->files = {state};
    toolchain->identity = IdentityOf(*toolchain);
    if (identities.insert(toolchain->identity).second) toolchains.push_back(*std::move(toolchain));
  }
  return toolchains;
}

namespace {

// The command line of cc1 or cc1plus, which is part of the output of `-###`.
std::vector<std::string> CompilerProper(const std::string& answer) {
  for (const std::string& line : SplitLines(answer)) {
    std::vector<std::string> words = SplitCommand(line);
    const bool proper = !words.empty() && (words[0].ends_with("/cc1plus") || (words.size() > 1 && words[1] == "-cc1"));
    if (proper) return words;
  }
  return {};
}

// GCC lists it explicitly: -march=znver3 -mavx2 -mno-sgx --param l1-cache-size=48 -mtune=znver3.
std::vector<std::string> GccFlags(const std::vector<std::string>& words, bool tune_only) {
  std::vector<std::string> flags;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool parameter = words[i] == "--param" && i + 1 < words.size();
    const bool machine = words[i].starts_with("-m") && (!tune_only || words[i].starts_with("-mtune="));
    if (machine) flags.push_back(words[i]);
    if (parameter) flags.push_back(StrCat("--param=", words[i + 1]));
  }
  return flags;
}

// Clang prints the name of a known processor and the features in which this one differs.
std::vector<std::string> ClangFlags(const std::vector<std::string>& words, bool tune_only) {
  std::vector<std::string> flags;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "-tune-cpu" && tune_only) flags.push_back(StrCat("-mtune=", words[i + 1]));
    if (words[i] == "-target-cpu" && !tune_only) flags.push_back(StrCat("-march=", words[i + 1]));
    if (words[i] == "-target-feature" && !tune_only) {
      for (const std::string& word : {words[i], words[i + 1]}) flags.insert(flags.end(), {"-Xclang", word});
    }
  }
  return flags;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> HostFacts::ExpandNative(const HostCompiler& compiler,
                                                                 const std::string& flag) {
  const std::string key = StrCat(compiler.identity.Hex(), " ", flag);
  {
    MutexLock lock(mutex_);
    const auto known = native_.find(key);
    if (known != native_.end()) return known->second;
  }
  KERNIX_ASSIGN_OR_RETURN(
      const std::string answer,
      AskTool(env_, {compiler.path, flag, "-###", "-E", "-x", "c++", "/dev/null"}, compiler.variables));
  const std::vector<std::string> words = CompilerProper(answer);
  const bool tune_only = flag.starts_with("-mtune");
  std::vector<std::string> flags =
      compiler.kind == HostCompilerKind::kGcc ? GccFlags(words, tune_only) : ClangFlags(words, tune_only);
  const bool resolved = !flags.empty() && std::none_of(flags.begin(), flags.end(), [](const std::string& text) {
    return text.ends_with("=native");
  });
  if (!resolved) {
    return MakeError(v1::ErrorDetail::TOOLCHAIN,
                     StrCat(compiler.path, " does not report the meaning of ", flag, ": name a processor instead"));
  }
  if (compiler.identity == Digest()) return flags;  // that of a compiler which is still being identified
  MutexLock lock(mutex_);
  return native_[key] = flags;
}

}  // namespace kernix::toolchain
