// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/load_gate.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/test_identity.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

const TestIdentity kUser(1000);

CancellationPtr NewCancellation() { return std::make_shared<Cancellation>(); }

TEST(LoadGate, CountsThoseInside) {
  LoadGate gate;
  EXPECT_EQ(gate.inside(), 0);
  {
    const auto one = gate.Enter(kUser, NewCancellation());
    const auto two = gate.Enter(kUser, NewCancellation());
    EXPECT_EQ(gate.inside(), 2);
  }
  EXPECT_EQ(gate.inside(), 0);
}

TEST(LoadGate, ClosedItTurnsNewOnesAway) {
  LoadGate gate;
  const auto early = gate.Enter(kUser, NewCancellation());
  gate.Close();
  EXPECT_TRUE(gate.closed());
  EXPECT_THAT(gate.Enter(kUser, NewCancellation()),
              HasError(absl::StatusCode::kUnavailable, testing::HasSubstr("draining")));
  EXPECT_EQ(gate.inside(), 1);
}

TEST(LoadGate, WaitsForTheLastOneOnly) {
  LoadGate gate;
  auto pass = gate.Enter(kUser, NewCancellation());
  EXPECT_FALSE(gate.WaitUntilEmpty(MonotonicTime::min()));
  std::thread leaver([&] { pass->reset(); });
  EXPECT_TRUE(gate.WaitUntilEmpty(std::chrono::steady_clock::now() + std::chrono::minutes(1)));
  leaver.join();
}

TEST(LoadGate, AUserWithTooManyInsideIsToldWhatToDo) {
  LoadGate gate(/*max_per_user=*/2);
  auto one = gate.Enter(kUser, NewCancellation());
  const auto two = gate.Enter(kUser, NewCancellation());
  EXPECT_THAT(gate.Enter(kUser, NewCancellation()),
              HasError(absl::StatusCode::kResourceExhausted, testing::HasSubstr("max_loads_per_user")));
  EXPECT_THAT(gate.Enter(TestIdentity(1001), NewCancellation()), IsOk());
  one->reset();
  EXPECT_THAT(gate.Enter(kUser, NewCancellation()), IsOk());
  EXPECT_EQ(gate.inside(), 1);
}

TEST(LoadGate, CancelsThoseInside) {
  LoadGate gate;
  const CancellationPtr inside = NewCancellation();
  const CancellationPtr gone = NewCancellation();
  const auto pass = gate.Enter(kUser, inside);
  gate.Enter(kUser, gone)->reset();
  gate.CancelAll();
  EXPECT_TRUE(inside->cancelled());
  EXPECT_FALSE(gone->cancelled());
}

}  // namespace
}  // namespace kernix::server
