// SPDX-License-Identifier: Apache-2.0
#include "daemon/codegen/branches.h"

namespace kernix::codegen {
namespace {

constexpr int kMaxDepth = 100;  // what is deeper counts as certain where it stands

}  // namespace

void Branches::If(std::optional<bool> condition) {
  open_.push_back({here_, ++conditionals_});
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
  const int depth = places_[static_cast<size_t>(here_)].depth + 1;
  if (certain || depth > kMaxDepth) return;
  places_.push_back({conditional.around, conditional.conditional, depth});
  here_ = static_cast<int>(places_.size()) - 1;
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

}  // namespace kernix::codegen
