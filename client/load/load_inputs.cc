// SPDX-License-Identifier: Apache-2.0
#include "client/load/load_inputs.h"

#include <algorithm>
#include <utility>

namespace kernix {

void LoadInputs::Add(const std::vector<std::string>& files, const std::set<std::string>& searched) {
  files_.insert(files.begin(), files.end());
  searched_.insert(searched.begin(), searched.end());
}

std::vector<std::string> LoadInputs::Paths() const {
  std::vector<std::string> paths(files_.begin(), files_.end());
  paths.insert(paths.end(), searched_.begin(), searched_.end());
  return paths;
}

std::optional<std::vector<WatchedFile>> LoadInputs::Look() const {
  std::vector<WatchedFile> inputs;
  for (const std::string& path : files_) {
    inputs.push_back(StateOf(env_, path));
    if (!inputs.back().identity) return std::nullopt;
  }
  for (const std::string& path : searched_) inputs.push_back(StateOf(env_, path));
  const bool young = std::any_of(inputs.begin(), inputs.end(), [&](const WatchedFile& input) {
    return input.identity && !input.identity->SettledAt(begun_unix_ms_);
  });
  return young ? std::nullopt : std::optional(std::move(inputs));
}

}  // namespace kernix
