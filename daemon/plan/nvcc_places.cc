// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/nvcc_places.h"

#include <string_view>

#include "absl/strings/str_replace.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix::build {
namespace {

bool IsBelow(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

void AddLink(NvccPlaces& places, const std::string& folder) {
  if (IsHarmlessWord(places.Reach(folder))) return;
  places.links.push_back({StrCat(kLinkFolder, "/", places.links.size()), folder});
}

absl::StatusOr<std::string> ReachProgram(const NvccPlaces& places, const std::string& path) {
  std::string reached = places.Reach(path);
  if (IsHarmlessWord(reached)) return reached;
  return MakeError(v1::ErrorDetail::TOOLCHAIN, StrCat("nvcc would hand the name of ", path,
                                                      " to a shell, which would read its signs: give the program "
                                                      "a name of ",
                                                      kHarmlessCharacters, " (by a link)"));
}

// As a path stands in a Makefile.
std::string Escaped(const std::string& path) {
  return absl::StrReplaceAll(path, {{"\\", "\\\\"}, {" ", "\\ "}, {"#", "\\#"}, {"$", "$$"}});
}

bool BeginsWord(std::string_view text, size_t at) {
  return at == 0 || text[at - 1] == ' ' || text[at - 1] == '\t' || text[at - 1] == '\n';
}

}  // namespace

std::string NvccPlaces::Reach(const std::string& path) const {
  for (const exec::InputLink& link : links) {
    if (IsBelow(path, link.target)) return link.path + path.substr(link.target.size());
  }
  return path;
}

absl::StatusOr<NvccPlaces> FindNvccPlaces(const toolchain::Toolchain& toolchain) {
  const toolchain::CudaToolkit& cuda = *toolchain.cuda;
  NvccPlaces places;
  AddLink(places, cuda.root);
  AddLink(places, Dirname(cuda.nvcc));
  AddLink(places, Dirname(toolchain.host.path));
  for (const std::string& folder : cuda.include_directories) AddLink(places, folder);
  KERNIX_ASSIGN_OR_RETURN(places.nvcc, ReachProgram(places, cuda.nvcc));
  KERNIX_ASSIGN_OR_RETURN(places.host_compiler, ReachProgram(places, toolchain.host.path));
  for (const std::string& folder : cuda.include_directories) places.include_directories.push_back(places.Reach(folder));
  return places;
}

std::string BehindLinks(const std::string& path, const std::vector<exec::InputLink>& links) {
  for (const exec::InputLink& link : links) {
    if (IsBelow(path, link.path)) return link.target + path.substr(link.path.size());
  }
  return path;
}

std::string FollowLinks(std::string_view dependency_file, const std::vector<exec::InputLink>& links) {
  std::string text(dependency_file);
  for (const exec::InputLink& link : links) {
    const std::string before = link.path + "/";
    const std::string after = Escaped(link.target) + "/";
    for (size_t at = text.find(before); at != text.npos; at = text.find(before, at)) {
      const bool is_path = BeginsWord(text, at);
      if (is_path) text.replace(at, before.size(), after);
      at += is_path ? after.size() : before.size();
    }
  }
  return text;
}

}  // namespace kernix::build
