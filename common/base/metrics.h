// SPDX-License-Identifier: Apache-2.0
//
// What a process counts and measures, in the terms of Prometheus.
//
// An instrument (MetricCounter, MetricHistogram) is a member of what it measures, and moves without a lock. A
// MetricsRegistry knows the instruments by name and gives their values as text.
//
// Names: "kernix_", what is measured, the unit ("_seconds", "_bytes"), and "_total" for a counter.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kernix {

// Only goes up, from 0 at the start of the process. Thread-safe.
class MetricCounter {
 public:
  void Add(uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// How many values were seen, their sum, and how many of them were at most as large as each of some bounds. Thread-safe.
class MetricHistogram {
 public:
  // From a tenth of a millisecond to ten minutes.
  static std::vector<double> Seconds();

  // `bounds` ascend.
  explicit MetricHistogram(std::vector<double> bounds = Seconds());

  void Observe(double value);

  struct Snapshot {
    std::vector<std::pair<double, uint64_t>> at_most;  // by bound
    uint64_t count = 0;
    double sum = 0;
  };
  Snapshot Read() const;

 private:
  const std::vector<double> bounds_;
  std::vector<std::atomic<uint64_t>> counts_;  // between a bound and the one before it; the last one: above all
  std::atomic<double> sum_{0};
};

// Everything is registered before Text() is called; then thread-safe. What is registered must outlive it.
class MetricsRegistry {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  // A name may come again with other labels: these are one family, with the help of the first.
  void AddCounter(const std::string& name, const std::string& help, const MetricCounter& counter, Labels labels = {});
  void AddHistogram(const std::string& name, const std::string& help, const MetricHistogram& histogram,
                    Labels labels = {});
  // `read` is called by Text(), and must be thread-safe.
  void AddGauge(const std::string& name, const std::string& help, std::function<int64_t()> read);

  // All values in Prometheus' text format (version 0.0.4), by name.
  std::string Text() const;

 private:
  struct Family {
    std::string type;
    std::string help;
    std::vector<std::function<std::string()>> samples;  // whole lines
  };

  void Add(const std::string& name, const std::string& type, const std::string& help,
           std::function<std::string()> sample);

  std::map<std::string, Family> families_;  // by name
};

}  // namespace kernix
