// SPDX-License-Identifier: Apache-2.0
#include "client/connection/kernixd_program.h"

#include <dlfcn.h>

#include <optional>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/tools/program_search.h"
#include "common/base/error.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

constexpr char kProgram[] = "kernixd";

// The folder of the executable or extension module that contains this code.
std::string OwnFolder(Env& env) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&FindKernixd), &info) == 0 || info.dli_fname == nullptr) return "";
  // dladdr() may report an executable by the name that the user typed; the kernel knows its path.
  absl::StatusOr<std::string> path = env.RealPath(info.dli_fname);
  if (!path.ok()) path = env.RealPath("/proc/self/exe");
  return path.ok() ? Dirname(*path) : "";
}

std::vector<std::string> Candidates(const ClientEnvironment& environment) {
  std::vector<std::string> paths;
  if (const std::string own = OwnFolder(*environment.env); !own.empty()) {
    for (const char* folder : {"", "bin", "../bin"}) {
      paths.push_back(NormalizePath(JoinPath(JoinPath(own, folder), kProgram)));
    }
  }
  const std::string path = environment.get_env("PATH").value_or("");
  for (absl::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
    if (folder.front() == '/') paths.push_back(JoinPath(ToStd(folder), kProgram));
  }
  return paths;
}

absl::StatusOr<std::string> CheckNamed(Env& env, const std::string& path, const std::string& origin) {
  const absl::StatusOr<std::string> real = env.RealPath(path);
  if (real.ok() && IsProgram(env, *real)) return *real;
  return MakeError(v1::ErrorDetail::UNREACHABLE, StrCat(origin, ": ", path, " is not an executable program"));
}

}  // namespace

absl::StatusOr<std::string> FindKernixd(const ClientEnvironment& environment, const std::string& named) {
  Env& env = *environment.env;
  if (!named.empty()) return CheckNamed(env, named, "the requested kernixd");
  if (const std::optional<std::string> path = environment.get_env("KERNIXD")) return CheckNamed(env, *path, "$KERNIXD");
  const std::vector<std::string> candidates = Candidates(environment);
  for (const std::string& path : candidates) {
    if (IsProgram(env, path)) return path;
  }
  return MakeError(v1::ErrorDetail::UNREACHABLE,
                   StrCat("the program kernixd was not found; install it, or name it in $KERNIXD. Looked at: ",
                          absl::StrJoin(candidates, ", ")));
}

}  // namespace kernix
