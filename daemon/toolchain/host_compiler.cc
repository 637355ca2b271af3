// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/host_compiler.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/processor.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/spawner.h"
#include "daemon/toolchain/file_digests.h"
#include "daemon/toolchain/tool_query.h"

namespace kernix::toolchain {
namespace {

// The compiler's own files that a shared object is linked with.
constexpr const char* kLinkedFiles[] = {
    "crti.o",
    "crtbeginS.o",
    "crtendS.o",
    "crtn.o",
    "libgcc.a",
    "libgcc_s.so",
    "libgcc_s.so.1",
    "libstdc++.so",
    "libc.so",
    "libc.so.6",
    "libm.so.6",
    "libc_nonshared.a",
    "specs",
    "libgomp.so",
    "libgomp.spec",
    // Linked by -ffast-math, -static-libstdc++ and -static-libgcc.
    "crtfastmath.o",
    "libstdc++.a",
    "libgcc_eh.a",
    "libomp.so",
    "libc++.so",
    "libc++.so.1",
    "libc++.a",
    "libc++abi.so.1",
    "libc++abi.a",
};
constexpr const char* kGccPrograms[] = {"cc1plus", "as", "collect2", "ld"};
// Among those above: Ask() looks for these before it knows which kind answers.
constexpr const char* kClangPrograms[] = {"ld", "as"};

// See HostCompiler. All may be missing. The programs load the libraries that cc1plus loads.
constexpr const char* kLtoPrograms[] = {"lto1", "lto-wrapper", "liblto_plugin.so"};
constexpr const char* kSanitizerFiles[] = {"libasan.so", "libhwasan.so", "liblsan.so",
                                           "libtsan.so", "libubsan.so",  "libsanitizer.spec"};

// The parts of Clang's resource folder besides headers, which the builds' dependency files list: runtime libraries, in
// both layouts, and the ignore lists of sanitizers. $ is the processor.
constexpr const char* kResourceFolders[] = {"lib/linux", "lib/$-unknown-linux-gnu", "lib/$-pc-linux-gnu", "share"};
constexpr const char* kResourceFiles[] = {"libclang_rt.builtins-$.a",
                                          "libclang_rt.builtins.a",
                                          "libclang_rt.asan-$.so",
                                          "libclang_rt.asan.so",
                                          "asan_ignorelist.txt",
                                          "libclang_rt.ubsan_standalone-$.so",
                                          "libclang_rt.ubsan_standalone.so"};

// The folders of "programs: =a:b:c".
std::vector<std::string> SearchFolders(const std::string& answer, std::string_view kind) {
  const std::optional<std::string> line = LineAfter(answer, StrCat(kind, ": ="));
  if (!line) return {};
  return absl::StrSplit(*line, ':', absl::SkipEmpty());
}

std::vector<std::string> IncludeFolders(const std::string& answer) {
  std::vector<std::string> folders;
  bool listing = false;
  for (const std::string& line : SplitLines(answer)) {
    if (line.starts_with("End of search list")) break;
    if (listing) folders.push_back(NormalizePath(ToStd(absl::StripAsciiWhitespace(line))));
    listing = listing || line.starts_with("#include <...>");
  }
  return folders;
}

// The word after `title` in the output of `-v`, such as "12.2.0" in "gcc version 12.2.0 (Debian 12.2.0-14)".
std::optional<std::string> WordAfter(const std::string& answer, std::string_view title) {
  const size_t found = answer.find(title);
  if (found == std::string::npos) return std::nullopt;
  const size_t begin = found + title.size();
  return answer.substr(begin, answer.find_first_of(" \r\n", begin) - begin);
}

// Checks for Clang first, because Clang may mention the GCC whose libraries it uses.
bool ReadVersion(const std::string& answer, HostCompiler& compiler) {
  for (const HostCompilerKind kind : {HostCompilerKind::kClang, HostCompilerKind::kGcc}) {
    const bool clang = kind == HostCompilerKind::kClang;
    const std::optional<std::string> version = WordAfter(answer, clang ? "clang version " : "gcc version ");
    if (!version) continue;
    const char* end = version->data() + version->size();
    if (std::from_chars(version->data(), end, compiler.major_version).ec != std::errc()) continue;
    compiler.kind = kind;
    compiler.version = *version;
    return true;
  }
  return false;
}

// The libraries that the loader would load for `program`. Compilers and linkers of distributions are thin; libLLVM or
// libbfd does the work. A static program prints its version instead, which names no libraries.
std::vector<std::string> LoadedLibraries(Env& env, const std::string& driver, const std::string& program,
                                         const Variables& variables) {
  ProcessSpec spec = ToolQuery(env, {program, "--version"}, variables, spawn::ToolFolders(env, {driver}, {}));
  spec.environment.emplace("LD_TRACE_LOADED_OBJECTS", "1");
  const absl::StatusOr<ProcessResult> result = env.RunProcess(spec, nullptr, nullptr);
  std::vector<std::string> libraries;
  if (!result.ok()) return libraries;
  for (const std::string& line : SplitLines(result->output)) {  // "  libz.so.1 => /lib/libz.so.1 (0x7f5d0b200000)"
    const std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.size() >= 3 && words[1] == "=>" && words[2].starts_with("/")) libraries.push_back(words[2]);
  }
  return libraries;
}

// The folders where the compiler at `path` looks for programs.
std::vector<std::string> ProgramFoldersOf(const std::string& path, const std::string& search) {
  std::vector<std::string> folders = SearchFolders(search, "programs");
  for (std::string& folder : std::vector<std::string>{Dirname(path), "/usr/bin", "/bin"}) {
    folders.push_back(std::move(folder));  // the PATH that it runs with
  }
  return folders;
}

template <size_t n>
std::vector<std::string> FindThose(Env& env, const char* const (&names)[n], const std::vector<std::string>& folders) {
  std::vector<std::string> found;
  for (const char* name : names) {
    if (std::optional<std::string> path = FindFile(env, folders, name)) found.push_back(*std::move(path));
  }
  return found;
}

// `answer`: the output of Clang's -v, which lists its configuration files.
absl::Status AddClangParts(Env& env, const HostCompiler& compiler, const std::string& answer, Parts& parts) {
  int number = 0;
  for (const std::string& line : SplitLines(answer)) {
    constexpr std::string_view kTitle = "Configuration file: ";
    if (line.starts_with(kTitle)) parts.Add(StrCat("configuration ", number++), line.substr(kTitle.size()));
  }
  KERNIX_ASSIGN_OR_RETURN(const std::string said,
                          AskTool(env, {compiler.path, "-print-resource-dir"}, compiler.variables));
  const std::string resources(ToStd(absl::StripAsciiWhitespace(said)));
  std::vector<std::string> folders;
  const auto here = [](const char* name) { return absl::StrReplaceAll(name, {{"$", kClangProcessor}}); };
  for (const char* folder : kResourceFolders) folders.push_back(JoinPath(resources, here(folder)));
  for (const char* name : kResourceFiles) parts.AddIfThere(here(name), FindFile(env, folders, here(name)));
  const std::string program = env.RealPath(compiler.path).value_or(compiler.path);
  parts.AddIfThere("LLVMgold.so", FindFile(env, {JoinPath(Dirname(Dirname(program)), "lib")}, "LLVMgold.so"));
  return absl::OkStatus();
}

// A program that may be a part of the compiler.
struct Program {
  std::string path;
  std::vector<std::string> libraries;  // that it loads; a wrapper script or ccache tells of none
};

// The compiler's answers about itself.
struct Answers {
  std::string description;                   // -v
  std::string link;                          // -###, for a link; empty: it does not tell
  std::string folders;                       // -print-search-dirs
  std::vector<std::string> program_folders;  // of these
  std::map<std::string, Program> programs;   // by name, those of kGccPrograms that are there; and kDriver
};
constexpr char kDriver[] = "driver";

std::map<std::string, Program> FindPrograms(Env& env, const std::string& driver,
                                            const std::vector<std::string>& folders, const Variables& variables) {
  std::map<std::string, Program> programs{{kDriver, {.path = driver, .libraries = {}}}};
  for (const char* name : kGccPrograms) {
    if (std::optional<std::string> path = FindFile(env, folders, name)) programs[name].path = *std::move(path);
  }
  std::vector<std::function<void()>> queries;
  for (auto& [name, program] : programs) {
    queries.emplace_back(
        [&, &found = program] { found.libraries = LoadedLibraries(env, driver, found.path, variables); });
  }
  RunSideBySide(queries);
  return programs;
}

// Some questions are about answers to others, so that they wait for one another as little as possible.
absl::StatusOr<Answers> Ask(Env& env, const std::string& path, const Variables& variables) {
  Answers answers;
  absl::StatusOr<std::string> description, folders, link;
  RunSideBySide({[&] {
                   description = AskTool(env, {path, "-v", "-E", "-x", "c++", "/dev/null"}, variables);
                 },
                 [&] {
                   link = AskTool(env, {path, "-###", "-shared", "-x", "c++", "/dev/null"}, variables);
                 },
                 [&] {
                   folders = AskTool(env, {path, "-print-search-dirs"}, variables);
                   if (!folders.ok()) return;
                   answers.program_folders = ProgramFoldersOf(path, *folders);
                   answers.programs = FindPrograms(env, path, answers.program_folders, variables);
                 }});
  KERNIX_ASSIGN_OR_RETURN(answers.description, std::move(description));
  KERNIX_ASSIGN_OR_RETURN(answers.folders, std::move(folders));
  answers.link = link.value_or("");
  return answers;
}

// By what it links, not by its name: "cc" may be either, and so may a script.
bool LinksCxx(const std::string& answer) {
  return answer.empty() || answer.find("-lstdc++") != std::string::npos || answer.find("-lc++") != std::string::npos;
}

Parts PartsOf(Env& env, const HostCompiler& compiler, const Answers& answers) {
  std::vector<std::string> names = {kDriver};
  const bool is_gcc = compiler.kind == HostCompilerKind::kGcc;
  for (const char* name :
       is_gcc ? std::span<const char* const>(kGccPrograms) : std::span<const char* const>(kClangPrograms)) {
    names.emplace_back(name);
  }
  Parts parts;
  std::set<std::string> libraries;
  for (const std::string& name : names) {
    const auto program = answers.programs.find(name);
    if (program == answers.programs.end()) continue;
    parts.Add(name, program->second.path);
    libraries.insert(program->second.libraries.begin(), program->second.libraries.end());
  }
  for (const std::string& library : libraries) parts.Add(StrCat("library ", Basename(library)), library);
  for (const char* name : kLinkedFiles) parts.AddIfThere(name, FindFile(env, compiler.library_directories, name));
  return parts;
}

absl::Status NotFound(const std::string& path, std::string_view setting) {
  return MakeError(v1::ErrorDetail::TOOLCHAIN, StrCat("there is no C++ compiler at ", path,
                                                      ": install g++ or clang++, or set ", setting, " to another one"));
}

absl::StatusOr<std::string> ResolveFolder(Env& env, const std::string& path, std::string_view setting) {
  if (!path.starts_with("/") || !env.Stat(path).ok()) return NotFound(path, setting);
  KERNIX_ASSIGN_OR_RETURN(const std::string folder, env.RealPath(Dirname(path)));
  return JoinPath(folder, Basename(path));
}

}  // namespace

absl::StatusOr<HostCompiler> ProbeHostCompiler(Env& env, FileDigests& digests, const std::string& path,
                                               std::string_view setting, const Variables& variables,
                                               std::vector<WatchedFile>& files) {
  HostCompiler compiler{.variables = variables};
  KERNIX_ASSIGN_OR_RETURN(compiler.path, ResolveFolder(env, path, setting));
  KERNIX_RETURN_IF_ERROR(Watch(env, path, files));
  KERNIX_ASSIGN_OR_RETURN(const Answers answers, Ask(env, compiler.path, variables));
  if (!ReadVersion(answers.description, compiler)) {
    return MakeError(v1::ErrorDetail::TOOLCHAIN,
                     StrCat(path, " is neither a GCC nor a Clang: set ", setting, " to one of them"));
  }
  compiler.links_cxx = LinksCxx(answers.link);
  compiler.system_include_directories = IncludeFolders(answers.description);
  compiler.library_directories = ExistingFolders(env, SearchFolders(answers.folders, "libraries"));
  if (compiler.kind == HostCompilerKind::kGcc) {
    compiler.lto_programs = FindThose(env, kLtoPrograms, answers.program_folders);
    compiler.sanitizer_files = FindThose(env, kSanitizerFiles, compiler.library_directories);
  }
  Parts parts = PartsOf(env, compiler, answers);
  if (compiler.kind == HostCompilerKind::kClang) {
    KERNIX_RETURN_IF_ERROR(AddClangParts(env, compiler, answers.description, parts));
  }
  const std::vector<WatchedFile> states = parts.States(env);
  files.insert(files.end(), states.begin(), states.end());
  KERNIX_ASSIGN_OR_RETURN(compiler.identity, parts.Identity(digests, "kernix-host-compiler-1", files));
  return compiler;
}

}  // namespace kernix::toolchain
