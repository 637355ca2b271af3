// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/load_board.h"

#include <algorithm>

#include "common/base/utf8.h"

namespace kernix::server {
namespace {

// Names and labels come from requests that nobody has checked yet.
constexpr size_t kLongestName = 200;
constexpr int kMostSources = 8;

std::string Shortened(const std::string& text) { return ToValidUtf8(text.substr(0, kLongestName)); }

}  // namespace

std::unique_ptr<LoadBoard::Place> LoadBoard::Add(UserId owner, const v1::LoadRequest& request, MonotonicTime begin) {
  Load load{.owner = owner, .name = Shortened(request.name()), .begin = begin};
  for (int i = 0; i < std::min(request.source_size(), kMostSources); ++i) {
    load.sources.push_back(Shortened(request.source(i).label()));
  }
  const MutexLock lock(mutex_);
  const int id = next_id_++;
  loads_.emplace(id, std::move(load));
  return std::make_unique<Place>(*this, id);
}

std::vector<LoadBoard::Load> LoadBoard::List() const {
  const MutexLock lock(mutex_);
  std::vector<Load> loads;
  for (const auto& [id, load] : loads_) loads.push_back(load);
  return loads;
}

void LoadBoard::Note(int id, const v1::Progress& progress) {
  const MutexLock lock(mutex_);
  loads_.at(id).progress = progress;
}

void LoadBoard::Remove(int id) {
  const MutexLock lock(mutex_);
  loads_.erase(id);
}

}  // namespace kernix::server
