// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/host_compiler.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/error.h"
#include "daemon/base/paths.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/strings.h"
#include "daemon/toolchain/parts.h"
#include "daemon/toolchain/tool_query.h"

namespace kernix::toolchain {
namespace {

// What a shared object is linked with, as far as it is not the user's.
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
    // What -ffast-math, -static-libstdc++, -static-libgcc and -fsanitize link.
    "crtfastmath.o",
    "libstdc++.a",
    "libgcc_eh.a",
    "libasan.so",
    "libubsan.so",
    "libtsan.so",
    "libomp.so",
};
// Those of -flto do not have to be there.
constexpr const char* kGccPrograms[] = {"cc1plus", "as", "collect2", "ld", "lto1", "lto-wrapper", "liblto_plugin.so"};
constexpr const char* kClangPrograms[] = {"ld"};

// Folders of "programs: =a:b:c".
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

// The word after `title` in what `-v` prints, such as "12.2.0" in "gcc version 12.2.0 (Debian 12.2.0-14)".
std::optional<std::string> WordAfter(const std::string& answer, std::string_view title) {
  const size_t found = answer.find(title);
  if (found == std::string::npos) return std::nullopt;
  const size_t begin = found + title.size();
  return answer.substr(begin, answer.find_first_of(" \r\n", begin) - begin);
}

// Clang first: it may mention the GCC whose libraries it uses.
bool ReadVersion(const std::string& answer, HostCompiler& compiler) {
  for (const HostCompilerKind kind : {HostCompilerKind::kClang, HostCompilerKind::kGcc}) {
    const bool clang = kind == HostCompilerKind::kClang;
    const std::optional<std::string> version = WordAfter(answer, clang ? "clang version " : "gcc version ");
    if (!version || !absl::SimpleAtoi(version->substr(0, version->find('.')), &compiler.major_version)) continue;
    compiler.kind = kind;
    compiler.version = *version;
    return true;
  }
  return false;
}

// The libraries that the loader would give to `program`: compilers and linkers of distributions are thin, what does the
// work is in libLLVM or libbfd. A static program answers with its version instead, which names none.
std::vector<std::string> LoadedLibraries(Env& env, const std::string& program) {
  ProcessSpec spec = ToolQuery({program, "--version"});
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

// A wrapper script or ccache has nothing to trace: the text "=> /..." does not come up.
void AddLibraries(Env& env, const std::vector<std::string>& programs, Parts& parts) {
  std::set<std::string> libraries;
  for (const std::string& program : programs) {
    for (std::string& library : LoadedLibraries(env, program)) libraries.insert(std::move(library));
  }
  for (const std::string& library : libraries) parts.Add(StrCat("library ", Basename(library)), library);
}

template <size_t n>
std::vector<std::string> AddPrograms(Env& env, const char* const (&names)[n], const std::vector<std::string>& folders,
                                     Parts& parts) {
  std::vector<std::string> programs;
  for (const char* name : names) {
    if (std::optional<std::string> path = FindFile(env, folders, name)) {
      programs.push_back(*path);
      parts.Add(name, *std::move(path));
    }
  }
  return programs;
}

Parts PartsOf(Env& env, const HostCompiler& compiler, const std::string& search) {
  std::vector<std::string> folders = SearchFolders(search, "programs");
  for (std::string& folder : std::vector<std::string>{Dirname(compiler.path), "/usr/bin", "/bin"}) {
    folders.push_back(std::move(folder));  // the PATH that it runs with
  }
  Parts parts;
  parts.Add("driver", compiler.path);
  std::vector<std::string> programs = compiler.kind == HostCompilerKind::kGcc
                                          ? AddPrograms(env, kGccPrograms, folders, parts)
                                          : AddPrograms(env, kClangPrograms, folders, parts);
  programs.push_back(compiler.path);
  AddLibraries(env, programs, parts);
  for (const char* name : kLinkedFiles) parts.AddIfThere(name, FindFile(env, compiler.library_directories, name));
  return parts;
}

absl::Status NotFound(const std::string& path) {
  return MakeError(v1::ErrorDetail::TOOLCHAIN,
                   StrCat("there is no C++ compiler at ", path, ": install g++ or clang++, or set CXX to one"));
}

absl::StatusOr<std::string> ResolveFolder(Env& env, const std::string& path) {
  if (!path.starts_with("/") || !env.Stat(path).ok()) return NotFound(path);
  KERNIX_ASSIGN_OR_RETURN(const std::string folder, env.RealPath(Dirname(path)));
  return JoinPath(folder, Basename(path));
}

}  // namespace

absl::StatusOr<HostCompiler> ProbeHostCompiler(Env& env, FileDigests& digests, const std::string& path,
                                               std::vector<std::string>& files) {
  HostCompiler compiler;
  KERNIX_ASSIGN_OR_RETURN(compiler.path, ResolveFolder(env, path));
  KERNIX_ASSIGN_OR_RETURN(const std::string answer,
                          AskTool(env, {compiler.path, "-v", "-E", "-x", "c++", "/dev/null"}));
  if (!ReadVersion(answer, compiler)) {
    return MakeError(v1::ErrorDetail::TOOLCHAIN, StrCat(path, " is neither a GCC nor a Clang: set CXX to one of them"));
  }
  compiler.system_include_directories = IncludeFolders(answer);
  KERNIX_ASSIGN_OR_RETURN(const std::string search, AskTool(env, {compiler.path, "-print-search-dirs"}));
  compiler.library_directories = ExistingFolders(env, SearchFolders(search, "libraries"));
  const Parts parts = PartsOf(env, compiler, search);
  KERNIX_ASSIGN_OR_RETURN(compiler.identity, parts.Identity(digests, "kernix-host-compiler-1"));
  files.push_back(path);
  parts.AppendPaths(files);
  return compiler;
}

}  // namespace kernix::toolchain
