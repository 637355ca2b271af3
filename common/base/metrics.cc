// SPDX-License-Identifier: Apache-2.0
#include "common/base/metrics.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "absl/strings/str_replace.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

using Labels = MetricsRegistry::Labels;

std::string Escaped(const std::string& value) {
  return absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
}

// The shortest text that parses back to the same number.
std::string NumberText(double value) {
  std::array<char, 32> text{};
  const std::to_chars_result end = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end.ptr};
}

std::string LabelText(const Labels& labels) {
  if (labels.empty()) return "";
  std::string text;
  for (const auto& [name, value] : labels) {
    StrAppend(&text, text.empty() ? "{" : ",", name, "=\"", Escaped(value), "\"");
  }
  return text + "}";
}

std::string Line(const std::string& name, const Labels& labels, const std::string& value) {
  return StrCat(name, LabelText(labels), " ", value, "\n");
}

Labels With(Labels labels, const std::string& name, const std::string& value) {
  labels.emplace_back(name, value);
  return labels;
}

std::string HistogramLines(const std::string& name, const Labels& labels, const MetricHistogram& histogram) {
  const MetricHistogram::Snapshot read = histogram.Read();
  std::string text;
  for (const auto& [bound, count] : read.at_most) {
    text += Line(name + "_bucket", With(labels, "le", NumberText(bound)), StrCat(count));
  }
  text += Line(name + "_bucket", With(labels, "le", "+Inf"), StrCat(read.count));
  text += Line(name + "_sum", labels, NumberText(read.sum));
  return text + Line(name + "_count", labels, StrCat(read.count));
}

}  // namespace

CounterFamily::CounterFamily(std::string name, std::string help, std::string label,
                             const std::vector<std::string>& values)
    : name_(std::move(name)), help_(std::move(help)), label_(std::move(label)) {
  for (const std::string& value : values) counters_.try_emplace(value);
}

void CounterFamily::Register(MetricsRegistry& registry) const {
  for (const auto& [value, counter] : counters_) registry.AddCounter(name_, help_, counter, {{label_, value}});
}

std::vector<double> MetricHistogram::Seconds() {
  return {0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 120, 300, 600};
}

MetricHistogram::MetricHistogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void MetricHistogram::Observe(double value) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  counts_[static_cast<size_t>(bound - bounds_.begin())].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

MetricHistogram::Snapshot MetricHistogram::Read() const {
  Snapshot read;
  for (size_t i = 0; i < bounds_.size(); ++i) {
    read.count += counts_[i].load(std::memory_order_relaxed);
    read.at_most.emplace_back(bounds_[i], read.count);
  }
  read.count += counts_.back().load(std::memory_order_relaxed);
  read.sum = sum_.load(std::memory_order_relaxed);
  return read;
}

void MetricsRegistry::AddCounter(const std::string& name, const std::string& help, const MetricCounter& counter,
                                 Labels labels) {
  Add(name, "counter", help,
      [name, labels = std::move(labels), &counter] { return Line(name, labels, StrCat(counter.value())); });
}

void MetricsRegistry::AddCounters(const std::string& name, const std::string& help, const std::string& label,
                                  const std::vector<std::pair<std::string, const MetricCounter*>>& counters) {
  for (const auto& [value, counter] : counters) AddCounter(name, help, *counter, {{label, value}});
}

void MetricsRegistry::AddHistogram(const std::string& name, const std::string& help, const MetricHistogram& histogram,
                                   Labels labels) {
  Add(name, "histogram", help,
      [name, labels = std::move(labels), &histogram] { return HistogramLines(name, labels, histogram); });
}

void MetricsRegistry::AddGauge(const std::string& name, const std::string& help, std::function<int64_t()> read,
                               Labels labels) {
  Add(name, "gauge", help,
      [name, read = std::move(read), labels = std::move(labels)] { return Line(name, labels, StrCat(read())); });
}

void MetricsRegistry::Add(const std::string& name, const std::string& type, const std::string& help,
                          std::function<std::string()> sample) {
  Family& family = families_[name];
  if (family.samples.empty()) {
    family.type = type;
    family.help = help;
  }
  family.samples.push_back(std::move(sample));
}

std::string MetricsRegistry::Text() const {
  std::string text;
  for (const auto& [name, family] : families_) {
    StrAppend(&text, "# HELP ", name, " ", family.help, "\n# TYPE ", name, " ", family.type, "\n");
    for (const auto& sample : family.samples) text += sample();
  }
  return text;
}

}  // namespace kernix
