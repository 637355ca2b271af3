// SPDX-License-Identifier: Apache-2.0
#include "client/headers/include_roots.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_split.h"
#include "client/tools/environment.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/flags/languages.h"
#include "common/os/file_identity.h"
#include "common/wire/input_root.h"

namespace kernix {
namespace {

std::optional<FileId> IdOf(Env& env, const std::string& path) {
  const absl::StatusOr<FileInfo> info = env.Stat(path);
  if (!info.ok() || info->type != FileType::kDirectory) return std::nullopt;
  return FileId::Of(*info);
}

bool IsHeaderLike(const std::string& name) {
  static constexpr std::string_view kExtensions[] = {"h",   "hh",  "hpp", "hxx", "h++", "cuh", "inc",
                                                     "inl", "ipp", "tpp", "tcc", "def", "c"};
  const size_t dot = name.rfind('.');
  if (LanguageOfFile(name) != v1::LANGUAGE_UNSPECIFIED) return true;
  return dot != std::string::npos &&
         std::find(std::begin(kExtensions), std::end(kExtensions), name.substr(dot + 1)) != std::end(kExtensions);
}

// Walks one root.
class Lister {
 public:
  Lister(Env& env, uint32_t root, std::string folder, size_t limit, std::vector<RootedPath>& found,
         std::set<std::string>& searched)
      : env_(env), root_(root), folder_(std::move(folder)), limit_(limit), found_(found), searched_(searched) {}

  void List(const std::string& relative) {
    const std::string folder = JoinPath(folder_, relative);
    const std::optional<FileId> id = IdOf(env_, folder);
    if (!id || !seen_.insert(*id).second) return;
    searched_.insert(folder);
    for (const std::string& name : env_.ListDirectory(folder).value_or(std::vector<std::string>())) {
      if (found_.size() > limit_ || seen_.size() > limit_) return;
      if (!name.starts_with('.')) Visit(JoinPath(relative, name));
    }
  }

 private:
  void Visit(const std::string& relative) {
    if (IsHeaderLike(relative)) {
      found_.push_back({root_, relative});
    } else {
      List(relative);
    }
  }

  Env& env_;
  const uint32_t root_;
  const std::string folder_;
  const size_t limit_;
  std::vector<RootedPath>& found_;
  std::set<std::string>& searched_;
  std::set<FileId> seen_;
};

}  // namespace

std::vector<IncludeRoot> MakeIncludeRoots(Env& env, const std::vector<std::string>& source_folders,
                                          const std::vector<std::string>& include_paths,
                                          const std::vector<std::string>& toolchain_folders) {
  std::vector<IncludeRoot> roots;
  std::vector<FileId> ids;
  const auto add = [&](const std::string& folder, bool only_quoted) {
    const std::optional<FileId> id = IdOf(env, folder);
    if (!id) return;
    const auto known = std::find(ids.begin(), ids.end(), *id);
    if (known == ids.end()) {
      ids.push_back(*id);
      roots.push_back({AbsolutePath(folder), only_quoted});
    } else if (!only_quoted) {
      roots[known - ids.begin()].only_quoted = false;
    }
  };
  for (const std::string& folder : source_folders) add(folder, true);
  std::set<FileId> toolchain;
  for (const std::string& folder : toolchain_folders) {
    if (const std::optional<FileId> id = IdOf(env, folder)) toolchain.insert(*id);
  }
  for (const std::string& folder : include_paths) {
    const std::optional<FileId> id = IdOf(env, folder);
    if (id && !toolchain.contains(*id)) add(folder, false);
  }
  return roots;
}

std::optional<RootedPath> RootedPathOf(uint32_t root, std::string_view folder, std::string_view name) {
  if (name.starts_with('/')) return std::nullopt;
  std::string path = NormalizePath(JoinPath(folder, name));
  std::string_view below = path;
  int climbs = 0;
  for (; below.starts_with("../"); below.remove_prefix(3)) ++climbs;
  if (below == "." || below == ".." || climbs > kMaxClimb) return std::nullopt;
  return RootedPath{root, std::move(path)};
}

std::vector<std::string> FoldersPassed(std::string_view folder, std::string_view name) {
  std::vector<std::string> passed;
  std::string at(folder);
  int entered = 0;  // how many components of `at` come from `name`
  for (const absl::string_view part : absl::StrSplit(ToAbsl(name), '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      ++entered;
    } else if (entered > 0) {
      --entered;
      passed.push_back(at);
    }
    at = NormalizePath(JoinPath(at, ToStd(part)));
  }
  return passed;
}

std::vector<RootedPath> ListHeaders(Env& env, const std::vector<IncludeRoot>& roots, size_t limit,
                                    std::set<std::string>& searched) {
  std::vector<RootedPath> found;
  for (uint32_t i = 0; i < roots.size(); ++i) Lister(env, i, roots[i].folder, limit, found, searched).List("");
  return found;
}

}  // namespace kernix
