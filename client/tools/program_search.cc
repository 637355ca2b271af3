// SPDX-License-Identifier: Apache-2.0
#include "client/tools/program_search.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_split.h"
#include "client/tools/absolute_path.h"

namespace kernix {

bool IsProgram(Env& env, const std::string& path) {
  const absl::StatusOr<FileInfo> info = env.Stat(path);
  return info.ok() && info->type == FileType::kRegular && (info->mode & 0111) != 0;
}

std::optional<std::string> FirstOnPath(Env& env, const GetEnv& get_env, const std::string& name,
                                       const std::function<bool(const std::string& program)>& fits) {
  const std::string path = get_env("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (const absl::string_view folder : absl::StrSplit(path, ':')) {
    std::string candidate = AbsolutePath(JoinPath(std::string(folder), name));
    if (IsProgram(env, candidate) && fits(candidate)) return candidate;
  }
  return std::nullopt;
}

bool IsCompilerLauncher(Env& env, const std::string& path) {
  static constexpr std::string_view kLaunchers[] = {"ccache", "sccache", "distcc", "icecc", "buildcache"};
  const auto is_launcher = [](const std::string& name) {
    return std::find(std::begin(kLaunchers), std::end(kLaunchers), name) != std::end(kLaunchers);
  };
  if (is_launcher(Basename(path))) return true;
  const absl::StatusOr<std::string> real = env.RealPath(path);
  return real.ok() && is_launcher(Basename(*real));
}

}  // namespace kernix
