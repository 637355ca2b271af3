// SPDX-License-Identifier: Apache-2.0
#include "common/cxx/branches.h"

#include <algorithm>

namespace kernix::language {
namespace {

constexpr int kMaxDepth = 100;  // what is deeper counts as certain where it stands

}  // namespace

void Branches::If(std::optional<bool> condition) {
  open_.push_back({here_, static_cast<int>(conditionals_.size())});
  conditionals_.push_back({here_, {}, false});
  Begin(open_.back(), condition);
}

void Branches::Leave() {
  if (open_.empty()) return;
  if (open_.back().is_excluded) --excluded_;
  open_.back().is_excluded = false;
  here_ = open_.back().around;
}

void Branches::Else(std::optional<bool> condition) {
  if (!open_.empty()) Begin(open_.back(), condition);
}

void Branches::End() {
  if (open_.empty()) return;
  Leave();
  open_.pop_back();
}

void Branches::Begin(Open& conditional, std::optional<bool> condition) {
  conditional.is_excluded = conditional.is_decided || condition == false;
  if (conditional.is_excluded) {
    ++excluded_;
    return;
  }
  const bool certain = condition == true && !conditional.is_open;
  conditional.is_decided = condition == true;
  conditional.is_open = true;
  Conditional& all = conditionals_[static_cast<size_t>(conditional.conditional)];
  all.is_complete = conditional.is_decided;
  const int depth = places_[static_cast<size_t>(here_)].depth + 1;
  if (certain || depth > kMaxDepth) return;
  places_.push_back({conditional.around, conditional.conditional, depth});
  here_ = static_cast<int>(places_.size()) - 1;
  all.places.push_back(here_);
}

bool Branches::Cover(std::vector<int> from, int to) const {
  for (size_t i = 0; i < from.size(); ++i) {
    if (Reaches(from[i], to) == Reach::kAlways) return true;
    const Conditional& all = conditionals_[static_cast<size_t>(places_[static_cast<size_t>(from[i])].conditional)];
    const auto is_known = [&](int place) { return std::find(from.begin(), from.end(), place) != from.end(); };
    const bool ended = std::none_of(open_.begin(), open_.end(), [&](const Open& open) {
      return &all == &conditionals_[static_cast<size_t>(open.conditional)];
    });
    const bool covers = ended && all.is_complete && all.places.size() <= from.size() && !is_known(all.around) &&
                        std::all_of(all.places.begin(), all.places.end(), is_known);
    if (covers) from.push_back(all.around);
  }
  return false;
}

Reach Branches::Reaches(int from, int to) const {
  const auto place = [this](int index) -> const Place& { return places_[static_cast<size_t>(index)]; };
  int below_from = 0;
  int below_to = 0;
  while (from != to) {
    int& deeper = place(from).depth >= place(to).depth ? from : to;
    (&deeper == &from ? below_from : below_to) = deeper;
    deeper = place(deeper).around;
  }
  if (below_from == 0) return Reach::kAlways;
  const bool exclusive = below_to != 0 && place(below_from).conditional == place(below_to).conditional;
  return exclusive ? Reach::kNever : Reach::kPerhaps;
}

}  // namespace kernix::language
