// SPDX-License-Identifier: Apache-2.0
//
// What `kernixctl top` shows, without a terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernix/client.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::ctl {

struct TopData {
  DaemonInfo info;
  v1::GetCacheStatsResponse stats;
  v1::GetStatusResponse status;
};

enum class TopOrder { kTime, kName, kUser };

enum class TopKey { kNone, kQuit, kCancel };

// Ctrl-D, and what a terminal that is gone types.
inline constexpr char kEndKey[] = "\x04";

// What the user has chosen with keys.
class TopView {
 public:
  // `keys`: shows the cursor, and a line with the keys.
  explicit TopView(bool keys) : has_keys_(keys) {}

  // `key`: a character, or "\x1b[A" and "\x1b[B" for the arrows. Changes the view, or returns what else is to be done.
  TopKey Press(const std::string& key);

  // At most `height` lines of at most `width` characters. Shows `message` instead of the keys if there is one.
  std::vector<std::string> Draw(const TopData& data, size_t width, size_t height, const std::string& message);

  // The load that the cursor is on, as of the last Draw().
  std::optional<uint64_t> selected() const { return selected_; }

 private:
  std::vector<v1::RunningLoad> Shown(const v1::GetStatusResponse& status) const;
  std::string KeysLine() const;
  void KeepSelection(const std::vector<v1::RunningLoad>& loads);

  const bool has_keys_;
  TopOrder order_ = TopOrder::kTime;
  std::string filter_;
  bool types_filter_ = false;
  int step_ = 0;  // how far the cursor moves at the next Draw()
  std::optional<uint64_t> selected_;
};

}  // namespace kernix::ctl
