// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/remembered_toolchains.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/paths.h"
#include "common/os/file_identity.h"
#include "daemon/toolchain/description.h"

namespace kernix::toolchain {

void RememberedToolchains::Keep(const Toolchain& toolchain) {
  if (toolchain.described != nullptr) return;
  {
    const MutexLock lock(mutex_);
    if (!kept_.insert(toolchain.identity).second) return;
  }
  const std::string& folder = folders_.front();
  if (!env_.CreateDirectories(folder, 0700).ok()) return;
  (void)env_.WriteFileDurably(JoinPath(folder, toolchain.identity.Hex()), DescribeWithoutFiles(toolchain), 0600);
}

std::optional<Toolchain> RememberedToolchains::Last(v1::Language language) const {
  std::vector<std::pair<int64_t, std::string>> descriptions;  // by age
  for (const std::string& folder : folders_) {
    const absl::StatusOr<std::vector<std::string>> names = env_.ListDirectory(folder);
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      const std::string path = JoinPath(folder, name);
      const absl::StatusOr<FileInfo> info = env_.Stat(path);
      if (info.ok()) descriptions.emplace_back(info->mtime_ns, path);
    }
  }
  std::sort(descriptions.rbegin(), descriptions.rend());
  for (const auto& [age, path] : descriptions) {
    const WatchedFile state = StateOf(env_, path);  // before it is read
    const absl::StatusOr<std::string> text = env_.ReadFile(path);
    if (!text.ok()) continue;
    absl::StatusOr<Toolchain> toolchain = ReadDescription(path, *text, language);
    if (!toolchain.ok()) continue;
    toolchain->described = std::make_shared<const DescribedFiles>(DescribedFiles{.file = path, .of_store = true});
    toolchain->files = {state};
    return *std::move(toolchain);
  }
  return std::nullopt;
}

}  // namespace kernix::toolchain
