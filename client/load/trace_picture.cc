// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "kernix/trace.h"

namespace kernix {
namespace {

using How = TracedStep::How;
using std::chrono::microseconds;

constexpr size_t kLeastWidth = 60;
constexpr size_t kTimeWidth = 8;  // "12.3 min"
constexpr char kWait = '.';

struct Sign {
  How how;
  char sign;
  const char* meaning;
};

constexpr std::array<Sign, 6> kSigns = {{{How::kRun, '#', "ran"},
                                         {How::kReused, 'r', "reused from an earlier build"},
                                         {How::kJoined, 'j', "joined with another build's"},
                                         {How::kUpstream, 'u', "taken from another node"},
                                         {How::kRemote, '@', "ran on a builder"},
                                         {How::kDaemon, '-', "kernixd itself"}}};

char SignOf(How how) {
  return std::find_if(kSigns.begin(), kSigns.end(), [&](const Sign& sign) { return sign.how == how; })->sign;
}

// At most kTimeWidth characters for what takes less than a day.
std::string Time(microseconds time) {
  const double us = static_cast<double>(time.count());
  if (us < 10e3) return absl::StrFormat("%.1f ms", us / 1e3);
  if (us < 10e6) return absl::StrFormat("%.0f ms", us / 1e3);
  return us < 600e6 ? absl::StrFormat("%.1f s", us / 1e6) : absl::StrFormat("%.1f min", us / 60e6);
}

// Nothing for what does not show.
std::string TimeOrNothing(microseconds time) { return time < microseconds(50) ? "" : Time(time); }

size_t Characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

// Where the character of this number begins.
size_t Offset(std::string_view text, size_t character) {
  size_t offset = 0;
  for (; character > 0; --character) offset += FirstCharacter(text.substr(offset)).bytes.size();
  return offset;
}

// The end of a name tells units apart, its beginning steps: cuts in the middle.
std::string Fit(const std::string& name, size_t width) {
  const size_t length = Characters(name);
  if (length <= width) return name + std::string(width - length, ' ');
  const size_t tail = (width - 2) / 2;
  return StrCat(name.substr(0, Offset(name, width - 2 - tail)), "..", name.substr(Offset(name, length - tail)));
}

std::string Right(const std::string& text, size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

// The one time axis of all bars.
class Axis {
 public:
  Axis(microseconds total, size_t width) : total_(std::max(total, microseconds(1))), width_(width) {}

  size_t width() const { return width_; }

  // Something of each step can be seen.
  std::string Bar(const TracedStep& step) const {
    const size_t start = std::min(At(step.begin + step.waited), width_ - 1);
    const size_t end = std::max(At(step.begin + step.waited + step.took), start + 1);
    std::string bar(end, ' ');
    const size_t wait = std::min(At(step.begin), start);
    std::fill(bar.begin() + static_cast<ptrdiff_t>(wait), bar.begin() + static_cast<ptrdiff_t>(start), kWait);
    std::fill(bar.begin() + static_cast<ptrdiff_t>(start), bar.end(), SignOf(step.how));
    return bar;
  }

 private:
  size_t At(microseconds time) const {
    const double part = static_cast<double>(time.count()) / static_cast<double>(total_.count());
    return std::min(static_cast<size_t>(part * static_cast<double>(width_) + 0.5), width_);
  }

  const microseconds total_;
  const size_t width_;
};

std::string Legend(const BuildTrace& trace) {
  std::vector<std::string> signs;
  const auto add = [&](bool occurs, char sign, const char* meaning) {
    if (occurs) signs.push_back(StrCat(std::string(1, sign), " ", meaning));
  };
  const auto any = [&](auto is) { return std::any_of(trace.steps.begin(), trace.steps.end(), is); };
  add(any([](const TracedStep& step) { return step.waited.count() > 0; }), kWait, "waited for its turn");
  for (const Sign& sign : kSigns) {
    add(any([&](const TracedStep& step) { return step.how == sign.how; }), sign.sign, sign.meaning);
  }
  return absl::StrJoin(signs, "   ");
}

std::string Sums(const BuildTrace& trace) {
  std::array<int, kSigns.size()> counts{};
  microseconds ran{0};
  microseconds waited{0};
  for (const TracedStep& step : trace.steps) {
    ++counts[static_cast<size_t>(step.how)];
    if (step.how == How::kRun) ran += step.took;
    waited += step.waited;
  }
  const auto count = [&](How how) { return counts[static_cast<size_t>(how)]; };
  const char* ran_text = count(How::kRun) == 1 ? " step ran, " : " steps ran, ";
  std::string sums = StrCat("total ", Time(trace.total), ": ", count(How::kRun), ran_text, Time(ran), " in all, after ",
                            Time(waited), " of waiting");
  if (count(How::kReused) > 0) StrAppend(&sums, "; ", count(How::kReused), " reused");
  if (count(How::kJoined) > 0) StrAppend(&sums, "; ", count(How::kJoined), " joined");
  if (count(How::kUpstream) > 0) StrAppend(&sums, "; ", count(How::kUpstream), " from other nodes");
  if (count(How::kRemote) > 0) StrAppend(&sums, "; ", count(How::kRemote), " on builders");
  if (trace.left_out > 0) StrAppend(&sums, "; ", trace.left_out, " short steps are not shown");
  return sums;
}

}  // namespace

std::string DrawTrace(const BuildTrace& trace, size_t width) {
  width = std::max(width, kLeastWidth);
  size_t names = sizeof("STEP") - 1;
  for (const TracedStep& step : trace.steps) names = std::max(names, Characters(Printable(step.name)));
  names = std::min(names, width / 3);
  const Axis axis(trace.total, width - names - 2 * kTimeWidth - 6);

  const std::string end = Time(trace.total);
  std::string picture = StrCat(Fit("STEP", names), "  ", Right("WAITED", kTimeWidth), "  ", Right("TOOK", kTimeWidth),
                               "  0", Right(end, axis.width() - 1), "\n");
  for (const TracedStep& step : trace.steps) {
    StrAppend(&picture, Fit(Printable(step.name), names), "  ", Right(TimeOrNothing(step.waited), kTimeWidth), "  ",
              Right(Time(step.took), kTimeWidth), "  ", axis.Bar(step), "\n");
  }
  return StrCat(picture, "\n", Legend(trace), "\n", Sums(trace), "\n");
}

}  // namespace kernix
