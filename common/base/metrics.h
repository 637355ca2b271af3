// SPDX-License-Identifier: Apache-2.0
//
// Counters and histograms of a process, in Prometheus' terms.
//
// An instrument (MetricCounter, MetricHistogram) is a member of the object that it measures and updates without a lock.
// A MetricsRegistry maps names to instruments and prints their values as text.
//
// A name consists of "kernix_", the quantity, the unit ("_seconds", "_bytes"), and "_total" for a counter.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernix {

// Only increases, from 0 at the start of the process. Thread-safe.
class MetricCounter {
 public:
  void Add(uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

class MetricsRegistry;

// Counters of one name, by the value of a label. Thread-safe.
class CounterFamily {
 public:
  CounterFamily(std::string name, std::string help, std::string label, const std::vector<std::string>& values);

  // `value` must be one of those.
  MetricCounter& operator[](std::string_view value) { return counters_.find(value)->second; }

  // As MetricsRegistry::AddCounter().
  void Register(MetricsRegistry& registry) const;

 private:
  const std::string name_;
  const std::string help_;
  const std::string label_;
  std::map<std::string, MetricCounter, std::less<>> counters_;
};

// Counts the observed values, sums them, and counts for each bound the values that do not exceed it. Thread-safe.
class MetricHistogram {
 public:
  // Bounds from a tenth of a millisecond to ten minutes.
  static std::vector<double> Seconds();

  // `bounds` must ascend.
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

// Register everything before the first call of Text(); after that, the registry is thread-safe. Registered instruments
// must outlive it.
class MetricsRegistry {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  // A name may be registered again with other labels. All of them form one family, which has the help text of the
  // first.
  void AddCounter(const std::string& name, const std::string& help, const MetricCounter& counter, Labels labels = {});
  // Counters of one name, by the value of a label.
  void AddCounters(const std::string& name, const std::string& help, const std::string& label,
                   const std::vector<std::pair<std::string, const MetricCounter*>>& counters);
  void AddHistogram(const std::string& name, const std::string& help, const MetricHistogram& histogram,
                    Labels labels = {});
  // Text() calls `read`, which must be thread-safe.
  void AddGauge(const std::string& name, const std::string& help, std::function<int64_t()> read, Labels labels = {});

  // All values in Prometheus' text format (version 0.0.4), sorted by name.
  std::string Text() const;

 private:
  struct Family {
    std::string type;
    std::string help;
    std::vector<std::function<std::string()>> samples;  // complete lines
  };

  void Add(const std::string& name, const std::string& type, const std::string& help,
           std::function<std::string()> sample);

  std::map<std::string, Family> families_;  // by name
};

}  // namespace kernix
