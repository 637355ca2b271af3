// SPDX-License-Identifier: Apache-2.0
#include "common/os/seen_files.h"

namespace kernix {

bool SeenFiles::Changed(const std::vector<std::string>& paths) {
  before_ = Look(paths);
  begun_unix_ms_ = env_.UnixMillis();
  return seen_ != before_;
}

// A file that the load has found only now, and that is too young to tell, is left out: Changed() will find that new.
void SeenFiles::NoteLoad(const std::vector<std::string>& paths) {
  States seen;
  for (const auto& [path, identity] : Look(paths)) {
    const auto known = before_.find(path);
    if (known != before_.end()) {
      seen.insert(*known);
    } else if (!identity || identity->SettledAt(begun_unix_ms_)) {
      seen.emplace(path, identity);
    }
  }
  seen_ = std::move(seen);
}

SeenFiles::States SeenFiles::Look(const std::vector<std::string>& paths) const {
  States states;
  for (const std::string& path : paths) states.emplace(path, StateOf(env_, path).identity);
  return states;
}

}  // namespace kernix
