// SPDX-License-Identifier: Apache-2.0
#include "common/os/tool_folders.h"

#include <set>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/base/paths.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

std::string InstallationOf(const std::string& program) {
  const std::string folder = Dirname(program);
  return Basename(folder) == "bin" ? Dirname(folder) : folder;
}

// A tool needs none of these, and "/" would be everything.
bool IsOfSystem(const std::string& folder) {
  return folder == "/" || folder == "/dev" || (folder + "/").starts_with("/usr/") || folder.starts_with("/proc/");
}

}  // namespace

std::vector<std::string> ToolFolders(Env& env, const std::vector<std::string>& programs,
                                     const std::map<std::string, std::string>& environment) {
  std::set<std::string> folders;
  for (const std::string& program : programs) {
    if (!program.starts_with('/')) continue;
    folders.insert(InstallationOf(program));
    folders.insert(InstallationOf(env.RealPath(program).value_or(program)));
  }
  for (const auto& [name, value] : environment) {
    for (const absl::string_view folder : absl::StrSplit(ToAbsl(value), ':')) {
      if (absl::StartsWith(folder, "/")) folders.insert(std::string(folder));
    }
  }
  std::erase_if(folders, IsOfSystem);
  return {folders.begin(), folders.end()};
}

}  // namespace kernix
