// SPDX-License-Identifier: Apache-2.0
//
// tests/python/test_metrics.py parses a daemon's text with Prometheus' own parser.
#include "common/base/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace kernix {
namespace {

TEST(MetricsTest, TextIsByNameWithHelpAndTypeOncePerFamily) {
  MetricCounter hits;
  MetricCounter misses;
  MetricsRegistry registry;
  registry.AddCounter("kernix_lookups_total", "Lookups.", misses, {{"outcome", "miss"}});
  registry.AddCounter("kernix_lookups_total", "Lookups.", hits, {{"outcome", "hit"}, {"path", "a\"b\\c\nd"}});
  registry.AddGauge("kernix_cache_bytes", "Bytes now.", [] { return int64_t{10'737'418'240}; });
  hits.Add();
  misses.Add(2);
  EXPECT_EQ(registry.Text(),
            "# HELP kernix_cache_bytes Bytes now.\n"
            "# TYPE kernix_cache_bytes gauge\n"
            "kernix_cache_bytes 10737418240\n"
            "# HELP kernix_lookups_total Lookups.\n"
            "# TYPE kernix_lookups_total counter\n"
            "kernix_lookups_total{outcome=\"miss\"} 2\n"
            "kernix_lookups_total{outcome=\"hit\",path=\"a\\\"b\\\\c\\nd\"} 1\n");
}

TEST(MetricsTest, AFamilyHasACounterForEachValueOfItsLabel) {
  CounterFamily links("kernix_links_total", "Links.", "how", {"stubs", "whole"});
  MetricsRegistry registry;
  links.Register(registry);
  links["whole"].Add(3);
  EXPECT_EQ(registry.Text(),
            "# HELP kernix_links_total Links.\n"
            "# TYPE kernix_links_total counter\n"
            "kernix_links_total{how=\"stubs\"} 0\n"
            "kernix_links_total{how=\"whole\"} 3\n");
}

TEST(MetricsTest, AHistogramsBucketsHoldAllThatIsAtMostTheirBound) {
  MetricHistogram waits({0.5, 10});
  for (const double wait : {0.25, 0.5, 0.75, 10.0, 10.5}) waits.Observe(wait);
  MetricsRegistry registry;
  registry.AddHistogram("kernix_wait_seconds", "Waits.", waits, {{"step", "link"}});
  EXPECT_EQ(registry.Text(),
            "# HELP kernix_wait_seconds Waits.\n"
            "# TYPE kernix_wait_seconds histogram\n"
            "kernix_wait_seconds_bucket{step=\"link\",le=\"0.5\"} 2\n"
            "kernix_wait_seconds_bucket{step=\"link\",le=\"10\"} 4\n"
            "kernix_wait_seconds_bucket{step=\"link\",le=\"+Inf\"} 5\n"
            "kernix_wait_seconds_sum{step=\"link\"} 22\n"
            "kernix_wait_seconds_count{step=\"link\"} 5\n");
}

TEST(MetricsTest, NothingIsLostWhenThreadsCountAtOnce) {
  MetricCounter counter;
  MetricHistogram histogram({1});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        counter.Add();
        histogram.Observe(0.5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), 4000u);
  EXPECT_EQ(histogram.Read().count, 4000u);
  EXPECT_EQ(histogram.Read().sum, 2000.0);
}

}  // namespace
}  // namespace kernix
