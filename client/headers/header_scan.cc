// SPDX-License-Identifier: Apache-2.0
#include "client/headers/header_scan.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/str_split.h"
#include "client/tools/environment.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/flags/languages.h"
#include "common/os/file_identity.h"
#include "common/wire/input_root.h"

namespace kernix {
namespace {

// --- Include roots

struct IncludeRoot {
  std::string folder;        // absolute
  bool only_quoted = false;  // a source's own folder, which `#include <x>` does not search
};

// A file's path below a root, as the daemon sees it.
struct RootedPath {
  uint32_t root = 0;
  std::string path;  // normalised; may begin with "..", up to kMaxClimb times

  bool operator<(const RootedPath& other) const { return std::tie(root, path) < std::tie(other.root, other.path); }
};

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

// The roots of a load: the sources' folders, then the include paths. Each folder appears once; folders that do not
// exist and those in `toolchain_folders` are omitted.
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

// Where `name` leads to from `folder`, as seen from root `root`. Returns nullopt if it is not a file, or is
// too far above the root.
std::optional<RootedPath> RootedPathOf(uint32_t root, std::string_view folder, std::string_view name) {
  if (name.starts_with('/')) return std::nullopt;
  std::string path = NormalizePath(JoinPath(folder, name));
  std::string_view below = path;
  int climbs = 0;
  for (; below.starts_with("../"); below.remove_prefix(3)) ++climbs;
  if (below == "." || below == ".." || climbs > kMaxClimb) return std::nullopt;
  return RootedPath{root, std::move(path)};
}

// The folders, as seen from the root, that `name` enters from `folder` and leaves again: "a/../b.h" passes through "a".
// They must exist, because the kernel walks through them.
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

// All header-like files under the roots, at most `limit` + 1 of them. Adds the folders that it lists to `searched`.
std::vector<RootedPath> ListHeaders(Env& env, const std::vector<IncludeRoot>& roots, size_t limit,
                                    std::set<std::string>& searched) {
  std::vector<RootedPath> found;
  for (uint32_t i = 0; i < roots.size(); ++i) Lister(env, i, roots[i].folder, limit, found, searched).List("");
  return found;
}

// --- The scan

constexpr std::string_view kOwnHeaders = "brainevent/";
// The kernix header that includes files which belong to neither kernix nor the toolchain, and the files that it
// includes.
constexpr std::string_view kXlaWrapper = "brainevent/ffi_compat.h";
constexpr char kXlaHeader[] = "xla/ffi/api/ffi.h";
constexpr int kMaxMacroDepth = 8;

// An including text: a source, or a header that was found.
struct Includer {
  std::string label;             // for errors
  std::optional<uint32_t> root;  // nullopt for text that is not a file
  std::string folder;            // the includer's folder, below its root
  bool is_source = false;
  std::string absolute_folder = {};  // for a header that was included by its absolute path
};

// The result of resolving a name; empty if the name belongs to the toolchain.
struct Resolution {
  ScannedInclude include;
  std::string label;
  std::optional<RootedPath> file;
};

absl::Status BadInclude(std::string_view label, const ScannedInclude& include, const std::string& message) {
  const char* directive = include.question ? "__has_include" : "#include";
  const std::string& name = include.target.name;
  const std::string shown = include.target.form == IncludeForm::kAngled   ? StrCat("<", name, ">")
                            : include.target.form == IncludeForm::kQuoted ? StrCat("\"", name, "\"")
                                                                          : name;
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat(label, ":", include.line, ": ", directive, " ", shown, ": ", message));
}

// One scan, from the sources outwards.
class Scan {
 public:
  Scan(Env& env, HeaderFiles& files, HeaderTable& table, const HeaderScanRequest& request)
      : env_(env), files_(files), table_(table), request_(request), roots_(Roots(env, request)) {
    searched_.insert(request.include_paths.begin(), request.include_paths.end());
    for (const SourceToScan& source : request.sources) {
      if (!source.folder.empty()) searched_.insert(source.folder);
    }
  }

  absl::StatusOr<HeaderScan> Run() && {
    for (const SourceToScan& source : request_.sources) KERNIX_RETURN_IF_ERROR(ScanSource(source));
    KERNIX_RETURN_IF_ERROR(FollowAll());
    KERNIX_RETURN_IF_ERROR(GuessRest());
    KERNIX_RETURN_IF_ERROR(CheckShadows());
    return Result();
  }

 private:
  static std::vector<IncludeRoot> Roots(Env& env, const HeaderScanRequest& request) {
    std::vector<std::string> folders;
    for (const SourceToScan& source : request.sources) {
      if (!source.folder.empty()) folders.push_back(source.folder);
    }
    return MakeIncludeRoots(env, folders, request.include_paths, request.toolchain_folders);
  }

  // The scan adds the sources' folders first, so a source's folder is the first root that is the same folder.
  Includer IncluderOf(const SourceToScan& source) const {
    Includer includer{.label = source.label, .root = std::nullopt, .folder = "", .is_source = true};
    for (uint32_t i = 0; i < roots_.size() && !source.folder.empty(); ++i) {
      if (roots_[i].folder == source.folder) includer.root = i;
    }
    return includer;
  }

  absl::Status ScanSource(const SourceToScan& source) {
    return FollowText(IncluderOf(source), ScanIncludes(source.text));
  }

  absl::Status FollowText(const Includer& includer, const ScannedText& text) {
    for (const auto& [name, values] : text.definitions) {
      std::vector<IncludeName>& known = definitions_[name];
      known.insert(known.end(), values.begin(), values.end());
    }
    for (const ScannedInclude& include : text.includes) {
      if (include.target.form == IncludeForm::kComputed) {
        computed_.push_back({includer, include});
      } else {
        KERNIX_RETURN_IF_ERROR(Follow(includer, include));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Follow(const Includer& includer, const ScannedInclude& include) {
    const std::string_view name = include.target.name;
    if (name == kXlaWrapper) {
      return Follow(includer, {.target = {IncludeForm::kQuoted, kXlaHeader}, .line = include.line});
    }
    if (name.empty() || name.starts_with(kOwnHeaders)) return absl::OkStatus();
    if (name.starts_with('/')) return FollowAbsolute(include.target.name);
    if (include.target.form == IncludeForm::kQuoted && !includer.absolute_folder.empty()) {
      KERNIX_RETURN_IF_ERROR(FollowAbsolute(JoinPath(includer.absolute_folder, name)));
    }
    if (include.target.form == IncludeForm::kAngled && !include.next) return FollowAngled(includer, include);
    std::optional<RootedPath> found;
    if (include.target.form == IncludeForm::kQuoted && !include.next && includer.root) {
      KERNIX_ASSIGN_OR_RETURN(found, Try(*includer.root, includer.folder, include.target.name));
    }
    const uint32_t first_root = include.next && includer.root && !includer.is_source ? *includer.root + 1 : 0;
    if (!found) {
      KERNIX_ASSIGN_OR_RETURN(found, SearchRoots(first_root, include));
    }
    if (includer.is_source && !include.next) source_lookups_.push_back({include, includer.label, found});
    return absl::OkStatus();
  }

  // The compiler reads this header where it is, together with the headers that it includes in quotes from there. Its
  // other includes may resolve to any header.
  absl::Status FollowAbsolute(const std::string& path) {
    if (absolute_.contains(path)) return absl::OkStatus();
    searched_.insert(Dirname(path));
    KERNIX_ASSIGN_OR_RETURN(const HeaderFilePtr file, files_.Get(path, table_));
    if (file == nullptr) return absl::OkStatus();
    absolute_.insert(path);
    return FollowText(Includer{.label = path, .root = std::nullopt, .folder = "", .absolute_folder = Dirname(path)},
                      file->text);
  }

  // The meaning of <name> depends only on the name.
  absl::Status FollowAngled(const Includer& includer, const ScannedInclude& include) {
    if (angled_.contains(include.target.name)) return absl::OkStatus();
    KERNIX_ASSIGN_OR_RETURN(std::optional<RootedPath> found, SearchRoots(0, include));
    angled_.emplace(include.target.name, Resolution{include, includer.label, std::move(found)});
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<RootedPath>> SearchRoots(uint32_t first, const ScannedInclude& include) {
    for (uint32_t root = first; root < roots_.size(); ++root) {
      if (include.target.form == IncludeForm::kAngled && roots_[root].only_quoted) continue;
      KERNIX_ASSIGN_OR_RETURN(std::optional<RootedPath> found, Try(root, "", include.target.name));
      if (found) return found;
    }
    return std::optional<RootedPath>();
  }

  // Adds the file if it exists.
  absl::StatusOr<std::optional<RootedPath>> Try(uint32_t root, const std::string& folder, const std::string& name) {
    std::optional<RootedPath> path = RootedPathOf(root, folder, name);
    if (path) searched_.insert(Dirname(PathOf(*path)));
    if (!path || !NoteFoldersPassed(root, folder, name)) return std::optional<RootedPath>();
    KERNIX_ASSIGN_OR_RETURN(const bool is_there, Add(*path));
    if (!is_there) path.reset();
    return path;
  }

  // Returns false if one of the folders does not exist, or if ".." leads elsewhere from it than the name suggests, as
  // from a link.
  bool NoteFoldersPassed(uint32_t root, const std::string& folder, const std::string& name) {
    for (std::string& passed : FoldersPassed(folder, name)) {
      const std::string path = JoinPath(roots_[root].folder, passed);
      searched_.insert(path);
      if (!IsSameFile(env_, path + "/..", Dirname(path))) return false;
      passed_.insert({root, std::move(passed)});
    }
    return true;
  }

  // Returns false if the file does not exist.
  absl::StatusOr<bool> Add(const RootedPath& path) {
    if (taken_.contains(path)) return true;
    KERNIX_ASSIGN_OR_RETURN(HeaderFilePtr file, files_.Get(PathOf(path), table_));
    if (file == nullptr) return false;
    taken_.emplace(path, file);
    unread_.emplace_back(path, std::move(file));
    return true;
  }

  std::string PathOf(const RootedPath& path) const { return JoinPath(roots_[path.root].folder, path.path); }

  // Repeats until nothing new appears. Macros may be defined after the lines that use them, so those lines are examined
  // again.
  absl::Status FollowAll() {
    while (true) {
      KERNIX_RETURN_IF_ERROR(FollowUnread());
      for (size_t i = 0; i < computed_.size(); ++i) KERNIX_RETURN_IF_ERROR(FollowComputed(computed_[i]));
      if (unread_.empty()) return absl::OkStatus();
    }
  }

  absl::Status FollowUnread() {
    while (!unread_.empty()) {
      const auto [path, file] = std::move(unread_.front());
      unread_.pop_front();
      const std::string folder = Dirname(path.path);
      const Includer includer{.label = PathOf(path), .root = path.root, .folder = folder == "." ? "" : folder};
      KERNIX_RETURN_IF_ERROR(FollowText(includer, file->text));
    }
    return absl::OkStatus();
  }

  struct Computed {
    Includer includer;
    ScannedInclude include;
  };

  absl::Status FollowComputed(const Computed& computed) {
    for (const IncludeName& name : Expand(computed.include.target.name, 0)) {
      ScannedInclude include = computed.include;
      include.target = name;
      KERNIX_RETURN_IF_ERROR(Follow(computed.includer, include));
    }
    return absl::OkStatus();
  }

  // All file names that a macro may stand for.
  std::vector<IncludeName> Expand(const std::string& macro, int depth) const {
    std::vector<IncludeName> names;
    const auto found = definitions_.find(macro);
    if (found == definitions_.end() || depth > kMaxMacroDepth) return names;
    for (const IncludeName& value : found->second) {
      if (value.form != IncludeForm::kComputed) {
        names.push_back(value);
      } else {
        const std::vector<IncludeName> more = Expand(value.name, depth + 1);
        names.insert(names.end(), more.begin(), more.end());
      }
    }
    return names;
  }

  // An #include of a macro that is composed in any other way may name any header.
  absl::Status GuessRest() {
    const auto unknown = std::find_if(computed_.begin(), computed_.end(), [&](const Computed& c) {
      return !c.include.question && Expand(c.include.target.name, 0).empty();
    });
    if (unknown == computed_.end()) return absl::OkStatus();
    const std::vector<RootedPath> guesses = ListHeaders(env_, roots_, request_.max_guessed_headers, searched_);
    if (guesses.size() > request_.max_guessed_headers) {
      return BadInclude(unknown->includer.label, unknown->include,
                        StrCat("only the compiler can tell which header this is, and there are more than ",
                               request_.max_guessed_headers,
                               " under the include paths. Pass smaller folders in extra_include_paths, or define the "
                               "macro as \"file\" or <file> in the source."));
    }
    for (const RootedPath& guess : guesses) KERNIX_RETURN_IF_ERROR(Add(guess).status());
    return FollowAll();
  }

  // The build searches all roots in order for every name. It must find the files that this lookup found.
  absl::Status CheckShadows() const {
    for (const auto& [name, lookup] : angled_) KERNIX_RETURN_IF_ERROR(CheckShadow(lookup));
    for (const Resolution& lookup : source_lookups_) KERNIX_RETURN_IF_ERROR(CheckShadow(lookup));
    return absl::OkStatus();
  }

  absl::Status CheckShadow(const Resolution& lookup) const {
    for (uint32_t root = 0; root < roots_.size(); ++root) {
      if (lookup.include.target.form == IncludeForm::kAngled && roots_[root].only_quoted) continue;
      const std::optional<RootedPath> path = RootedPathOf(root, "", lookup.include.target.name);
      const auto first = path ? taken_.find(*path) : taken_.end();
      if (first == taken_.end()) continue;
      if (lookup.file && taken_.at(*lookup.file)->digest == first->second->digest) return absl::OkStatus();
      return BadInclude(
          lookup.label, lookup.include,
          StrCat("this is ", lookup.file ? PathOf(*lookup.file) : std::string("the toolchain's header"), ", but ",
                 PathOf(*path), " is included by the same name elsewhere and comes first. Rename one."));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<HeaderScan> Result() const {
    HeaderScan scan;
    scan.absolute_headers.assign(absolute_.begin(), absolute_.end());
    scan.searched = searched_;
    scan.include_root_count = static_cast<uint32_t>(roots_.size());
    for (uint32_t root = 0; root < roots_.size(); ++root) {
      scan.roots.push_back(roots_[root].folder);
      if (roots_[root].only_quoted) scan.quoted_roots.push_back(root);
    }
    for (const auto& [path, file] : taken_) {
      if (!IsValidUtf8(path.path)) {
        return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                         StrCat("the header's name is not UTF-8: ", ToValidUtf8(PathOf(path))));
      }
      v1::Header header;
      header.set_include_root(path.root);
      header.set_path(path.path);
      header.set_digest(file->digest.Raw());
      header.set_size(file->size);
      scan.headers.push_back(std::move(header));
      scan.files.emplace(file->digest, PathOf(path));
    }
    AddFolders(scan);
    return scan;
  }

  // Adds an empty file in each folder that would not exist without it.
  void AddFolders(HeaderScan& scan) const {
    for (const RootedPath& folder : passed_) {
      const std::string inside = folder.path + "/";
      const auto first = taken_.lower_bound({folder.root, inside});
      if (first != taken_.end() && first->first.root == folder.root && first->first.path.starts_with(inside)) continue;
      v1::Header marker;
      marker.set_include_root(folder.root);
      marker.set_path(inside + ".keep");
      marker.set_digest(DigestOf("").Raw());
      scan.folders.push_back(std::move(marker));
    }
  }

  Env& env_;
  HeaderFiles& files_;
  HeaderTable& table_;
  const HeaderScanRequest& request_;
  const std::vector<IncludeRoot> roots_;
  std::map<RootedPath, HeaderFilePtr> taken_;
  std::deque<std::pair<RootedPath, HeaderFilePtr>> unread_;
  std::set<RootedPath> passed_;  // folders that exist
  std::set<std::string> searched_;
  std::set<std::string> absolute_;
  std::map<std::string, std::vector<IncludeName>> definitions_;
  std::deque<Computed> computed_;
  absl::flat_hash_map<std::string, Resolution> angled_;
  std::vector<Resolution> source_lookups_;
};

// Adds `more`, whose roots now have the indices `new_roots`. A header that both lists contain is added once.
void MergeHeaders(std::vector<v1::Header>& headers, std::vector<v1::Header> more,
                  const std::vector<uint32_t>& new_roots) {
  for (v1::Header& header : more) {
    header.set_include_root(new_roots[header.include_root()]);
    headers.push_back(std::move(header));
  }
  const auto rooted = [](const v1::Header& header) {
    return std::pair<uint32_t, std::string_view>(header.include_root(), header.path());
  };
  std::sort(headers.begin(), headers.end(), [&](const auto& a, const auto& b) { return rooted(a) < rooted(b); });
  headers.erase(
      std::unique(headers.begin(), headers.end(), [&](const auto& a, const auto& b) { return rooted(a) == rooted(b); }),
      headers.end());
}

}  // namespace

absl::StatusOr<std::string> HeaderScan::Read(Env& env, const Digest& digest) const {
  if (digest == DigestOf("")) return "";
  const auto found = files.find(digest);
  if (found == files.end()) return absl::NotFoundError(StrCat("no header of this load has the digest ", digest.Hex()));
  KERNIX_ASSIGN_OR_RETURN(std::string content, env.ReadFile(found->second));
  if (DigestOf(content) == digest) return content;
  return absl::AbortedError(StrCat("the header ", found->second, " changed while it was being loaded. Load again."));
}

std::vector<uint32_t> HeaderScan::Merge(const HeaderScan& other) {
  std::vector<uint32_t> new_roots;
  for (const std::string& root : other.roots) {
    const auto known = std::find(roots.begin(), roots.end(), root);
    new_roots.push_back(static_cast<uint32_t>(known - roots.begin()));
    if (known == roots.end()) roots.push_back(root);
  }
  include_root_count = static_cast<uint32_t>(roots.size());
  MergeHeaders(headers, other.headers, new_roots);
  MergeHeaders(folders, other.folders, new_roots);
  absolute_headers.insert(absolute_headers.end(), other.absolute_headers.begin(), other.absolute_headers.end());
  files.insert(other.files.begin(), other.files.end());
  searched.insert(other.searched.begin(), other.searched.end());
  return new_roots;
}

absl::StatusOr<HeaderScan> ScanHeaders(Env& env, HeaderFiles& files, HeaderTable& table,
                                       const HeaderScanRequest& request) {
  return Scan(env, files, table, request).Run();
}

}  // namespace kernix
