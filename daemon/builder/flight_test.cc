// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/flight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <new>
#include <thread>

#include "common/base/error.h"
#include "tests/support/await.h"
#include "tests/support/test_util.h"

namespace kernix::build {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::chrono::hours kForever{1};
constexpr exec::Asker kAsker{UserId{7}};

// Records the events; fetches as the test prescribes.
class TestObserver : public LoadObserver {
 public:
  using Fetch = std::function<absl::StatusOr<HeaderContents>(const std::vector<Digest>&)>;

  explicit TestObserver(Fetch fetch = nullptr) : fetch_(std::move(fetch)) {}

  absl::StatusOr<HeaderContents> FetchHeaders(const std::vector<Digest>& digests) override {
    ++fetches;
    return fetch_(digests);
  }
  void OnProgress(const v1::Progress& progress) override { last_progress = progress; }
  void OnOutput(const v1::Output& output) override { text += output.command() + output.text(); }

  int fetches = 0;
  std::string text;
  v1::Progress last_progress;

 private:
  Fetch fetch_;
};

Flight::Result AwaitResult(Flight& flight, TestObserver& observer, bool verbose, const CancellationPtr& cancellation,
                           const std::function<void(HeaderContents)>& start) {
  const auto fetch = [&](const std::vector<Digest>& headers) { return observer.FetchHeaders(headers); };
  const auto start_build = [&](HeaderContents contents) { start(std::move(contents)); };
  return flight.Await(kAsker, observer, verbose, cancellation, fetch, start_build);
}

HeaderContents Contents(const std::string& text) { return {{DigestOf(text), exec::MakeContent(text)}}; }

v1::LoadResult ResultWithMs(uint64_t ms) {
  v1::LoadResult result;
  result.set_build_ms(ms);
  return result;
}

exec::Action NamedAction(const std::string& step) {
  exec::Action action;
  action.step = step;
  action.argv = {"tool", step};
  return action;
}

TEST(FlightTest, StartsAtOnceWithoutHeadersAndGivesTheResult) {
  Flight flight({}, kForever);
  ASSERT_TRUE(flight.Join(kAsker));
  TestObserver observer;
  const auto result = AwaitResult(flight, observer, false, nullptr, [&](const HeaderContents& contents) {
    EXPECT_THAT(contents, IsEmpty());
    flight.Complete(ResultWithMs(7));
  });
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->build_ms(), 7u);
  EXPECT_EQ(observer.fetches, 0);
  EXPECT_TRUE(flight.closed());
  EXPECT_FALSE(flight.Join(kAsker));
}

// One who must not start a build does not join before somebody else has.
TEST(FlightTest, OnlyARunningBuildTakesAskersWhoDoNotStartIt) {
  Flight flight({}, kForever);
  EXPECT_FALSE(flight.Join(kAsker, /*only_running=*/true));
  ASSERT_TRUE(flight.Join(kAsker));
  EXPECT_FALSE(flight.Join(kAsker, /*only_running=*/true));
  TestObserver observer;
  const auto result = AwaitResult(flight, observer, false, nullptr, [&](const HeaderContents&) {
    ASSERT_TRUE(flight.Join(kAsker, /*only_running=*/true));
    flight.Complete(ResultWithMs(1));
  });
  ASSERT_THAT(result, IsOk());
  EXPECT_THAT(AwaitResult(flight, observer, false, nullptr, nullptr), IsOk());
  EXPECT_FALSE(flight.Join(kAsker, /*only_running=*/true));
}

TEST(FlightTest, VerboseAskersGetOutputAndAllGetProgress) {
  Flight flight({}, kForever);
  flight.SetStepsTotal(2);
  ASSERT_TRUE(flight.Join(kAsker));
  ASSERT_TRUE(flight.Join(kAsker));
  TestObserver verbose, quiet;
  const auto build = [&](const HeaderContents&) {
    flight.OnQueued(NamedAction("compile"), 3);
    flight.OnStarted(NamedAction("compile"));
    flight.OnOutput("warning!");
    flight.OnStepDone(1);
    flight.Complete(ResultWithMs(1));
  };
  EXPECT_THAT(AwaitResult(flight, verbose, true, nullptr, build), IsOk());
  EXPECT_THAT(AwaitResult(flight, quiet, false, nullptr, build), IsOk());  // joins after everything has happened
  EXPECT_EQ(verbose.text, "tool compilewarning!");
  EXPECT_EQ(quiet.text, "");
  for (const TestObserver* observer : {&verbose, &quiet}) {
    EXPECT_EQ(observer->last_progress.state(), v1::Progress::RUNNING);
    EXPECT_EQ(observer->last_progress.step(), "compile");
    EXPECT_EQ(observer->last_progress.steps_done(), 1u);
    EXPECT_EQ(observer->last_progress.steps_total(), 2u);
  }
}

TEST(FlightTest, OutputWithoutEndIsCutOff) {
  Flight flight({}, kForever);
  ASSERT_TRUE(flight.Join(kAsker));
  TestObserver observer;
  const std::string megabyte(1 << 20, 'x');
  EXPECT_THAT(AwaitResult(flight, observer, true, nullptr,
                          [&](const HeaderContents&) {
                            for (int i = 0; i < 50; ++i) flight.OnOutput(megabyte);
                            flight.Complete(ResultWithMs(1));
                          }),
              IsOk());
  EXPECT_LT(observer.text.size(), 10u << 20);
  EXPECT_THAT(observer.text, ::testing::EndsWith("[the rest of the output is omitted]\n"));
}

TEST(FlightTest, FetchedHeadersReachTheBuild) {
  Flight flight({DigestOf("h")}, kForever);
  ASSERT_TRUE(flight.Join(kAsker));
  TestObserver observer([](const std::vector<Digest>& digests) {
    EXPECT_THAT(digests, ElementsAre(DigestOf("h")));
    return Contents("h");
  });
  EXPECT_THAT(AwaitResult(flight, observer, false, nullptr,
                          [&](const HeaderContents& contents) {
                            EXPECT_EQ(*contents.at(DigestOf("h")), "h");
                            flight.Complete(ResultWithMs(1));
                          }),
              IsOk());
}

TEST(FlightTest, WhenTheFetchingAskerFailsAnotherOneFetches) {
  Flight flight({DigestOf("h")}, kForever);
  ASSERT_TRUE(flight.Join(kAsker));
  ASSERT_TRUE(flight.Join(kAsker));
  std::promise<void> fetching, let_fail;
  TestObserver first([&](const std::vector<Digest>&) -> absl::StatusOr<HeaderContents> {
    fetching.set_value();
    AwaitValue("the second asker", let_fail.get_future());
    return MakeError(v1::ErrorDetail::CANCELLED, "the client left");
  });
  TestObserver second([](const std::vector<Digest>&) { return Contents("h"); });
  const auto build = [&](const HeaderContents&) { flight.Complete(ResultWithMs(5)); };
  auto first_result = std::async(std::launch::async, [&] { return AwaitResult(flight, first, false, nullptr, build); });
  AwaitValue("a fetch of the first asker", fetching.get_future());
  auto second_result =
      std::async(std::launch::async, [&] { return AwaitResult(flight, second, false, nullptr, build); });
  let_fail.set_value();
  EXPECT_EQ(KindOf(first_result.get().status()), v1::ErrorDetail::CANCELLED);
  const auto result = second_result.get();
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->build_ms(), 5u);
  EXPECT_EQ(first.fetches, 1);
  EXPECT_EQ(second.fetches, 1);
}

TEST(FlightTest, WhoComesSecondMayStartIt) {
  Flight flight({}, kForever);
  ASSERT_TRUE(flight.Join(kAsker));
  ASSERT_TRUE(flight.Join(kAsker));
  TestObserver first, second;
  const auto end = [&](const HeaderContents&) { flight.Complete(ResultWithMs(3)); };
  EXPECT_THAT(AwaitResult(flight, second, false, nullptr, end), IsOk());
  const auto cancellation = std::make_shared<Cancellation>();
  cancellation->Cancel();
  EXPECT_THAT(AwaitResult(flight, first, false, cancellation, nullptr), IsOk())
      << "it was there when the cancellation came";
}

TEST(FlightTest, AnAskerWithoutMemoryLeavesLikeOthers) {
  Flight flight({DigestOf("a")}, kForever);
  ASSERT_TRUE(flight.Join(kAsker));
  TestObserver observer([](const std::vector<Digest>&) -> absl::StatusOr<HeaderContents> { throw std::bad_alloc(); });
  const auto result =
      AwaitResult(flight, observer, false, nullptr, [](const HeaderContents&) { FAIL() << "no headers"; });
  EXPECT_EQ(KindOf(result.status()), v1::ErrorDetail::RESOURCE);
  EXPECT_TRUE(flight.askers()->empty());
  EXPECT_TRUE(flight.closed());
}

TEST(FlightTest, TheLastAskerWhoLeavesCancelsTheBuild) {
  Flight flight({}, std::chrono::milliseconds(0));
  ASSERT_TRUE(flight.Join(kAsker));
  TestObserver observer;
  const auto cancellation = std::make_shared<Cancellation>();
  const auto result =
      AwaitResult(flight, observer, false, cancellation, [&](const HeaderContents&) { cancellation->Cancel(); });
  EXPECT_EQ(KindOf(result.status()), v1::ErrorDetail::CANCELLED);
  EXPECT_TRUE(flight.build_cancellation()->cancelled());
  EXPECT_TRUE(flight.closed());
  EXPECT_FALSE(flight.Join(kAsker));
  flight.Complete(MakeError(v1::ErrorDetail::CANCELLED, "cancelled"));
}

TEST(FlightTest, OneWhoLeavesDoesNotDisturbTheOthers) {
  Flight flight({}, std::chrono::milliseconds(0));
  ASSERT_TRUE(flight.Join(kAsker));
  ASSERT_TRUE(flight.Join(kAsker));
  TestObserver leaver, stayer;
  const auto cancellation = std::make_shared<Cancellation>();
  EXPECT_FALSE(
      AwaitResult(flight, leaver, false, cancellation, [&](const HeaderContents&) { cancellation->Cancel(); }).ok());
  EXPECT_FALSE(flight.build_cancellation()->cancelled());
  flight.Complete(ResultWithMs(3));
  EXPECT_THAT(AwaitResult(flight, stayer, false, nullptr, nullptr), IsOk());
}

TEST(FlightTest, OneWhoComesBackWhileItLingersFindsItRunning) {
  Flight flight({}, kForever);
  ASSERT_TRUE(flight.Join(kAsker));
  TestObserver leaver, returner;
  std::promise<void> started;
  const auto cancellation = std::make_shared<Cancellation>();
  auto left = std::async(std::launch::async, [&] {
    return AwaitResult(flight, leaver, false, cancellation, [&](const HeaderContents&) { started.set_value(); });
  });
  AwaitValue("the start of the build", started.get_future());
  cancellation->Cancel();
  Await("the asker to leave", [&] { return flight.askers()->empty(); });
  ASSERT_TRUE(flight.Join(kAsker));
  EXPECT_FALSE(AwaitValue("the one who left", left).ok());  // another asker has joined: no need to linger
  EXPECT_FALSE(flight.build_cancellation()->cancelled());
  flight.Complete(ResultWithMs(3));
  EXPECT_THAT(AwaitResult(flight, returner, false, nullptr, nullptr), IsOk());
}

TEST(FlightTest, ABuildThatEndsWhileItLingersIsNotCancelled) {
  Flight flight({}, kForever);
  ASSERT_TRUE(flight.Join(kAsker));
  TestObserver leaver;
  std::promise<void> started;
  const auto cancellation = std::make_shared<Cancellation>();
  auto left = std::async(std::launch::async, [&] {
    return AwaitResult(flight, leaver, false, cancellation, [&](const HeaderContents&) { started.set_value(); });
  });
  AwaitValue("the start of the build", started.get_future());
  cancellation->Cancel();
  Await("the asker to leave", [&] { return flight.askers()->empty(); });
  flight.Complete(ResultWithMs(3));
  EXPECT_FALSE(AwaitValue("the one who left", left).ok());
  EXPECT_FALSE(flight.build_cancellation()->cancelled());
}

TEST(FlightTest, ManyAskersFromManyThreads) {
  Flight flight({DigestOf("h")}, kForever);
  constexpr int kAskers = 16;
  std::atomic<int> starts{0}, fetches{0}, results{0};
  for (int i = 0; i < kAskers; ++i) ASSERT_TRUE(flight.Join(kAsker));
  std::vector<std::thread> threads;
  std::thread builder;
  for (int i = 0; i < kAskers; ++i) {
    threads.emplace_back([&] {
      TestObserver observer([&](const std::vector<Digest>&) {
        ++fetches;
        return Contents("h");
      });
      const auto result = AwaitResult(flight, observer, true, nullptr, [&](const HeaderContents&) {
        ++starts;
        builder = std::thread([&] {
          for (int n = 0; n < 100; ++n) flight.OnOutput("line\n");
          flight.Complete(ResultWithMs(9));
        });
      });
      if (result.ok() && observer.text.size() == 500) ++results;
    });
  }
  for (std::thread& thread : threads) thread.join();
  builder.join();
  EXPECT_EQ(starts, 1);
  EXPECT_EQ(fetches, 1);
  EXPECT_EQ(results, kAskers);
}

}  // namespace
}  // namespace kernix::build
