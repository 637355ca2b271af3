// SPDX-License-Identifier: Apache-2.0
#include "common/os/file_look.h"

#include <algorithm>

namespace kernix {

bool FileLook::Unchanged(const Files& files) {
  const auto [known, is_new] = lists_.try_emplace(files, false);
  if (is_new) {
    known->second =
        std::all_of(files->begin(), files->end(), [&](const WatchedFile& file) { return IsAsRecorded(file); });
  }
  return known->second;
}

bool FileLook::IsAsRecorded(const WatchedFile& file) {
  const auto [found, is_new] = found_.try_emplace(file.path);
  if (is_new) found->second = StateOf(env_, file.path).identity;
  return found->second == file.identity;
}

}  // namespace kernix
