// SPDX-License-Identifier: Apache-2.0
#include "client/load/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

using Step = v1::TracedStep;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

Step StepOf(const std::string& name, Step::How how, uint64_t begin_us = 0, uint64_t waited_us = 0,
            uint64_t took_us = 0) {
  Step step;
  step.set_name(name);
  step.set_how(how);
  step.set_begin_us(begin_us);
  step.set_waited_us(waited_us);
  step.set_took_us(took_us);
  return step;
}

v1::BuildTrace TraceOf(int64_t began_unix_ms, uint64_t total_us, std::initializer_list<Step> steps,
                       uint32_t left_out = 0) {
  v1::BuildTrace trace;
  trace.set_began_unix_ms(began_unix_ms);
  trace.set_total_us(total_us);
  trace.mutable_step()->Assign(steps.begin(), steps.end());
  trace.set_left_out(left_out);
  return trace;
}

v1::BuildTrace SmallBuild() {
  return TraceOf(
      1'700'000'000'000, 200'000,
      {StepOf("plan", Step::DAEMON, 0, 0, 20'000), StepOf("preprocess compute_90", Step::RUN, 20'000, 10'000, 50'000),
       StepOf("handler", Step::REUSED, 20'000, 0, 1'000), StepOf("cicc compute_90", Step::RUN, 80'000, 0, 60'000),
       StepOf("host compile", Step::UPSTREAM, 90'000, 0, 40'000), StepOf("link", Step::RUN, 140'000, 5'000, 40'000),
       StepOf("keep artifact", Step::DAEMON, 190'000, 0, 10'000)});
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
  v1::BuildTrace trace = SmallBuild();
  trace.mutable_step(3)->set_name("cicc compute_90 a_file_with_quite_a_long_name/kernel.cu");
  *trace.add_step() = StepOf("after the end", Step::RUN, 195'000, 10'000, 9'000'000);
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
  const v1::BuildTrace trace =
      TraceOf(0, 100'000'000, {StepOf("short\x1b[2J", Step::RUN), StepOf("ärmel.cu", Step::REUSED)}, /*left_out=*/4);
  const std::string picture = DrawTrace(trace, 80);
  EXPECT_THAT(picture, HasSubstr("short\\x1b[2J              0.0 ms  #\n"));
  EXPECT_THAT(picture, HasSubstr("ärmel.cu                  0.0 ms  r\n"));
  EXPECT_THAT(picture, HasSubstr("4 short steps are not shown"));
  EXPECT_THAT(picture, Not(HasSubstr("kernixd itself"))) << "a sign that does not occur";
  EXPECT_THAT(DrawTrace(v1::BuildTrace(), 80), HasSubstr("total 0.0 ms: 0 steps ran")) << "of nothing, too";
  EXPECT_THAT(picture, HasSubstr("total 100.0 s: 1 step ran, "));
}

TEST(ChromeTraceTest, HasARowForEachStepAndOneForTheDaemon) {
  const v1::BuildTrace trace =
      TraceOf(7, 100, {StepOf("plan", Step::DAEMON, 0, 0, 5), StepOf("a \"b\"", Step::RUN, 5, 2, 80)}, /*left_out=*/1);
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
