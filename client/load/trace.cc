// SPDX-License-Identifier: Apache-2.0
#include "client/load/trace.h"

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

using Step = v1::TracedStep;

// The facts about each way to a result: its name in Chrome's format, and its sign in a picture.
struct Way {
  Step::How how;
  const char* name;
  char sign;
  const char* meaning;
};

constexpr std::array<Way, 5> kWays = {{{Step::RUN, "run", '#', "ran"},
                                       {Step::REUSED, "reused", 'r', "reused from an earlier build"},
                                       {Step::UPSTREAM, "upstream", 'u', "taken from another node"},
                                       {Step::REMOTE, "remote", '@', "ran on a worker"},
                                       {Step::DAEMON, "kernixd", '-', "kernixd itself"}}};

const Way& WayOf(Step::How how) {
  const auto* const found = std::find_if(kWays.begin(), kWays.end(), [&](const Way& way) { return way.how == how; });
  return found == kWays.end() ? kWays.front() : *found;
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

std::string Complete(std::string_view name, std::string_view category, uint64_t row, uint64_t begin_us,
                     uint64_t duration_us, const std::string& arguments) {
  return JsonObject()
      .Text("name", name)
      .Text("cat", category)
      .Text("ph", "X")
      .Number("pid", kProcess)
      .Number("tid", row)
      .Number("ts", begin_us)
      .Number("dur", duration_us)
      .Json("args", arguments)
      .Str();
}

void AddStep(const Step& step, uint64_t row, std::vector<std::string>& events) {
  if (step.waited_us() > 0) {
    events.push_back(Complete("queue", "queue", row, step.begin_us(), step.waited_us(),
                              JsonObject().Text("for", step.name()).Str()));
  }
  const std::string_view how = HowName(step.how());
  JsonObject arguments;
  arguments.Text("how", how);
  if (step.peak_memory_bytes() > 0) arguments.Number("peak_memory_bytes", step.peak_memory_bytes());
  events.push_back(
      Complete(step.name(), how, row, step.begin_us() + step.waited_us(), step.took_us(), arguments.Str()));
}

// --- The picture -----------------------------------------------------------------------------------------------------

constexpr size_t kLeastWidth = 60;
constexpr size_t kTimeWidth = 8;  // "12.3 min"
constexpr char kWait = '.';

// At most kTimeWidth characters for what takes less than a day.
std::string Time(uint64_t time_us) {
  const auto us = static_cast<double>(time_us);
  if (us < 10e3) return absl::StrFormat("%.1f ms", us / 1e3);
  if (us < 10e6) return absl::StrFormat("%.0f ms", us / 1e3);
  return us < 600e6 ? absl::StrFormat("%.1f s", us / 1e6) : absl::StrFormat("%.1f min", us / 60e6);
}

// Nothing for what does not show.
std::string TimeOrNothing(uint64_t time_us) { return time_us < 50 ? "" : Time(time_us); }

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
  Axis(uint64_t total_us, size_t width) : total_us_(std::max<uint64_t>(total_us, 1)), width_(width) {}

  size_t width() const { return width_; }

  // Something of each step can be seen.
  std::string Bar(const Step& step) const {
    const uint64_t start_us = step.begin_us() + step.waited_us();
    const size_t start = std::min(At(start_us), width_ - 1);
    const size_t end = std::max(At(start_us + step.took_us()), start + 1);
    std::string bar(end, ' ');
    const size_t wait = std::min(At(step.begin_us()), start);
    std::fill(bar.begin() + static_cast<ptrdiff_t>(wait), bar.begin() + static_cast<ptrdiff_t>(start), kWait);
    std::fill(bar.begin() + static_cast<ptrdiff_t>(start), bar.end(), WayOf(step.how()).sign);
    return bar;
  }

 private:
  size_t At(uint64_t time_us) const {
    const double part = static_cast<double>(time_us) / static_cast<double>(total_us_);
    return static_cast<size_t>(std::min(part, 1.0) * static_cast<double>(width_) + 0.5);
  }

  const uint64_t total_us_;
  const size_t width_;
};

std::string Legend(const v1::BuildTrace& trace) {
  std::vector<std::string> signs;
  const auto add = [&](char sign, const char* meaning, const auto& is) {
    if (std::any_of(trace.step().begin(), trace.step().end(), is)) {
      signs.push_back(StrCat(std::string(1, sign), " ", meaning));
    }
  };
  add(kWait, "waited for its turn", [](const Step& step) { return step.waited_us() > 0; });
  for (const Way& way : kWays) {
    add(way.sign, way.meaning, [&](const Step& step) { return &WayOf(step.how()) == &way; });
  }
  return absl::StrJoin(signs, "   ");
}

std::string Sums(const v1::BuildTrace& trace) {
  uint64_t ran_us = 0;
  uint64_t waited_us = 0;
  for (const Step& step : trace.step()) {
    if (step.how() == Step::RUN) ran_us += step.took_us();
    waited_us += step.waited_us();
  }
  const auto count = [&](Step::How how) {
    return std::count_if(trace.step().begin(), trace.step().end(), [&](const Step& step) { return step.how() == how; });
  };
  const char* ran_text = count(Step::RUN) == 1 ? " step ran, " : " steps ran, ";
  std::string sums = StrCat("total ", Time(trace.total_us()), ": ", count(Step::RUN), ran_text, Time(ran_us),
                            " in all, after ", Time(waited_us), " of waiting");
  if (count(Step::REUSED) > 0) StrAppend(&sums, "; ", count(Step::REUSED), " reused");
  if (count(Step::UPSTREAM) > 0) StrAppend(&sums, "; ", count(Step::UPSTREAM), " from other nodes");
  if (count(Step::REMOTE) > 0) StrAppend(&sums, "; ", count(Step::REMOTE), " on workers");
  if (trace.left_out() > 0) StrAppend(&sums, "; ", trace.left_out(), " short steps are not shown");
  return sums;
}

}  // namespace

std::string_view HowName(Step::How how) { return WayOf(how).name; }

std::string ChromeTrace(const v1::BuildTrace& trace, std::string_view title) {
  std::vector<std::string> events = {Metadata("process_name", 0, JsonObject().Text("name", title).Str())};
  AddRow(0, "kernixd", events);
  uint64_t rows = 1;
  for (const Step& step : trace.step()) {
    const bool is_own_work = step.how() == Step::DAEMON;
    const uint64_t row = is_own_work ? 0 : rows++;
    if (!is_own_work) AddRow(row, step.name(), events);
    AddStep(step, row, events);
  }
  const std::string other = JsonObject()
                                .Number("began_unix_ms", trace.began_unix_ms())
                                .Number("total_us", trace.total_us())
                                .Number("left_out", uint64_t{trace.left_out()})
                                .Str();
  return JsonObject()
      .Json("traceEvents", JsonArray(events))
      .Text("displayTimeUnit", "ms")
      .Json("otherData", other)
      .Str();
}

std::string DrawTrace(const v1::BuildTrace& trace, size_t width) {
  width = std::max(width, kLeastWidth);
  size_t names = sizeof("STEP") - 1;
  for (const Step& step : trace.step()) names = std::max(names, Characters(Printable(step.name())));
  names = std::min(names, width / 3);
  const Axis axis(trace.total_us(), width - names - 2 * kTimeWidth - 6);

  const std::string end = Time(trace.total_us());
  std::string picture = StrCat(Fit("STEP", names), "  ", Right("WAITED", kTimeWidth), "  ", Right("TOOK", kTimeWidth),
                               "  0", Right(end, axis.width() - 1), "\n");
  for (const Step& step : trace.step()) {
    StrAppend(&picture, Fit(Printable(step.name()), names), "  ", Right(TimeOrNothing(step.waited_us()), kTimeWidth),
              "  ", Right(Time(step.took_us()), kTimeWidth), "  ", axis.Bar(step), "\n");
  }
  return StrCat(picture, "\n", Legend(trace), "\n", Sums(trace), "\n");
}

}  // namespace kernix
