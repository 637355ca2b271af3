// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/include_roots.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

#include "common/base/strings.h"

namespace kernix::build {
namespace {

BuildRequest RequestWithHeaders(int count) {
  BuildRequest request;
  request.include_root_count = 1;
  request.root_climbs = {0};
  for (int i = 0; i < count; ++i) request.headers.push_back({0, StrCat("a/", i, ".h"), DigestOf(StrCat(i)), 1});
  return request;
}

TEST(IncludeRootsMemoTest, TheSameListGivesTheSameRoots) {
  IncludeRootsMemo memo;
  const IncludeRootsPtr one = memo.Get(RequestWithHeaders(1));
  const IncludeRootsPtr two = memo.Get(RequestWithHeaders(2));
  EXPECT_NE(one, two);
  EXPECT_EQ(memo.Get(RequestWithHeaders(1)), one);
  EXPECT_EQ(memo.Get(RequestWithHeaders(2)), two);
}

// Copies of one list would push other lists out.
TEST(IncludeRootsMemoTest, ThreadsThatMakeOneListAtOnceShareOne) {
  constexpr int kThreads = 4;
  const BuildRequest request = RequestWithHeaders(50'000);  // takes longer than a thread's turn
  IncludeRootsMemo memo;
  std::atomic<int> ready = 0;
  std::vector<std::future<IncludeRootsPtr>> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.push_back(std::async(std::launch::async, [&] {
      for (++ready; ready < kThreads;) {
      }
      return memo.Get(request);
    }));
  }
  const IncludeRootsPtr first = threads[0].get();
  for (int i = 1; i < kThreads; ++i) EXPECT_EQ(threads[i].get(), first);
  EXPECT_EQ(memo.Get(request), first);
}

}  // namespace
}  // namespace kernix::build
