// SPDX-License-Identifier: Apache-2.0
#include "kernix/trace.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/json.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"

namespace kernix {
namespace {

using How = TracedStep::How;
using std::chrono::microseconds;

// The facts about each way to a result: its name in Chrome's format, and its sign in a picture.
struct Way {
  How how;
  const char* name;
  char sign;
  const char* meaning;
};

constexpr std::array<Way, 5> kWays = {{{How::kRun, "run", '#', "ran"},
                                       {How::kReused, "reused", 'r', "reused from an earlier build"},
                                       {How::kUpstream, "upstream", 'u', "taken from another node"},
                                       {How::kRemote, "remote", '@', "ran on a worker"},
                                       {How::kDaemon, "kernixd", '-', "kernixd itself"}}};

const Way& WayOf(How how) {
  return *std::find_if(kWays.begin(), kWays.end(), [&](const Way& way) { return way.how == how; });
}

// --- Chrome's format -------------------------------------------------------------------------------------------------

// One process has all rows. Row 0 is kernixd's own.
constexpr uint64_t kProcess = 1;

std::string Metadata(std::string_view what, uint64_t row, const std::string& arguments) {
  return JsonObject()
      .Text("name", what)
      .Text("ph", "M")
      .Number("pid", kProcess)
      .Number("tid", row)
      .Json("args", arguments)
      .Str();
}

void AddRow(uint64_t row, std::string_view name, std::vector<std::string>& events) {
  events.push_back(Metadata("thread_name", row, JsonObject().Text("name", name).Str()));
  events.push_back(Metadata("thread_sort_index", row, JsonObject().Number("sort_index", row).Str()));
}

std::string Complete(std::string_view name, std::string_view category, uint64_t row, microseconds begin,
                     microseconds duration, const std::string& arguments) {
  return JsonObject()
      .Text("name", name)
      .Text("cat", category)
      .Text("ph", "X")
      .Number("pid", kProcess)
      .Number("tid", row)
      .Number("ts", int64_t{begin.count()})
      .Number("dur", int64_t{duration.count()})
      .Json("args", arguments)
      .Str();
}

void AddStep(const TracedStep& step, uint64_t row, std::vector<std::string>& events) {
  if (step.waited.count() > 0) {
    events.push_back(
        Complete("queue", "queue", row, step.begin, step.waited, JsonObject().Text("for", step.name).Str()));
  }
  const std::string_view how = HowName(step.how);
  JsonObject arguments;
  arguments.Text("how", how);
  if (step.peak_memory_bytes > 0) arguments.Number("peak_memory_bytes", step.peak_memory_bytes);
  events.push_back(Complete(step.name, how, row, step.begin + step.waited, step.took, arguments.Str()));
}

// --- The picture -----------------------------------------------------------------------------------------------------

constexpr size_t kLeastWidth = 60;
constexpr size_t kTimeWidth = 8;  // "12.3 min"
constexpr char kWait = '.';

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
    std::fill(bar.begin() + static_cast<ptrdiff_t>(start), bar.end(), WayOf(step.how).sign);
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
  for (const Way& way : kWays) {
    add(any([&](const TracedStep& step) { return step.how == way.how; }), way.sign, way.meaning);
  }
  return absl::StrJoin(signs, "   ");
}

std::string Sums(const BuildTrace& trace) {
  microseconds ran{0};
  microseconds waited{0};
  for (const TracedStep& step : trace.steps) {
    if (step.how == How::kRun) ran += step.took;
    waited += step.waited;
  }
  const auto count = [&](How how) {
    return std::count_if(trace.steps.begin(), trace.steps.end(),
                         [&](const TracedStep& step) { return step.how == how; });
  };
  const char* ran_text = count(How::kRun) == 1 ? " step ran, " : " steps ran, ";
  std::string sums = StrCat("total ", Time(trace.total), ": ", count(How::kRun), ran_text, Time(ran), " in all, after ",
                            Time(waited), " of waiting");
  if (count(How::kReused) > 0) StrAppend(&sums, "; ", count(How::kReused), " reused");
  if (count(How::kUpstream) > 0) StrAppend(&sums, "; ", count(How::kUpstream), " from other nodes");
  if (count(How::kRemote) > 0) StrAppend(&sums, "; ", count(How::kRemote), " on workers");
  if (trace.left_out > 0) StrAppend(&sums, "; ", trace.left_out, " short steps are not shown");
  return sums;
}

}  // namespace

std::string_view HowName(How how) { return WayOf(how).name; }

std::string ChromeTrace(const BuildTrace& trace, std::string_view title) {
  std::vector<std::string> events = {Metadata("process_name", 0, JsonObject().Text("name", title).Str())};
  AddRow(0, "kernixd", events);
  uint64_t rows = 1;
  for (const TracedStep& step : trace.steps) {
    const bool is_own_work = step.how == TracedStep::How::kDaemon;
    const uint64_t row = is_own_work ? 0 : rows++;
    if (!is_own_work) AddRow(row, step.name, events);
    AddStep(step, row, events);
  }
  const std::string other = JsonObject()
                                .Number("began_unix_ms", trace.began_unix_ms)
                                .Number("total_us", int64_t{trace.total.count()})
                                .Number("left_out", uint64_t{trace.left_out})
                                .Str();
  return JsonObject()
      .Json("traceEvents", JsonArray(events))
      .Text("displayTimeUnit", "ms")
      .Json("otherData", other)
      .Str();
}

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
