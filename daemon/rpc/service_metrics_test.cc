// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/service_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"

namespace kernix::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

v1::LoadResult Result(bool cache_hit, bool joined) {
  v1::LoadResult result;
  result.set_cache_hit(cache_hit);
  result.set_joined(joined);
  return result;
}

TEST(ServiceMetricsTest, CountsTheLoadsOfFrozenProcessesThatNeededABuild) {
  MetricsRegistry registry;
  ServiceMetrics metrics;
  metrics.Register(registry);
  metrics.NoteFrozenLoad(Result(/*cache_hit=*/true, /*joined=*/false));
  metrics.NoteFrozenLoad(Result(/*cache_hit=*/false, /*joined=*/true));
  metrics.NoteFrozenLoad(Result(/*cache_hit=*/false, /*joined=*/false));
  for (int i = 0; i < 2; ++i) metrics.NoteFrozenLoad(MakeError(v1::ErrorDetail::COMPILATION, "no"));
  for (int i = 0; i < 3; ++i) metrics.NoteFrozenLoad(MakeError(v1::ErrorDetail::NOT_CACHED, "no"));
  metrics.NoteFrozenLoad(MakeError(v1::ErrorDetail::INVALID_REQUEST, "no"));
  EXPECT_THAT(registry.Text(), AllOf(HasSubstr("kernix_builds_after_freeze_total{outcome=\"built\"} 1\n"),
                                     HasSubstr("kernix_builds_after_freeze_total{outcome=\"failed\"} 2\n"),
                                     HasSubstr("kernix_builds_after_freeze_total{outcome=\"refused\"} 3\n")));
}

}  // namespace
}  // namespace kernix::server
