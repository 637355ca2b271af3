// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/small_libraries.h"

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

// What a compiler links each shared library with.
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

// The absolute path in a linker script that leads to the library of this name: "/lib/libc.so.6" for "libc.so".
std::optional<std::string_view> LibraryIn(std::string_view script, const std::string& name) {
  for (size_t at = script.find('/'); at != std::string_view::npos; at = script.find('/', at)) {
    const size_t end = std::min(script.find_first_of(" \t\n)", at), script.size());
    const std::string_view word = script.substr(at, end - at);
    if (Basename(word).starts_with(name + ".")) return word;
    at = end;
  }
  return std::nullopt;
}

// The stub of one library, perhaps behind a script like its own.
absl::StatusOr<std::vector<exec::InputFile>> SmallLibrary(Env& env, const std::string& path, const std::string& name,
                                                          const Names& names) {
  KERNIX_ASSIGN_OR_RETURN(std::string content, env.ReadFile(path));
  const auto word = content.size() <= kLongestScript ? LibraryIn(content, name) : std::nullopt;
  if (!word) {
    KERNIX_ASSIGN_OR_RETURN(exec::InputFile stub, StubOf(name, content, names));
    return std::vector<exec::InputFile>{std::move(stub)};
  }
  KERNIX_ASSIGN_OR_RETURN(const std::string bytes, env.ReadFile(std::string(*word)));
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
    if (!path) continue;
    const auto files = SmallLibrary(env, *path, name, wanted);
    if (files.ok()) small.files.insert(small.files.end(), files->begin(), files->end());
  }
  if (small.files.empty()) return absl::NotFoundError("no library has the usual form");
  return small;
}

}  // namespace kernix::build
