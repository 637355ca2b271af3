// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/folder_limit.h"

#include <limits>
#include <new>
#include <vector>

#include "common/base/paths.h"

namespace kernix::exec {
namespace {

constexpr Duration kBetweenLooks{200};
// Nothing below such a folder can be listed by its path (PATH_MAX is 4096).
constexpr size_t kLongestPath = 3000;
// The least room that a file or folder takes.
constexpr uint64_t kBytesOfAName = 4096;
constexpr uint64_t kTooMuch = std::numeric_limits<uint64_t>::max();

// Those of the files in `folder`, or a number above `most`. Does not follow links. A folder that hides its files has
// too much.
uint64_t BytesIn(Env& env, const std::string& folder, uint64_t most) {
  if (folder.size() > kLongestPath) return kTooMuch;
  const absl::StatusOr<std::vector<std::string>> names = env.ListDirectory(folder);
  if (!names.ok()) return absl::IsPermissionDenied(names.status()) ? kTooMuch : 0;
  uint64_t bytes = 0;
  for (const std::string& name : *names) {
    if (bytes > most) return bytes;
    const std::string path = JoinPath(folder, name);
    const absl::StatusOr<FileInfo> info = env.Stat(path, /*follow=*/false);
    if (!info.ok()) continue;  // it has gone
    const bool is_folder = info->type == FileType::kDirectory;
    const uint64_t content = is_folder ? BytesIn(env, path, most) : info->size;
    if (content == kTooMuch) return kTooMuch;
    bytes += content + kBytesOfAName;
  }
  return bytes;
}

}  // namespace

FolderLimit::FolderLimit(Env& env, const std::string& folder, uint64_t most, Cancellation& job) : env_(env) {
  if (most == 0) return;
  const uint64_t inputs = BytesIn(env, folder, kTooMuch - most - 1);
  thread_ = std::thread([this, folder, most = inputs + most, &job] { Watch(folder, most, job); });
}

FolderLimit::~FolderLimit() {
  over_.Cancel();
  if (thread_.joinable()) thread_.join();
}

void FolderLimit::Watch(const std::string& folder, uint64_t most, Cancellation& job) {
  while (Pause(kBetweenLooks, &over_)) {
    try {
      if (BytesIn(env_, folder, most) <= most) continue;
    } catch (const std::bad_alloc&) {
      continue;  // the next look may have more luck
    }
    exceeded_ = true;
    return job.Cancel();
  }
}

}  // namespace kernix::exec
