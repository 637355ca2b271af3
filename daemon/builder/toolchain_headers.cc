// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/toolchain_headers.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/os/file_identity.h"
#include "daemon/builder/dependency_file.h"
#include "daemon/plan/tool_paths.h"
#include "daemon/toolchain/description.h"

namespace kernix::build {
namespace {

constexpr char kSystemFolder[] = "/usr";

// Finds the files that tools have listed.
class ListedFiles {
 public:
  ListedFiles(Env& env, const std::vector<NamedFolder>& toolchain, LookAt look_at)
      : env_(env), only_toolchain_(look_at == LookAt::kToolchain) {
    if (!only_toolchain_) return;
    folders_.emplace_back(kSystemFolder);
    for (const NamedFolder& folder : toolchain) {
      folders_.push_back(folder.path);
      folders_.push_back(env.RealPath(folder.path).value_or(folder.path));  // compilers may shorten a name so
    }
  }

  // The place of a file that may be looked at, without "..". nullopt: there is none. The root that a relative path
  // leaves is gone.
  std::optional<std::string> Find(const std::string& path) const {
    const std::string normal = NormalizePath(path);
    if (!path.starts_with('/') || !MayLookAt(normal)) return std::nullopt;
    if (normal == path) return path;
    // If the path contains links, the text alone may name another place.
    const bool is_same = only_toolchain_ ? env_.Stat(normal).ok() : IsSameFile(env_, path, normal);
    const std::string place = is_same ? normal : env_.RealPath(path).value_or(path);
    return MayLookAt(NormalizePath(place)) ? std::optional(place) : std::nullopt;
  }

 private:
  bool MayLookAt(const std::string& normal) const {
    return !only_toolchain_ || std::any_of(folders_.begin(), folders_.end(),
                                           [&](const std::string& folder) { return IsBelow(normal, folder); });
  }

  Env& env_;
  const bool only_toolchain_;
  std::vector<std::string> folders_;
};

// Why the build may have read other content than the file has now; empty if it cannot have.
std::string WhyUnsure(const absl::StatusOr<toolchain::FileDigests::Content>& content, const BuildStart& start) {
  if (!content.ok()) return std::string(content.status().message());
  if (content->since <= start.monotonic) return "";
  if (content->identity.SettledAt(start.unix_ms)) return "";
  return "it was changed during the build, or its time stamp is ahead of this machine's clock";
}

// Records files with their content, and says in the log if the next load has to build again.
class Record {
 public:
  Record(toolchain::FileDigests& digests, const std::vector<NamedFolder>& folders, const BuildStart& start)
      : digests_(digests), folders_(folders), start_(start) {}

  void Add(const std::string& path) {
    const absl::StatusOr<toolchain::FileDigests::Content> content = digests_.GetContent(path);
    const std::string why = WhyUnsure(content, start_);
    if (!why.empty()) NoteUnsure(path, why);
    read_.headers.push_back({PortablePath(folders_, path), why.empty() ? content->digest : Digest()});
    if (read_.states) read_.states->push_back({path, content->identity});
  }

  // One such file is enough for the next load to build again, and a tool may list any number.
  void AddUnseen(const std::string& path) {
    if (!has_unseen_) read_.headers.push_back({PortablePath(folders_, path), Digest()});
    has_unseen_ = true;
    NoteUnsure(path, "kernixd does not look at it");
  }

  HeadersRead Finish() {
    if (!first_unsure_.empty()) {
      LogOf("header_not_recorded", LogLevel::kWarning, "header_not_recorded",
            {{"path", first_unsure_},
             {"reason", why_},
             {"files", unsure_},
             {"effect", "the next load of this entry builds it again"}});
    }
    return std::move(read_);
  }

 private:
  void NoteUnsure(const std::string& path, std::string_view why) {
    if (unsure_++ == 0) first_unsure_ = path, why_ = why;
    read_.states.reset();
  }

  toolchain::FileDigests& digests_;
  const std::vector<NamedFolder>& folders_;
  const BuildStart& start_;
  HeadersRead read_{.headers = {}, .states = std::vector<WatchedFile>()};
  bool has_unseen_ = false;
  uint64_t unsure_ = 0;
  std::string first_unsure_;
  std::string why_;
};

// A worker has read them. What they hold, the description says; none is a file of this machine.
HeadersRead DescribedHeaders(toolchain::FileDigests& digests, const toolchain::Toolchain& toolchain,
                             const std::set<std::string>& paths) {
  const std::vector<NamedFolder> folders = ToolchainFolders(toolchain);
  HeadersRead read{.headers = {}, .states = std::vector<WatchedFile>()};
  for (const std::string& path : paths) {
    const absl::StatusOr<Digest> digest = toolchain::DigestOfPart(toolchain, digests, path);
    read.headers.push_back({PortablePath(folders, path), digest.value_or(Digest())});
    if (!digest.ok()) read.states.reset();
  }
  return read;
}

// All files outside the root.
std::set<std::string> PathsOf(const std::vector<std::string>& dependency_files) {
  std::set<std::string> paths;
  for (const std::string& list : dependency_files) {
    for (std::string& path : FilesOutsideRoot(list)) paths.insert(std::move(path));
  }
  return paths;
}

std::set<std::string> NormalPathsOf(const std::vector<std::string>& dependency_files) {
  std::set<std::string> paths;
  for (const std::string& path : PathsOf(dependency_files)) paths.insert(NormalizePath(path));
  return paths;
}

}  // namespace

HeadersRead DigestToolchainHeaders(Env& env, toolchain::FileDigests& digests, const toolchain::Toolchain& toolchain,
                                   const std::vector<std::string>& dependency_files, const BuildStart& start,
                                   LookAt look_at) {
  if (toolchain.described != nullptr) return DescribedHeaders(digests, toolchain, NormalPathsOf(dependency_files));
  const std::vector<NamedFolder> folders = ToolchainFolders(toolchain);
  const ListedFiles listed(env, folders, look_at);
  Record record(digests, folders, start);
  std::set<std::string> places;
  for (const std::string& path : PathsOf(dependency_files)) {
    std::optional<std::string> place = listed.Find(path);
    if (!place) record.AddUnseen(path);
    if (place) places.insert(*std::move(place));
  }
  for (const std::string& place : places) record.Add(place);
  return record.Finish();
}

absl::Status CheckIsDescribed(const toolchain::Toolchain& toolchain, const std::vector<std::string>& dependency_files) {
  if (toolchain.described == nullptr) return absl::OkStatus();
  for (const std::string& path : NormalPathsOf(dependency_files)) {
    if (toolchain::IsDescribed(toolchain, path)) continue;
    return MakeError(v1::ErrorDetail::TOOLCHAIN,
                     StrCat("a worker has read ", path, ", which ", toolchain.described->file,
                            " lacks: the build was discarded. Describe the toolchain of the workers' image again, and "
                            "put the folders of your own headers into extra_include_paths"));
  }
  return absl::OkStatus();
}

std::optional<std::string> ChangedToolchainHeader(toolchain::FileDigests& digests,
                                                  const toolchain::Toolchain& toolchain,
                                                  const std::vector<StatedHeader>& headers,
                                                  std::vector<WatchedFile>& states) {
  if (toolchain.described != nullptr && toolchain.described->of_store) return std::nullopt;  // they are not here
  const std::vector<NamedFolder> folders = ToolchainFolders(toolchain);
  for (const StatedHeader& header : headers) {
    const std::string path = LocalPath(folders, header.name);
    if (path.empty()) return header.name;
    if (header.digest == Digest()) return path;
    const absl::StatusOr<Digest> digest = toolchain::DigestOfPart(toolchain, digests, path, &states);
    if (!digest.ok() || *digest != header.digest) return path;
  }
  return std::nullopt;
}

std::vector<std::string> OtherFiles(const toolchain::Toolchain& toolchain, const std::vector<StatedHeader>& headers) {
  const std::vector<NamedFolder> folders = ToolchainFolders(toolchain);
  std::vector<std::string> others;
  for (const StatedHeader& header : headers) {
    const bool is_portable = !header.name.starts_with('/') && !LocalPath(folders, header.name).empty();
    if (!is_portable) others.push_back(header.name);
  }
  return others;
}

}  // namespace kernix::build
