// SPDX-License-Identifier: Apache-2.0
//
// A member who guesses what another member will load, and asks for it first: that must not hold the other one up.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/strings.h"
#include "tests/security/daemon_state.h"
#include "tests/security/security_fixture.h"
#include "tests/support/await.h"

namespace kernix::security {
namespace {

constexpr char kRow[] = "11 bounds per user";
constexpr int kFlood = 60;
constexpr int kFew = 10;

// A unit that takes a compiler a second or so.
std::string SlowText(const std::string& name) {
  std::string text = StrCat("constexpr long ", name,
                            "(long n) { long s = 0; for (long i = 0; i < n; ++i) for (long j = 0; j < 100000; ++j) s "
                            "+= i * j; return s; }\n");
  for (int i = 2; i < 4; ++i) StrAppend(&text, "constexpr long ", name, i, " = ", name, "(", i, ");\n");
  return text;
}

class TurnsTest : public SecurityTest {
 protected:
  using Stream = std::unique_ptr<server::LoadStream>;

  Stream Send(server::TestClient& client, const Kernel& kernel) {
    auto stream = std::make_unique<server::LoadStream>(client.stub());
    stream->Send(kernel.request);
    return stream;
  }

  // So many loads have begun a build, or have joined one.
  void AwaitBegun(uint64_t loads) {
    Await(StrCat(loads, " loads to begin"), [&] { return member().Stats().value().misses() >= loads; });
  }

  // The member's queue.
  std::vector<Stream> Flood() {
    std::vector<Stream> flood;
    for (int i = 0; i < kFlood; ++i) flood.push_back(Send(member(), CppKernel(StrCat("int flood = ", i, ";"))));
    AwaitBegun(kFlood);
    return flood;
  }

  int MembersEnded() { return LoadsEnded(daemon().Log(), TheUsers().member); }

  // Loads it as another member. "" if few of the member's loads came before.
  std::string OthersLoad(const Kernel& kernel, server::LoadOutcome& outcome) {
    const auto other = Connect(TheUsers().other);
    const int before = MembersEnded();
    outcome = Load(*other, kernel);
    const int between = MembersEnded() - before;
    if (!outcome.result) return Answer(outcome);
    return between < kFew ? "" : StrCat(between, " of the member's loads came before");
  }
};

TEST_F(TurnsTest, ALikelyRequestBehindItsSendersQueueHoldsNobody) {
  Serve("jobs = 1");
  std::vector<Stream> queue = Flood();
  queue.push_back(Send(member(), CppKernel("int likely = 1;")));
  AwaitBegun(kFlood + 1);
  server::LoadOutcome outcome;
  Judge(kRow, "a likely request", OthersLoad(CppKernel("int likely = 1;"), outcome));
}

TEST_F(TurnsTest, ALikelyRequestAsABatchHoldsNobody) {
  Serve("jobs = 1");
  std::vector<Stream> queue = Flood();
  Kernel likely = CppKernel("int likely = 1;");
  likely.request.set_batch(true);
  queue.push_back(Send(member(), likely));
  AwaitBegun(kFlood + 1);
  server::LoadOutcome outcome;
  Judge(kRow, "a likely request as a batch", OthersLoad(CppKernel("int likely = 1;"), outcome));
  JudgeTwin(kRow, "two users who wait for one build", outcome.result && outcome.result->joined() ? "" : "two builds");
}

TEST_F(TurnsTest, NobodyElsesLoadIsCancelled) {
  Serve("jobs = 1");
  const auto cancelled = [](server::TestClient& client) {
    constexpr uint64_t kNumbers = 100;
    uint64_t loads = 0;
    for (uint64_t id = 0; id < kNumbers; ++id) {
      grpc::ClientContext context;
      v1::CancelLoadRequest request;
      request.set_id(id);
      v1::CancelLoadResponse response;
      if (client.stub().CancelLoad(&context, request, &response).ok()) ++loads;
    }
    return loads;
  };
  const auto other = Connect(TheUsers().other);
  const Stream load = Send(*other, CppKernel(SlowText("others")));
  AwaitBegun(1);
  const uint64_t others = cancelled(member());
  Judge(kRow, "CancelLoad of any number", others > 0 ? StrCat("cancelled ", others) : "");
  JudgeTwin(kRow, "one's own load is cancelled", cancelled(*other) == 1 ? "" : "it is not");
}

TEST_F(TurnsTest, ALikelyRequestThatItsSenderLeavesHoldsNobody) {
  Serve("jobs = 1");
  std::vector<Stream> queue = Flood();
  queue.push_back(Send(member(), CppKernel("int likely = 1;")));
  AwaitBegun(kFlood + 1);
  const auto other = Connect(TheUsers().other);
  const int before = MembersEnded();
  const Stream joined = Send(*other, CppKernel("int likely = 1;"));
  AwaitBegun(kFlood + 2);
  queue.back()->Cancel();
  const server::LoadOutcome outcome = joined->Finish();
  const int between = MembersEnded() - before;
  Judge(
      kRow, "a likely request that its sender leaves",
      outcome.result && between < kFew ? "" : StrCat(between, " of the member's loads came before: ", Answer(outcome)));
}

TEST_F(TurnsTest, ABatchThatNobodyElseWantsGivesWay) {
  Serve("jobs = 1");
  std::vector<Stream> batch;
  for (int i = 0; i < kFlood; ++i) {
    Kernel kernel = CppKernel(StrCat("int batch = ", i, ";"));
    kernel.request.set_batch(true);
    batch.push_back(Send(member(), kernel));
  }
  AwaitBegun(kFlood);
  const int before = MembersEnded();
  const server::LoadOutcome own = Load(*Connect(TheUsers().member), CppKernel("int own = 1;"));
  const int between = MembersEnded() - before;
  JudgeTwin(kRow, "a load beside the same user's batch",
            own.result && between < kFew ? "" : StrCat(between, " of the batch came before: ", Answer(own)));
}

// Who builds one step at a time may do so, but not with what others wait for.
TEST_F(TurnsTest, ALikelyRequestForOneJobAtATimeHoldsNobody) {
  Serve("jobs = 4");
  Kernel likely = CppKernel(SlowText("slow"));
  for (int i = 1; i < 8; ++i) {
    v1::Source& source = *likely.request.add_source();
    source.set_label(StrCat(i, ".cc"));
    source.set_text(SlowText(StrCat("slow", i)));
  }
  likely.request.mutable_options()->set_separate_units(true);
  Kernel one_at_a_time = likely;
  one_at_a_time.request.set_max_parallel_jobs(1);
  const Stream first = Send(member(), one_at_a_time);
  AwaitBegun(1);
  const auto other = Connect(TheUsers().other);
  const Stream joined = Send(*other, likely);
  std::atomic<uint32_t> most = 0;
  std::atomic<bool> is_over = false;
  std::thread watch([&] {
    const auto watcher = Connect(TheUsers().member);
    while (!is_over) most = std::max<uint32_t>(most, watcher->Info().value().running_jobs());
  });
  const server::LoadOutcome outcome = joined->Finish();
  is_over = true;
  watch.join();
  Judge(kRow, "a likely request for one job at a time",
        outcome.result && most > 1 ? "" : StrCat("at most ", most.load(), " job at a time: ", Answer(outcome)));
}

}  // namespace
}  // namespace kernix::security
