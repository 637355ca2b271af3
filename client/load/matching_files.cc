// SPDX-License-Identifier: Apache-2.0
#include "client/load/matching_files.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_join.h"
#include "client/tools/environment.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

namespace fs = std::filesystem;
using Parts = fs::path::const_iterator;

constexpr char kAllFolders[] = "**";

absl::Status Unreadable(const fs::path& folder, const std::error_code& error) {
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat("cannot read the folder of sources, ", folder.string(), ": ", error.message()));
}

// Collects the files below a folder that match the parts of a pattern.
class Matcher {
 public:
  explicit Matcher(Parts end) : end_(end) {}

  void Match(const fs::path& folder, Parts part) {
    const bool any_depth = *part == kAllFolders;
    const Parts next = std::next(part);
    if ((*part == "." || *part == "..") && next != end_) return Match(folder / *part, next);
    if (any_depth && next != end_) Match(folder, next);
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      if (any_depth) {
        const bool is_hidden = at->path().filename().native().starts_with('.');
        if (!is_hidden && at->is_directory(error) && !at->is_symlink(error)) Match(at->path(), part);
      } else if (fnmatch(part->c_str(), at->path().filename().c_str(), FNM_PERIOD) == 0) {
        Take(*at, next);
      }
    }
    if (error && problem_.ok()) problem_ = Unreadable(folder, error);
  }

  absl::StatusOr<std::vector<fs::path>> Sorted() && {
    KERNIX_RETURN_IF_ERROR(problem_);
    std::sort(found_.begin(), found_.end());
    return std::move(found_);
  }

 private:
  void Take(const fs::directory_entry& entry, Parts next) {
    std::error_code error;
    if (next != end_) {
      if (entry.is_directory(error)) Match(entry.path(), next);
    } else if (entry.is_regular_file(error)) {
      found_.push_back(entry.path());
    }
  }

  const Parts end_;
  std::vector<fs::path> found_;
  absl::Status problem_;  // the first
};

absl::StatusOr<std::vector<fs::path>> FilesOf(const fs::path& folder, const std::string& pattern) {
  const fs::path parts(pattern);
  Matcher matcher(parts.end());
  if (!pattern.empty()) matcher.Match(folder, parts.begin());
  return std::move(matcher).Sorted();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> MatchingFiles(const std::string& folder,
                                                       const std::vector<std::string>& patterns) {
  std::error_code error;
  const fs::directory_iterator readable(folder, error);
  if (error == std::errc::no_such_file_or_directory) {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                     StrCat("there is no folder ", AbsolutePath(folder), " to load sources from"));
  }
  if (error == std::errc::not_a_directory) {
    return MakeError(
        v1::ErrorDetail::INVALID_REQUEST,
        StrCat(AbsolutePath(folder), " is not a folder: load a file with load_cuda_file or load_cpp_file"));
  }
  if (error) return Unreadable(folder, error);
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    KERNIX_ASSIGN_OR_RETURN(const std::vector<fs::path> files, FilesOf(folder, pattern));
    for (const fs::path& path : files) {
      if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
    }
  }
  if (!paths.empty()) return paths;
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat("no file in ", folder, " matches ", absl::StrJoin(patterns, ", ")));
}

}  // namespace kernix
