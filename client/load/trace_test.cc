// SPDX-License-Identifier: Apache-2.0
#include "kernix/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

using How = TracedStep::How;
using std::chrono::microseconds;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TracedStep Step(const std::string& name, How how, int begin_ms, int waited_ms, int took_ms) {
  return {name, how, microseconds(1000 * begin_ms), microseconds(1000 * waited_ms), microseconds(1000 * took_ms)};
}

BuildTrace SmallBuild() {
  return {.began_unix_ms = 1'700'000'000'000,
          .total = std::chrono::milliseconds(200),
          .steps = {Step("plan", How::kDaemon, 0, 0, 20), Step("preprocess compute_90", How::kRun, 20, 10, 50),
                    Step("handler", How::kReused, 20, 0, 1), Step("cicc compute_90", How::kRun, 80, 0, 60),
                    Step("host compile", How::kUpstream, 90, 0, 40), Step("link", How::kRun, 140, 5, 40),
                    Step("keep artifact", How::kDaemon, 190, 0, 10)}};
}

TEST(TracePictureTest, HasABarForEachStepOnOneTimeAxis) {
  EXPECT_EQ(DrawTrace(SmallBuild(), 80),
            R"(STEP                     WAITED      TOOK  0                              200 ms
plan                                20 ms  ----
preprocess compute_90     10 ms     50 ms      ..#########
handler                            1.0 ms      r
cicc compute_90                     60 ms                 ###########
host compile                        40 ms                   uuuuuuu
link                     5.0 ms     40 ms                            .#######
keep artifact                       10 ms                                     --
)"
            "\n. waited for its turn   # ran   r reused from an earlier build   "
            "u taken from another node   - kernixd itself\n"
            "total 200 ms: 3 steps ran, 150 ms in all, after 15 ms of waiting; "
            "1 reused; 1 from other nodes\n");
}

TEST(TracePictureTest, KeepsToTheWidthAndShowsBothEndsOfLongNames) {
  BuildTrace trace = SmallBuild();
  trace.steps[3].name = "cicc compute_90 a_file_with_quite_a_long_name/kernel.cu";
  trace.steps.push_back(Step("after the end", How::kRun, 195, 10, 9000));
  for (const size_t width : {60, 80, 200}) {
    const std::string picture = DrawTrace(trace, width);
    const std::vector<std::string> lines = absl::StrSplit(picture.substr(0, picture.find("\n\n")), '\n');
    EXPECT_THAT(lines, SizeIs(9));
    EXPECT_THAT(lines, Each(SizeIs(::testing::Le(width))));
  }
  EXPECT_THAT(DrawTrace(trace, 80), HasSubstr("cicc compute..me/kernel.cu  "));
  EXPECT_EQ(DrawTrace(trace, 1), DrawTrace(trace, 60));
}

TEST(TracePictureTest, EveryStepCanBeSeenAndNamesDoNotActOnTheTerminal) {
  const BuildTrace trace{.total = std::chrono::seconds(100),
                         .steps = {{"short\x1b[2J", How::kRun}, {"ärmel.cu", How::kReused}},
                         .left_out = 4};
  const std::string picture = DrawTrace(trace, 80);
  EXPECT_THAT(picture, HasSubstr("short\\x1b[2J              0.0 ms  #\n"));
  EXPECT_THAT(picture, HasSubstr("ärmel.cu                  0.0 ms  r\n"));
  EXPECT_THAT(picture, HasSubstr("4 short steps are not shown"));
  EXPECT_THAT(picture, Not(HasSubstr("kernixd itself"))) << "a sign that does not occur";
  EXPECT_THAT(DrawTrace(BuildTrace(), 80), HasSubstr("total 0.0 ms: 0 steps ran")) << "of nothing, too";
  EXPECT_THAT(picture, HasSubstr("total 100.0 s: 1 step ran, "));
}

TEST(ChromeTraceTest, HasARowForEachStepAndOneForTheDaemon) {
  const BuildTrace trace{.began_unix_ms = 7,
                         .total = microseconds(100),
                         .steps = {{"plan", How::kDaemon, microseconds(0), microseconds(0), microseconds(5)},
                                   {"a \"b\"", How::kRun, microseconds(5), microseconds(2), microseconds(80)}},
                         .left_out = 1};
  EXPECT_EQ(
      ChromeTrace(trace, "kernixd: k"),
      R"({"traceEvents": [{"name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": "kernixd: k"}}, )"
      R"({"name": "thread_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": "kernixd"}}, )"
      R"({"name": "thread_sort_index", "ph": "M", "pid": 1, "tid": 0, "args": {"sort_index": 0}}, )"
      R"({"name": "plan", "cat": "kernixd", "ph": "X", "pid": 1, "tid": 0, "ts": 0, "dur": 5, "args": {"how": "kernixd"}}, )"
      R"({"name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "a \"b\""}}, )"
      R"({"name": "thread_sort_index", "ph": "M", "pid": 1, "tid": 1, "args": {"sort_index": 1}}, )"
      R"({"name": "queue", "cat": "queue", "ph": "X", "pid": 1, "tid": 1, "ts": 5, "dur": 2, "args": {"for": "a \"b\""}}, )"
      R"({"name": "a \"b\"", "cat": "run", "ph": "X", "pid": 1, "tid": 1, "ts": 7, "dur": 80, "args": {"how": "run"}}], )"
      R"("displayTimeUnit": "ms", "otherData": {"began_unix_ms": 7, "total_us": 100, "left_out": 1}})");
}

}  // namespace

}  // namespace kernix
