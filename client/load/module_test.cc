// SPDX-License-Identifier: Apache-2.0
#include "client/load/module.h"

#include <gtest/gtest.h>

namespace kernix {
namespace {

v1::LoadResult Result(bool cache_hit, bool from_upstream, bool joined) {
  v1::LoadResult result;
  result.set_cache_hit(cache_hit);
  result.set_from_upstream(from_upstream);
  result.set_joined(joined);
  return result;
}

TEST(OriginTest, FollowsFromTheDaemonsAnswer) {
  EXPECT_EQ(OriginName(OriginOf(Result(false, false, false))), "built");
  EXPECT_EQ(OriginName(OriginOf(Result(false, false, true))), "joined");
  EXPECT_EQ(OriginName(OriginOf(Result(true, false, false))), "cache");
  EXPECT_EQ(OriginName(OriginOf(Result(true, true, false))), "upstream");
}

}  // namespace
}  // namespace kernix
