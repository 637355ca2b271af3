// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/top_view.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/kernixctl/format.h"
#include "client/kernixctl/reports.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/os/private_directory.h"

namespace kernix::ctl {
namespace {

constexpr char kSelected[] = "\x1b[7m";
constexpr char kPlain[] = "\x1b[0m";

constexpr const char* kOrders[] = {"time", "name", "user"};

std::string Percent(uint64_t part, uint64_t whole) { return whole == 0 ? "-" : StrCat(100 * part / whole, " %"); }

std::vector<std::string> Head(const TopData& data) {
  const v1::GetCacheStatsResponse& stats = data.stats;
  const std::string limit = stats.limit_bytes() == 0 ? "" : " of " + FormatBytes(stats.limit_bytes());
  return {StrCat("kernixd ", data.info.version, ", running for ",
                 FormatDuration(std::chrono::milliseconds(data.info.uptime_ms)), ", ", data.info.address),
          StrCat("jobs: ", data.info.running_jobs, " running, ", data.info.queued_jobs,
                 " queued   loads: ", data.status.load_size(), ", and ", data.status.hidden_loads(), " of other users"),
          StrCat("hits ", stats.hits(), " (", Percent(stats.hits(), stats.hits() + stats.misses()), ")   misses ",
                 stats.misses(), "   builds ", stats.builds(), "   failed ", stats.failures(), "   cache ",
                 FormatBytes(stats.bytes()), limit),
          ""};
}

bool Matches(const v1::RunningLoad& load, const std::string& filter) {
  return load.name().find(filter) != std::string::npos || DescribeUser(load.owner()).find(filter) != std::string::npos;
}

// Of printable text: the first `width` characters.
std::string Cut(const std::string& text, size_t width) {
  std::string cut;
  for (std::string_view rest = text; !rest.empty() && width > 0; --width) {
    const std::string_view bytes = FirstCharacter(rest).bytes;
    cut += bytes;
    rest.remove_prefix(bytes.size());
  }
  return cut;
}

std::vector<std::string> LoadLines(const std::vector<v1::RunningLoad>& loads) {
  std::vector<std::vector<std::string>> rows = {{"NAME", "USER", "FOR", "STATE", "SOURCES"}};
  for (const v1::RunningLoad& load : loads) {
    rows.push_back({load.name(), DescribeUser(load.owner()),
                    FormatDuration(std::chrono::milliseconds(load.elapsed_ms())), ProgressText(load.progress()),
                    absl::StrJoin(load.source(), ", ")});
  }
  return absl::StrSplit(FormatTable(std::move(rows)), '\n', absl::SkipEmpty());
}

}  // namespace

TopKey TopView::Press(const std::string& key) {
  if (key == kEndKey) return TopKey::kQuit;
  if (types_filter_) {
    if (key == "\n" || key == "\r" || key == "\x1b") {
      types_filter_ = false;
    } else if (key == "\x7f" || key == "\b") {
      if (!filter_.empty()) filter_.pop_back();
    } else if (Printable(key) == key) {
      filter_ += key;
    }
    return TopKey::kNone;
  }
  if (key == "q") return TopKey::kQuit;
  if (key == "c") return TopKey::kCancel;
  if (key == "s") order_ = static_cast<TopOrder>((static_cast<size_t>(order_) + 1) % std::size(kOrders));
  if (key == "/") types_filter_ = true, filter_.clear();
  if (key == "\x1b[A" || key == "k") step_ = -1;
  if (key == "\x1b[B" || key == "j") step_ = 1;
  return TopKey::kNone;
}

std::vector<v1::RunningLoad> TopView::Shown(const v1::GetStatusResponse& status) const {
  std::vector<v1::RunningLoad> loads;
  std::copy_if(status.load().begin(), status.load().end(), std::back_inserter(loads),
               [this](const v1::RunningLoad& load) { return Matches(load, filter_); });
  std::stable_sort(loads.begin(), loads.end(), [this](const v1::RunningLoad& a, const v1::RunningLoad& b) {
    if (order_ == TopOrder::kName) return a.name() < b.name();
    if (order_ == TopOrder::kUser) return DescribeUser(a.owner()) < DescribeUser(b.owner());
    return a.elapsed_ms() > b.elapsed_ms();
  });
  return loads;
}

// If the selected load has ended, none is selected, so that no key acts on another one.
void TopView::KeepSelection(const std::vector<v1::RunningLoad>& loads) {
  const int step = std::exchange(step_, 0);
  const auto at = std::find_if(loads.begin(), loads.end(), [this](const auto& load) { return load.id() == selected_; });
  const bool is_there = at != loads.end();
  selected_.reset();
  if (loads.empty() || (!is_there && step == 0)) return;
  const auto last = static_cast<int64_t>(loads.size()) - 1;
  selected_ = loads[is_there ? std::clamp<int64_t>(at - loads.begin() + step, 0, last) : 0].id();
}

std::string TopView::KeysLine() const {
  const std::string filter = types_filter_ || !filter_.empty() ? StrCat(": ", filter_) : "";
  return StrCat("q quit   s sort: ", kOrders[static_cast<size_t>(order_)], "   j k select   c cancel   / filter",
                filter);
}

std::vector<std::string> TopView::Draw(const TopData& data, size_t width, size_t height, const std::string& message) {
  const std::vector<v1::RunningLoad> loads = Shown(data.status);
  if (has_keys_) KeepSelection(loads);
  std::vector<std::string> lines = Head(data);
  const std::vector<std::string> rows = LoadLines(loads);
  for (size_t i = 0; i < rows.size() && lines.size() + 1 < height; ++i) {
    const bool selected = i > 0 && has_keys_ && loads[i - 1].id() == selected_;
    lines.push_back(selected ? StrCat(kSelected, Cut(rows[i], width), kPlain) : rows[i]);
  }
  if (!has_keys_) return lines;
  while (lines.size() + 1 < height) lines.emplace_back();
  lines.push_back(message.empty() ? KeysLine() : message);
  for (std::string& line : lines) {
    if (!line.starts_with(kSelected)) line = Cut(line, width);
  }
  if (lines.size() > height) lines.resize(height);
  return lines;
}

}  // namespace kernix::ctl
