// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/linker.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/base/elf_image.h"
#include "common/base/exceptions.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/builder/driver_functions.h"
#include "daemon/plan/link_stub.h"
#include "daemon/toolchain/tool_query.h"

namespace kernix::build {
namespace {

// The start files that a compiler links into each shared library.
constexpr const char* kStartFiles[] = {"crti.o", "crtbeginS.o", "crtendS.o", "crtn.o"};
// Linker scripts have some hundred bytes.
constexpr size_t kLongestScript = 4096;

using Names = absl::flat_hash_set<std::string_view>;

// Adds what the object at `path` needs from elsewhere.
absl::Status AddNeeds(Env& env, const std::string& path, std::set<std::string>& names) {
  KERNIX_ASSIGN_OR_RETURN(const std::string bytes, env.ReadFile(path));
  KERNIX_ASSIGN_OR_RETURN(const ElfImage object, ElfImage::ParseObject(bytes));
  KERNIX_ASSIGN_OR_RETURN(const std::vector<ElfImage::Symbol> symbols, object.Symbols());
  for (const ElfImage::Symbol& symbol : symbols) {
    if (!symbol.is_local && !symbol.is_defined) names.emplace(symbol.name);
  }
  return absl::OkStatus();
}

absl::StatusOr<exec::InputFile> StubOf(const std::string& name, std::string_view bytes, const Names& names) {
  KERNIX_ASSIGN_OR_RETURN(const ElfImage library, ElfImage::Parse(bytes));
  KERNIX_ASSIGN_OR_RETURN(const std::string own_name, library.OwnName());
  KERNIX_ASSIGN_OR_RETURN(const std::vector<ElfImage::Import> offers, library.OffersOf(names));
  return exec::MakeInput(StrCat(kSmallLibraries, "/", name), LinkStub(own_name, offers));
}

// The words of a linker script, without comments.
std::vector<std::string_view> WordsOf(std::string_view script) {
  std::vector<std::string_view> words;
  while (!script.empty()) {
    const size_t begin = script.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) break;
    script.remove_prefix(begin);
    if (script.starts_with("/*")) {
      const size_t end = script.find("*/");
      script.remove_prefix(end == std::string_view::npos ? script.size() : end + 2);
      continue;
    }
    const bool is_mark = script[0] == '(' || script[0] == ')';
    const size_t length = is_mark ? 1 : std::min(script.find_first_of(" \t\r\n()"), script.size());
    words.push_back(script.substr(0, length));
    script.remove_prefix(length);
  }
  return words;
}

// The library that a script of glibc's stands for, "/lib/libc.so.6" in "GROUP ( /lib/libc.so.6
// /usr/lib/libc_nonshared.a AS_NEEDED ( /lib/ld-linux-x86-64.so.2 ) )": the library, perhaps the archive with its rest,
// and perhaps one that is linked if it is needed. Nothing for any other script: what its archives need would be missing
// in a stub.
std::optional<std::string_view> LibraryIn(std::string_view script, const std::string& name) {
  std::vector<std::string_view> words = WordsOf(script);
  if (words.size() >= 4 && words[0] == "OUTPUT_FORMAT") words.erase(words.begin(), words.begin() + 4);
  if (words.size() < 4 || words[0] != "GROUP" || words[1] != "(") return std::nullopt;
  const std::string_view library = words[2];
  if (!library.starts_with('/') || !Basename(library).starts_with(name + ".")) return std::nullopt;
  size_t next = 3;
  if (words[next].ends_with("_nonshared.a")) ++next;
  const std::vector<std::string_view> rest(words.begin() + static_cast<std::ptrdiff_t>(next), words.end());
  const bool has_optional = rest.size() == 5 && rest[0] == "AS_NEEDED" && rest[1] == "(" && rest[3] == ")";
  return rest.back() == ")" && (rest.size() == 1 || has_optional) ? std::optional(library) : std::nullopt;
}

// The stub of one library, perhaps behind a script like its own.
absl::StatusOr<std::vector<exec::InputFile>> SmallLibrary(Env& env, const std::string& path, const std::string& name,
                                                          const Names& names) {
  KERNIX_ASSIGN_OR_RETURN(std::string content, env.ReadFile(path));
  if (content.compare(0, SELFMAG, ELFMAG) == 0) {
    KERNIX_ASSIGN_OR_RETURN(exec::InputFile stub, StubOf(name, content, names));
    return std::vector<exec::InputFile>{std::move(stub)};
  }
  const auto word = content.size() <= kLongestScript ? LibraryIn(content, name) : std::nullopt;
  if (!word) return absl::UnimplementedError(StrCat(path, " has an unusual form"));
  KERNIX_ASSIGN_OR_RETURN(const std::string library, env.RealPath(std::string(*word)));
  KERNIX_ASSIGN_OR_RETURN(const std::string script, env.RealPath(path));
  // In the script of a sysroot, the path is below the sysroot.
  if (Dirname(library) != Dirname(script)) return absl::UnimplementedError(StrCat(path, " names another folder"));
  KERNIX_ASSIGN_OR_RETURN(const std::string bytes, env.ReadFile(library));
  const std::string behind = Basename(*word);
  KERNIX_ASSIGN_OR_RETURN(exec::InputFile stub, StubOf(behind, bytes, names));
  content.replace(static_cast<size_t>(word->data() - content.data()), word->size(), behind);
  return std::vector<exec::InputFile>{std::move(stub),
                                      exec::MakeInput(StrCat(kSmallLibraries, "/", name), std::move(content))};
}

}  // namespace

absl::StatusOr<SmallLibraries> MakeSmallLibraries(Env& env, const std::vector<std::string>& folders,
                                                  const std::vector<std::string>& libraries,
                                                  const std::vector<std::string>& names) {
  std::set<std::string> all(names.begin(), names.end());
  for (const char* file : kStartFiles) {
    const auto path = toolchain::FindFile(env, folders, file);
    if (path) KERNIX_RETURN_IF_ERROR(AddNeeds(env, *path, all));
  }
  SmallLibraries small;
  small.names.assign(all.begin(), all.end());
  const Names wanted(small.names.begin(), small.names.end());
  for (const std::string& name : libraries) {
    const auto path = toolchain::FindFile(env, folders, name);
    if (!path) return absl::NotFoundError(StrCat("there is no ", name));
    KERNIX_ASSIGN_OR_RETURN(const auto files, SmallLibrary(env, *path, name, wanted));
    small.files.insert(small.files.end(), files.begin(), files.end());
  }
  return small;
}

namespace {

// Of one link.
constexpr size_t kMostNameBytes = 32 << 10;
constexpr size_t kMostSymbols = 100'000;
constexpr char kNoSmallLink[] = "the link takes the whole libraries";

// The imports of a link's result, and their libraries.
struct Imported {
  std::vector<std::string> libraries;     // in order
  std::vector<ElfImage::Import> imports;  // sorted

  bool operator==(const Imported&) const = default;
};

// The names that the objects of a link need from elsewhere, sorted.
absl::StatusOr<std::vector<std::string>> NamesNeeded(const Step& step) {
  std::set<std::string_view> needed;
  std::set<std::string_view> defined;
  for (const exec::InputFile& input : step.action.inputs) {
    if (!input.path.ends_with(".o")) continue;
    KERNIX_ASSIGN_OR_RETURN(const ElfImage object, ElfImage::ParseObject(*input.content));
    KERNIX_ASSIGN_OR_RETURN(const std::vector<ElfImage::Symbol> symbols, object.Symbols());
    for (const ElfImage::Symbol& symbol : symbols) {
      if (symbol.is_local) continue;
      if (symbol.name.find('@') != std::string_view::npos) return absl::UnimplementedError("a version is asked for");
      (symbol.is_defined ? defined : needed).insert(symbol.name);
      if (needed.size() + defined.size() > kMostSymbols) return absl::UnimplementedError("there are many symbols");
    }
  }
  std::vector<std::string> names;
  size_t bytes = 0;
  for (const std::string_view name : needed) {
    if (defined.contains(name)) continue;
    names.emplace_back(name);
    bytes += name.size();
  }
  if (bytes > kMostNameBytes) return absl::UnimplementedError("many names are needed");
  return names;
}

// The imports of a link's result.
absl::StatusOr<Imported> ImportedBy(const Step& step, const absl::StatusOr<exec::ActionResult>& result) {
  KERNIX_RETURN_IF_ERROR(result.status());
  const auto output = result->outputs.find(step.action.outputs.front());
  if (result->exit_code != 0 || output == result->outputs.end()) return absl::NotFoundError("the link has failed");
  KERNIX_ASSIGN_OR_RETURN(const ElfImage image, ElfImage::Parse(*output->second));
  Imported imported;
  KERNIX_ASSIGN_OR_RETURN(imported.libraries, image.NeededLibraries());
  KERNIX_ASSIGN_OR_RETURN(imported.imports, image.Imports());
  std::sort(imported.imports.begin(), imported.imports.end());
  return imported;
}

absl::StatusOr<Imported> Analyse(const Step& step, const exec::ActionEnd& end) {
  return CatchExceptions(kNoSmallLink, [&] { return ImportedBy(step, end); });
}

// Whether only the compiler names libraries: no archive of CUDA's is linked.
bool NamesNoLibrary(const exec::Action& action) {
  return std::none_of(action.argv.begin(), action.argv.end(),
                      [](const std::string& word) { return word.starts_with("-l"); });
}

// Whether a link with `small` libraries has found all that it would have found in the whole ones. Of what is missing
// there, a name that must be found is an error of the linker's. Another one, which an archive's object may need, would
// stay without a version.
bool FoundAll(const Imported& imported, const SmallLibraries& small) {
  return std::all_of(imported.imports.begin(), imported.imports.end(), [&](const ElfImage::Import& import) {
    return !import.version.empty() || std::binary_search(small.names.begin(), small.names.end(), import.name);
  });
}

}  // namespace

exec::ActionEnd Linker::Run(Step step, const StepRun& run) {
  if (run.toolchain != nullptr) step.action = WithDriverFunctions(std::move(step.action), *run.toolchain);
  if (step.kind != StepKind::kPlainLink || !takes_stubs_) return commands_.RunStep(step, run);
  const absl::StatusOr<SmallLibraries> small =
      CatchExceptions(kNoSmallLink, [&] { return SmallLibrariesFor(step, run.toolchain); });
  if (!small.ok()) Log(LogLevel::kDebug, "small_libraries_failed", {{"reason", ToStd(small.status().message())}});
  if (small.ok() && run.mode != CompileMode::kWhole) {
    MutedStep muted(run.observer);
    exec::ActionEnd end = RunSmall(step, *small, run, &muted);
    const absl::StatusOr<Imported> imported = Analyse(step, end);
    if (imported.ok() && FoundAll(*imported, *small)) {
      links_["stubs"].Add();
      if (run.observer != nullptr && !end->output.empty()) run.observer->OnOutput(end->output);
      return end;
    }
    Log(LogLevel::kDebug, "small_libraries_failed",
        {{"reason", imported.ok() ? "it needs the whole libraries" : imported.status().message()},
         {"output", end.ok() ? end->output : std::string(end.status().message())}});
  }
  links_["whole"].Add();
  exec::ActionEnd whole = commands_.RunStep(step, run);
  const absl::StatusOr<Imported> imported = Analyse(step, whole);
  if (!imported.ok() || !small.ok() || run.mode != CompileMode::kWhole) return whole;
  // Once more, for the bytes of the other modes.
  exec::ActionEnd again = RunSmall(step, *small, run, /*observer=*/nullptr);
  const absl::StatusOr<Imported> imported_again = Analyse(step, again);
  if (!imported_again.ok() || *imported_again != *imported) return whole;
  again->output = whole->output;
  return again;
}

absl::StatusOr<SmallLibraries> Linker::SmallLibrariesFor(const Step& step,
                                                         const toolchain::ToolchainPtr& toolchain) const {
  if (toolchain == nullptr || toolchain->described != nullptr) {
    return absl::UnavailableError("the libraries are on the workers");
  }
  KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesNeeded(step));
  const std::vector<std::string> libraries = NamesNoLibrary(step.action)
                                                 ? std::vector<std::string>{"libstdc++.so", "libm.so", "libc.so"}
                                                 : std::vector<std::string>{"libstdc++.so"};
  return MakeSmallLibraries(env_, toolchain->host.library_directories, libraries, names);
}

exec::ActionEnd Linker::RunSmall(Step step, const SmallLibraries& small, StepRun run, exec::ActionObserver* observer) {
  run.observer = observer;
  exec::Action& action = step.action;
  action.inputs.insert(action.inputs.end(), small.files.begin(), small.files.end());
  action.argv.push_back(StrCat("-L", kSmallLibraries));
  return commands_.RunStep(step, run);
}

}  // namespace kernix::build
