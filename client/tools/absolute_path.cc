// SPDX-License-Identifier: Apache-2.0
#include "client/tools/absolute_path.h"

#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "common/base/paths.h"

namespace kernix {

std::string AbsolutePath(std::string_view path) {
  if (!path.empty() && path.front() == '/') return std::string(path);
  const std::unique_ptr<char, decltype(&std::free)> folder(getcwd(nullptr, 0), &std::free);
  return JoinPath(folder == nullptr ? "/" : folder.get(), path);
}

}  // namespace kernix
