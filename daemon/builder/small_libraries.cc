// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/small_libraries.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "common/base/elf_image.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
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

}  // namespace kernix::build
