// SPDX-License-Identifier: Apache-2.0
#include "daemon/build/files_read.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "daemon/base/error.h"
#include "daemon/base/input_root.h"
#include "daemon/base/paths.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/strings.h"
#include "daemon/build/dependency_file.h"
#include "daemon/build/toolchain_paths.h"
#include "daemon/codegen/file_reads.h"

namespace kernix::build {
namespace {

constexpr char kSharedAdvice[] =
    "this kernixd is shared and reads no file of the machine but the toolchain's. Give the header's folder in "
    "extra_include_paths and include it by its name";
constexpr char kQuestionAdvice[] =
    "kernix cannot notice when the answer changes. Give the header's folder in extra_include_paths and ask for its "
    "name, or pass -D with the answer";

bool InToolchain(const std::vector<NamedFolder>& folders, const std::string& path) {
  return PortablePath(folders, path) != NormalizePath(path);
}

// Compilers shorten the paths of system headers by resolving links.
bool InToolchain(Env& env, const toolchain::Toolchain& toolchain, const std::string& path) {
  std::vector<NamedFolder> folders = ToolchainFolders(toolchain);
  if (InToolchain(folders, path)) return true;
  const absl::StatusOr<std::string> real = env.RealPath(path);
  if (!real.ok()) return false;
  for (NamedFolder& folder : folders) folder.path = env.RealPath(folder.path).value_or(folder.path);
  return InToolchain(folders, *real);
}

// Whether a path walks out of the input root, or out of an include root, even to come back: that one is a link, and
// what lies above it is not what its name says.
bool LeavesRoot(const std::string& relative) {
  std::vector<absl::string_view> folders;
  for (const absl::string_view part : absl::StrSplit(ToAbsl(relative), '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      folders.push_back(part);
      continue;
    }
    const bool at_include_root = folders.size() == 2 && folders.front() == kIncludeRootsFolder;
    if (folders.empty() || at_include_root) return true;
    folders.pop_back();
  }
  return false;
}

absl::Status ReadError(std::string_view tool, const std::string& path) {
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat("the ", tool, " has read ", path,
                          ", because a macro or an assembler directive of the sources names it, and kernix cannot take "
                          "its content into account: nothing was kept of this build. Give headers by their folders in "
                          "extra_include_paths, and write data into a header (`xxd -i` does)"));
}

// What texts are asked for besides what the tools never tell.
struct Asked {
  bool absolute_includes;
  bool assembler_text;
};

absl::Status CheckTexts(Env& env, const BuildRequest& request, const std::vector<codegen::TextView>& texts,
                        const Asked& asked) {
  const auto rule = [&](const std::string& path, bool question) -> std::string {
    if (InToolchain(env, *request.toolchain, path)) return "";
    if (question) return kQuestionAdvice;
    return asked.absolute_includes ? kSharedAdvice : "";
  };
  return codegen::CheckFileReads(texts, {.absolute_path = rule, .assembler_text = asked.assembler_text});
}

std::vector<codegen::TextView> SourceTexts(const BuildRequest& request) {
  std::vector<codegen::TextView> texts;
  for (const Unit& unit : request.units) {
    for (const codegen::SourceText& source : unit.sources) texts.push_back({source.label, source.text});
  }
  return texts;
}

absl::Status CheckToolReads(Env& env, const toolchain::Toolchain& toolchain, const std::vector<std::string>& compiler,
                            const std::vector<std::string>& assembler, toolchain::FlagPolicy policy) {
  for (const std::string& path : compiler) {
    const bool absolute = path.front() == '/';
    const bool tracked = absolute && policy == toolchain::FlagPolicy::kPerUser;  // by its digest, with the artifact
    const bool known = absolute ? tracked || InToolchain(env, toolchain, path) : !LeavesRoot(path);
    if (!known) return ReadError("compiler", path);
  }
  for (const std::string& path : assembler) {
    if (path.front() == '/' || LeavesRoot(path)) return ReadError("assembler", path);
  }
  return absl::OkStatus();
}

std::vector<std::string> PathsIn(const std::vector<std::string_view>& dependency_files) {
  std::vector<std::string> paths;
  for (const std::string_view file : dependency_files) {
    const std::vector<std::string> more = ParseDependencyFile(file);
    paths.insert(paths.end(), more.begin(), more.end());
  }
  return paths;
}

// The headers of the request that were read, by the first of their names: one content may have any number of them.
std::map<Digest, std::string> HeadersRead(const BuildRequest& request, const std::vector<std::string>& read) {
  absl::flat_hash_set<std::string> paths;
  for (const std::string& path : read) paths.insert(NormalizePath(path));
  std::map<Digest, std::string> headers;
  for (const HeaderRef& header : request.headers) {
    std::string name = HeaderName(request, header);
    if (paths.contains(NormalizePath(name))) headers.try_emplace(header.digest, std::move(name));
  }
  return headers;
}

}  // namespace

absl::Status CheckSources(Env& env, const BuildRequest& request, toolchain::FlagPolicy policy) {
  const bool shared = policy == toolchain::FlagPolicy::kShared;
  return CheckTexts(env, request, SourceTexts(request), {.absolute_includes = shared, .assembler_text = true});
}

absl::Status CheckFilesRead(Env& env, const BuildRequest& request, const HeaderContents& contents,
                            const ToolReads& reads, toolchain::FlagPolicy policy) {
  const std::vector<std::string> read = PathsIn(reads.compiler);
  const absl::Status by_tools = CheckToolReads(env, *request.toolchain, read, PathsIn(reads.assembler), policy);
  const std::map<Digest, std::string> headers = HeadersRead(request, read);
  std::vector<codegen::TextView> texts = SourceTexts(request);
  for (const auto& [digest, name] : headers) texts.push_back({name, *contents.at(digest)});
  // Where a tool tells, its word counts, and the texts are asked only for the line of what it has read.
  const bool shared = policy == toolchain::FlagPolicy::kShared;
  const Asked asked{.absolute_includes = shared && !by_tools.ok(),
                    .assembler_text = !by_tools.ok() || reads.assembler.empty()};
  KERNIX_RETURN_IF_ERROR(CheckTexts(env, request, texts, asked));
  return by_tools;
}

}  // namespace kernix::build
