// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <vector>

#include "common/base/json.h"
#include "kernix/trace.h"

namespace kernix {
namespace {

using std::chrono::microseconds;

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

}  // namespace

std::string_view HowName(TracedStep::How how) {
  switch (how) {
    case TracedStep::How::kReused:
      return "reused";
    case TracedStep::How::kJoined:
      return "joined";
    case TracedStep::How::kDaemon:
      return "kernixd";
    case TracedStep::How::kUpstream:
      return "upstream";
    case TracedStep::How::kRemote:
      return "remote";
    case TracedStep::How::kRun:
      break;
  }
  return "run";
}

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

}  // namespace kernix
