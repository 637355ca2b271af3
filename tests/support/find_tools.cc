// SPDX-License-Identifier: Apache-2.0
#include "tests/support/find_tools.h"

#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "common/base/paths.h"

namespace kernix::testing {
namespace {

bool IsProgram(const std::string& path) {
  return std::filesystem::is_regular_file(path) && access(path.c_str(), X_OK) == 0;
}

// The path contains the version of the venv's Python.
std::optional<std::string> FindNvccOfVenv() {
  const std::filesystem::path libraries = std::filesystem::path(KERNIX_SOURCE_DIR) / ".venv" / "lib";
  std::error_code none;
  for (const auto& python : std::filesystem::directory_iterator(libraries, none)) {
    const auto nvcc = python.path() / "site-packages" / "nvidia" / "cu13" / "bin" / "nvcc";
    if (IsProgram(nvcc)) return std::filesystem::canonical(nvcc).string();
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> FindOnPath(const std::string& name) {
  std::istringstream folders(ProcessGetEnv("PATH").value_or("/usr/bin:/bin"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (folder.starts_with("/") && IsProgram(JoinPath(folder, name))) return JoinPath(folder, name);
  }
  return std::nullopt;
}

std::optional<std::string> FindNvcc() {
  if (std::optional<std::string> chosen = ProcessGetEnv("KERNIX_TEST_NVCC")) return chosen;
  if (std::optional<std::string> found = FindOnPath("nvcc")) return found;
  if (IsProgram("/usr/local/cuda/bin/nvcc")) return "/usr/local/cuda/bin/nvcc";
  return FindNvccOfVenv();
}

}  // namespace kernix::testing
