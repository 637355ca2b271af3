// SPDX-License-Identifier: Apache-2.0
#include "daemon/build/files_read.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "daemon/base/error.h"
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

bool LeavesRoot(const std::string& relative) {
  const std::string path = NormalizePath(relative);
  return path == ".." || absl::StartsWith(path, "../");
}

absl::Status ReadError(std::string_view tool, const std::string& path) {
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat("the ", tool, " has read ", path,
                          ", because a macro or an assembler directive of the sources names it, and kernix cannot take "
                          "its content into account: nothing was kept of this build. Give headers by their folders in "
                          "extra_include_paths, and write data into a header (`xxd -i` does)"));
}

}  // namespace

absl::Status CheckTexts(Env& env, const BuildRequest& request, const HeaderContents& contents,
                        toolchain::FlagPolicy policy) {
  std::vector<codegen::SourceText> texts = request.sources;
  for (const HeaderRef& header : request.headers) {
    const auto content = contents.find(header.digest);
    if (content != contents.end()) texts.push_back({HeaderName(request, header), *content->second});
  }
  return codegen::CheckFileReads(texts, [&](const std::string& path, bool question) -> std::string {
    if (InToolchain(env, *request.toolchain, path)) return "";
    if (question) return kQuestionAdvice;
    return policy == toolchain::FlagPolicy::kShared ? kSharedAdvice : "";
  });
}

absl::Status CheckFilesRead(Env& env, const toolchain::Toolchain& toolchain, std::string_view dependency_file,
                            std::string_view assembler_file, toolchain::FlagPolicy policy) {
  for (const std::string& path : ParseDependencyFile(dependency_file)) {
    const bool absolute = path.front() == '/';
    const bool tracked = absolute && policy == toolchain::FlagPolicy::kPerUser;  // by its digest, with the artifact
    const bool known = absolute ? tracked || InToolchain(env, toolchain, path) : !LeavesRoot(path);
    if (!known) return ReadError("compiler", path);
  }
  for (const std::string& path : ParseDependencyFile(assembler_file)) {
    if (path.front() == '/' || LeavesRoot(path)) return ReadError("assembler", path);
  }
  return absl::OkStatus();
}

}  // namespace kernix::build
