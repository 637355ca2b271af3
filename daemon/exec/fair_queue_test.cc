// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/fair_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "common/base/strings.h"

namespace kernix::exec {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr UserId kAnna{1};
constexpr UserId kBob{2};
constexpr UserId kCarl{3};

// Items are "<user><number>".
class FairQueueTest : public testing::Test {
 protected:
  void Push(UserId user, int count, uint64_t weight = 1, uint64_t rank = 0) {
    for (int i = 0; i < count; ++i) queue_.Push(weight, {{user, rank}}, {user, weight, pushed_[user]++});
  }

  // An item of the first user that others wait for as well.
  void PushShared(const std::vector<QueuePosition>& positions) {
    const UserId user = positions.front().user;
    queue_.Push(1, positions, {user, 1, pushed_[user]++});
  }

  void Move(const std::string& name, const std::vector<QueuePosition>& positions) {
    queue_.Move([&](const Item& item) { return item.Name() == name; }, [&](const Item&) { return positions; });
  }

  struct Item {
    UserId user;
    uint64_t weight;
    int number;
    bool operator==(const Item&) const = default;
    std::string Name() const { return StrCat(std::string(1, static_cast<char>('a' + ToNumber(user) - 1)), number); }
  };

  Item Take() { return queue_.Take().item; }
  void RemoveAll() {
    for (const Item& item : queue_.InOrder()) queue_.Remove(item);
  }

  // Takes and finishes one item after the other, as a pool with one worker does.
  std::vector<std::string> Serve(size_t count) {
    std::vector<std::string> names;
    while (names.size() < count && !queue_.empty()) {
      const auto [item, user] = queue_.Take();
      queue_.Finish(user, item.weight);
      names.push_back(item.Name());
    }
    return names;
  }

  std::vector<std::string> Order() const {
    std::vector<std::string> names;
    for (const Item& item : queue_.InOrder()) names.push_back(item.Name());
    return names;
  }

  FairQueue<Item> queue_;
  std::map<UserId, int> pushed_;
};

TEST_F(FairQueueTest, AUsersLowerRanksComeFirst) {
  Push(kAnna, 2, 1, 5);
  Push(kAnna, 2, 1, 3);
  Push(kAnna, 1, 1, 5);
  EXPECT_THAT(Serve(5), ElementsAre("a2", "a3", "a0", "a1", "a4"));
}

TEST_F(FairQueueTest, OneUserIsServedFirstComeFirstServed) {
  Push(kAnna, 3);
  EXPECT_EQ(queue_.size(), 3u);
  EXPECT_EQ(queue_.Next().Name(), "a0");
  EXPECT_THAT(Serve(9), ElementsAre("a0", "a1", "a2"));
  EXPECT_TRUE(queue_.empty());
}

TEST_F(FairQueueTest, OneItemDoesNotWaitForTwoHundredOfAnother) {
  Push(kAnna, 200);
  const Item running = Take();
  Push(kBob, 1);
  EXPECT_EQ(queue_.Next().Name(), "b0");
  queue_.Finish(running.user, running.weight);
  EXPECT_THAT(Serve(2), ElementsAre("b0", "a1"));
}

TEST_F(FairQueueTest, OneItemIsServedNextAfterWhatRuns) {
  Push(kAnna, 200);
  Take();
  Take();
  Push(kBob, 1);
  queue_.Finish(kAnna, 1);
  EXPECT_EQ(Take().Name(), "b0");
  EXPECT_EQ(queue_.size(), 198u);
}

TEST_F(FairQueueTest, ThreeUsersInterleave) {
  Push(kAnna, 4);
  Push(kBob, 2);
  Push(kCarl, 3);
  EXPECT_THAT(Order(), ElementsAre("a0", "b0", "c0", "a1", "b1", "c1", "a2", "c2", "a3"));
  EXPECT_THAT(Serve(9), ElementsAre("a0", "b0", "c0", "a1", "b1", "c1", "a2", "c2", "a3"));
}

TEST_F(FairQueueTest, TheOrderThatIsToldIsTheOneOfServing) {
  Push(kAnna, 5, 2);
  Push(kBob, 7);
  Push(kCarl, 3, 3);
  Take();
  const std::vector<std::string> told = Order();
  std::vector<std::string> served;
  while (!queue_.empty()) served.push_back(Take().Name());  // nothing finishes meanwhile
  EXPECT_EQ(told, served);
}

TEST_F(FairQueueTest, LargeItemsTakeTheirTurnsMoreRarely) {
  Push(kAnna, 2, 4);
  Push(kBob, 8, 1);
  EXPECT_THAT(Serve(10), ElementsAre("a0", "b0", "b1", "b2", "b3", "a1", "b4", "b5", "b6", "b7"));
}

TEST_F(FairQueueTest, WhatRunsCounts) {
  Push(kAnna, 8);
  Push(kBob, 8);
  std::map<UserId, int> running;
  for (int i = 0; i < 8; ++i) ++running[Take().user];
  EXPECT_EQ(running[kAnna], 4);
  EXPECT_EQ(running[kBob], 4);
  // Bob's items are short: freed capacity goes to Bob again, not to Alice's long items.
  for (int i = 0; i < 3; ++i) {
    queue_.Finish(kBob, 1);
    EXPECT_EQ(Take().user, kBob);
  }
}

TEST_F(FairQueueTest, LongItemsTakeTheirTurnsMoreRarely) {
  Push(kAnna, 3);
  Push(kBob, 12);
  std::map<UserId, int> seconds;
  for (int taken = 0; taken < 12; ++taken) {
    const UserId user = queue_.Take().user;
    const int length = user == kAnna ? 5 : 1;
    seconds[user] += length;
    queue_.Finish(user, 1, std::chrono::seconds(length));
  }
  EXPECT_EQ(seconds[kAnna], 10);
  EXPECT_EQ(seconds[kBob], 10);
}

// Seconds of a pool, in which Anna does what she can to keep Bob waiting.
class Pool {
 public:
  Pool(uint64_t slots, uint32_t seed) : slots_(slots), random_(seed) {}

  // Bob has one item after the other, of all weights and lengths up to kLongest. How long did he wait for a slot?
  int LongestWaitOfBob() {
    int longest = 0;
    for (now_ = 0; now_ < 5'000; ++now_) {
      End();
      while (queue_.size() < 20) Push(kAnna);
      const bool waits_or_runs = bob_waits_ || Running(kBob);
      if (!waits_or_runs && Random(10) == 0) {
        Push(kBob);
        bob_waits_ = true;
        since_ = now_;
      }
      Start();
      if (bob_waits_) longest = std::max(longest, now_ - since_);
    }
    return longest;
  }

  static constexpr int kLongest = 20;

 private:
  struct Item {
    UserId user;
    uint64_t weight;
    int seconds;
    bool operator==(const Item&) const = default;
  };
  struct Run {
    Item item;
    UserId user;
    int end;
  };

  int Random(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }

  void Push(UserId user) {
    const Item item{user, 1 + static_cast<uint64_t>(Random(static_cast<int>(slots_))), 1 + Random(kLongest)};
    queue_.Push(item.weight, {{user, 0}}, item);
  }

  bool Running(UserId user) const {
    return std::any_of(running_.begin(), running_.end(), [&](const Run& run) { return run.user == user; });
  }

  void End() {
    std::erase_if(running_, [&](const Run& run) {
      if (run.end > now_) return false;
      queue_.Finish(run.user, run.item.weight, std::chrono::seconds(run.item.seconds));
      return true;
    });
  }

  void Start() {
    uint64_t used = 0;
    for (const Run& run : running_) used += run.item.weight;
    while (!queue_.empty() && used + queue_.Next().weight <= slots_) {
      const auto [item, user] = queue_.Take();
      used += item.weight;
      running_.push_back({item, user, now_ + item.seconds});
      if (user == kBob) bob_waits_ = false;
    }
  }

  const uint64_t slots_;
  std::mt19937 random_;
  FairQueue<Item> queue_;
  std::vector<Run> running_;
  int now_ = 0;
  int since_ = 0;
  bool bob_waits_ = false;
};

TEST(FairnessTest, WhateverAUserDoesAnotherWaitsTwoItemsAtMost) {
  for (const uint64_t slots : {1, 2, 4, 16}) {
    int longest = 0;
    for (uint32_t seed = 0; seed < 20; ++seed) longest = std::max(longest, Pool(slots, seed).LongestWaitOfBob());
    EXPECT_LE(longest, 2 * Pool::kLongest) << slots << " slots";
    EXPECT_GT(longest, Pool::kLongest / 2) << "Anna keeps the pool busy";
  }
}

TEST_F(FairQueueTest, WhoCameLaterDoesNotCatchUp) {
  Push(kAnna, 100);
  Serve(50);
  Push(kBob, 50);
  std::map<char, int> served;
  for (const std::string& name : Serve(20)) ++served[name[0]];
  EXPECT_EQ(served['a'], 10);
  EXPECT_EQ(served['b'], 10);
}

TEST_F(FairQueueTest, WhoComesAgainAndAgainDoesNotKeepOthersOut) {
  Push(kAnna, 3, 8);
  std::string users;
  for (int turns = 0; turns < 20; ++turns) {
    Push(kBob, 1);  // one at a time: Bob has nothing waiting or running in between
    users += Serve(1)[0][0];
    if (users.back() == 'a') users += Serve(1)[0][0];
  }
  EXPECT_EQ(users, "abbbbbbbbabbbbbbbbabbbb");
}

TEST_F(FairQueueTest, WhatIsRemovedIsNotServed) {
  Push(kAnna, 3);
  Push(kBob, 1);
  for (const Item& item : queue_.InOrder()) {
    if (item.number == 0) queue_.Remove(item);
  }
  EXPECT_EQ(queue_.size(), 2u);
  EXPECT_THAT(Order(), ElementsAre("a1", "a2"));
  EXPECT_THAT(Serve(9), ElementsAre("a1", "a2"));
  EXPECT_TRUE(queue_.empty());
}

TEST_F(FairQueueTest, AUserWhoseWaitingItemsWentStillHasThoseThatRun) {
  Push(kAnna, 2);
  Take();
  RemoveAll();
  Push(kBob, 1);
  Push(kAnna, 1);
  EXPECT_THAT(Order(), ElementsAre("b0", "a2"));
  queue_.Finish(kAnna, 1);
}

TEST_F(FairQueueTest, AnItemHasTheBestPositionOfAllWhoWaitForIt) {
  Push(kAnna, 3);
  PushShared({{kAnna, 9}, {kBob, 0}});
  EXPECT_EQ(queue_.size(), 4u);
  EXPECT_THAT(Order(), ElementsAre("a0", "a3", "a1", "a2"));
  Push(kBob, 1);
  EXPECT_THAT(Serve(9), ElementsAre("a0", "a3", "a1", "b0", "a2"));
}

TEST_F(FairQueueTest, WhoJoinsPaysInTurns) {
  Push(kAnna, 1);
  PushShared({{kAnna, 9}, {kBob, 0}});
  Push(kAnna, 1);
  EXPECT_EQ(queue_.Take().user, kAnna);
  const auto shared = queue_.Take();
  EXPECT_EQ(shared.item.Name(), "a1");
  EXPECT_EQ(shared.user, kBob);
  Push(kBob, 1);
  queue_.Finish(kAnna, 1);
  EXPECT_EQ(Take().Name(), "a2") << "Bob's item runs";
  queue_.Finish(shared.user, 1);
  EXPECT_EQ(Take().Name(), "b0");
}

TEST_F(FairQueueTest, WhoHasOthersJoinGetsNoMoreTurns) {
  for (int i = 0; i < 10; ++i) PushShared({{kAnna, 0}, {kBob, 1}});
  Push(kCarl, 10);
  std::map<UserId, int> served;
  for (int i = 0; i < 9; ++i) ++served[queue_.Take().user];
  EXPECT_THAT(served, ElementsAre(Pair(kAnna, 3), Pair(kBob, 3), Pair(kCarl, 3)));
}

TEST_F(FairQueueTest, WhoComesAndGoesMovesTheItem) {
  Push(kAnna, 3);
  Move("a2", {{kAnna, 0}, {kBob, 0}});
  EXPECT_THAT(Order(), ElementsAre("a0", "a2", "a1"));
  Move("a2", {{kAnna, 0}});
  EXPECT_THAT(Order(), ElementsAre("a0", "a1", "a2"));
  Move("a2", {{kBob, 0}});
  EXPECT_THAT(Serve(9), ElementsAre("a0", "a2", "a1"));
  Move("a2", {{kBob, 0}});
  EXPECT_TRUE(queue_.empty());
}

TEST_F(FairQueueTest, AMoveDoesNotCatchUpOrFallBack) {
  Push(kAnna, 100);
  Serve(50);
  Push(kBob, 50);
  Move("a60", {{kAnna, 0}, {kBob, 1}});
  Move("b0", {{kBob, 0}, {kAnna, 1}});
  std::map<char, int> served;
  for (const std::string& name : Serve(20)) ++served[name[0]];
  EXPECT_EQ(served['a'], 10);
  EXPECT_EQ(served['b'], 10);
}

TEST_F(FairQueueTest, WhatIsRemovedHasNoPosition) {
  PushShared({{kAnna, 0}, {kBob, 0}});
  RemoveAll();
  EXPECT_TRUE(queue_.empty());
  Push(kBob, 1);
  EXPECT_THAT(Serve(9), ElementsAre("b0"));
}

TEST(AdmissionTest, LimitsTheNumber) {
  Admission admission(2, 0);
  admission.Start(1);
  EXPECT_TRUE(admission.MayStart(1));
  admission.Start(1);
  EXPECT_FALSE(admission.MayStart(1));
  admission.Finish(1);
  EXPECT_TRUE(admission.MayStart(1));
}

TEST(AdmissionTest, LimitsTheMemory) {
  Admission admission(8, 100);
  admission.Start(60);
  EXPECT_TRUE(admission.MayStart(40));
  EXPECT_FALSE(admission.MayStart(41));
  admission.Finish(60);
  EXPECT_TRUE(admission.MayStart(41));
}

TEST(AdmissionTest, WhatIsLargerThanTheBudgetRunsAlone) {
  Admission admission(8, 100);
  EXPECT_TRUE(admission.MayStart(500));
  admission.Start(500);
  EXPECT_FALSE(admission.MayStart(0));
  EXPECT_FALSE(admission.MayStart(1));
  admission.Finish(500);
  admission.Start(1);
  EXPECT_FALSE(admission.MayStart(500));
}

TEST(AdmissionTest, HugeEstimatesDoNotOverflow) {
  Admission admission(8, 100);
  admission.Start(50);
  EXPECT_FALSE(admission.MayStart(UINT64_MAX));
}

}  // namespace

}  // namespace kernix::exec
