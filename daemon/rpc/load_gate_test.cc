// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/load_gate.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

CancellationPtr NewCancellation() { return std::make_shared<Cancellation>(); }

TEST(LoadGate, CountsThoseInside) {
  LoadGate gate;
  EXPECT_EQ(gate.inside(), 0);
  {
    const auto one = gate.Enter(NewCancellation());
    const auto two = gate.Enter(NewCancellation());
    EXPECT_EQ(gate.inside(), 2);
  }
  EXPECT_EQ(gate.inside(), 0);
}

TEST(LoadGate, ClosedItTurnsNewOnesAway) {
  LoadGate gate;
  const auto early = gate.Enter(NewCancellation());
  gate.Close();
  EXPECT_TRUE(gate.closed());
  EXPECT_THAT(gate.Enter(NewCancellation()), HasError(absl::StatusCode::kUnavailable, testing::HasSubstr("draining")));
  EXPECT_EQ(gate.inside(), 1);
}

TEST(LoadGate, WaitsForTheLastOneOnly) {
  LoadGate gate;
  auto pass = gate.Enter(NewCancellation());
  EXPECT_FALSE(gate.WaitUntilEmpty(MonotonicTime::min()));
  std::thread leaver([&] { pass->reset(); });
  EXPECT_TRUE(gate.WaitUntilEmpty(std::chrono::steady_clock::now() + std::chrono::minutes(1)));
  leaver.join();
}

TEST(LoadGate, CancelsThoseInside) {
  LoadGate gate;
  const CancellationPtr inside = NewCancellation();
  const CancellationPtr gone = NewCancellation();
  const auto pass = gate.Enter(inside);
  gate.Enter(gone)->reset();
  gate.CancelAll();
  EXPECT_TRUE(inside->cancelled());
  EXPECT_FALSE(gone->cancelled());
}

}  // namespace
}  // namespace kernix::server
