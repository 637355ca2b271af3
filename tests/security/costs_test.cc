// SPDX-License-Identifier: Apache-2.0
//
// Loads that wait and are far larger in kernixd's memory than as messages: it counts them as what they cost.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/strings.h"
#include "daemon/rpc/load_gate.h"
#include "tests/security/daemon_state.h"
#include "tests/security/security_fixture.h"

namespace kernix::security {
namespace {

constexpr char kBounds[] = "11 bounds per user";
constexpr uint64_t kMiB = 1 << 20;

// Waits for a header that nobody sends.
Kernel Waiting(int number) {
  Kernel kernel = CppKernel(StrCat("#include \"mine.h\"\nint number = ", number, ";"));
  AddHeader(kernel, "mine.h", "#pragma once\n");
  return kernel;
}

// `count` headers, each with a content of its own that nobody sends, and names of `length` bytes.
Kernel WithHeaders(Kernel kernel, int count, size_t length) {
  for (int i = 0; i < count; ++i) {
    std::string name = StrCat(i % 100, "/");
    while (name.size() + 20 < length)
      StrAppend(&name, std::string(std::min<size_t>(200, length - name.size() - 10), 'h'), "/");
    AddHeader(kernel, StrCat(name, i), StrCat(i));
  }
  return kernel;
}

Kernel WithFlags(Kernel kernel, int count, const std::string& flag) {
  for (int i = 0; i < count; ++i) kernel.request.mutable_options()->add_compile_flags(flag);
  return kernel;
}

Kernel WithDefinitions(Kernel kernel, int count) {
  for (int i = 0; i < count; ++i) kernel.request.mutable_options()->add_compile_flags(StrCat("-DM", i, "=1"));
  return kernel;
}

Kernel WithUnits(Kernel kernel, int count) {
  for (int i = 1; i < count; ++i) {
    v1::Source& source = *kernel.request.add_source();
    source.set_label(StrCat(i));
    source.set_text(";");
  }
  for (v1::Source& source : *kernel.request.mutable_source()) source.add_include_root(0);
  kernel.request.mutable_options()->set_separate_units(true);
  return kernel;
}

Kernel WithRoots(Kernel kernel, uint32_t count) {
  kernel.request.mutable_options()->set_include_root_count(count);
  for (v1::Source& source : *kernel.request.mutable_source()) {
    for (uint32_t root = 1; root < count; ++root) source.add_include_root(root);
  }
  return kernel;
}

Kernel WithSources(Kernel kernel, int count) {
  for (int i = 1; i < count; ++i) {
    v1::Source& source = *kernel.request.add_source();
    source.set_label("a");
    source.set_text(";");
  }
  return kernel;
}

Kernel WithFunctions(Kernel kernel, int count) {
  std::string text = kernel.request.source(0).text();
  for (int i = 0; i < count; ++i) {
    StrAppend(&text, "\nvoid f", i, "(const BE::Tensor x, BE::Tensor y);");
    v1::Function& function = *kernel.request.mutable_functions()->add_function();
    function.set_name(StrCat("f", i));
    function.add_tokens("arg");
    function.add_tokens("ret");
  }
  kernel.request.mutable_source(0)->set_text(text);
  return kernel;
}

Kernel WithText(Kernel kernel, const std::string& text) {
  kernel.request.mutable_source(0)->mutable_text()->append(text);
  return kernel;
}

// A template of `parameters`, `count` times.
Kernel WithInstances(Kernel kernel, int count, int parameters) {
  std::string text = StrCat(kernel.request.source(0).text(), "\nusing T = BE::Tensor;\ntemplate <int N> void g(");
  for (int i = 0; i < parameters; ++i) StrAppend(&text, "const BE::Tensor a", i, ", ");
  StrAppend(&text, "BE::Tensor r) {}");
  for (int i = 0; i < count; ++i) kernel.request.mutable_functions()->add_function()->set_name(StrCat("g<", i, ">"));
  kernel.request.mutable_source(0)->set_text(text);
  return kernel;
}

Kernel WithLongLabels(Kernel kernel) {
  for (v1::Source& source : *kernel.request.mutable_source()) source.mutable_label()->append(900, 'l');
  return kernel;
}

class CostsTest : public SecurityTest {
 protected:
  uint64_t Peak() { return StatusBytes(std::to_string(daemon().pid()), "VmHWM"); }

  // Sends `most` loads at once, and waits until each waits or is refused. Returns how many wait; `grown`: by how much
  // kernixd has.
  int Hold(const std::function<Kernel(int)>& make, int most, uint64_t& grown);
};

int CostsTest::Hold(const std::function<Kernel(int)>& make, int most, uint64_t& grown) {
  const uint64_t before = Peak();
  std::vector<std::unique_ptr<server::LoadStream>> streams;
  uint64_t sent = 0;
  uint64_t cost = 0;
  for (int i = 0; i < most; ++i) {
    const Kernel kernel = make(i);
    sent = kernel.request.ByteSizeLong();
    cost = server::LoadCost(kernel.request);
    streams.emplace_back(std::make_unique<server::LoadStream>(member().stub()))->Send(kernel.request);
  }
  int waiting = 0;
  for (const auto& stream : streams) {
    const std::optional<v1::LoadEvent> event = stream->Next();
    if (event && !event->has_failure()) ++waiting;
  }
  grown = Peak() - before;
  std::printf("  %d of %d wait: each has %llu bytes, counts as %llu, and takes %llu\n", waiting, most,
              static_cast<unsigned long long>(sent), static_cast<unsigned long long>(cost),
              static_cast<unsigned long long>(grown / std::max(waiting, 1)));
  for (const auto& stream : streams) stream->Cancel();
  return waiting;
}

struct Kind {
  const char* what;
  std::function<Kernel(int)> make;
  int most;  // loads

  friend void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.what; }
};

std::string NameOf(const Kind& kind) {
  std::string name = kind.what;
  std::erase(name, ' ');
  return name;
}

// Each takes more than twice the limit where loads count as their bytes.
const Kind kKinds[] = {
    {"many headers", [](int i) { return WithHeaders(Waiting(i), 20'000, 6); }, 40},
    {"headers with long names", [](int i) { return WithHeaders(Waiting(i), 20'000, 240); }, 11},
    {"many flags", [](int i) { return WithFlags(Waiting(i), 20'000, "-Wall"); }, 40},
    {"many definitions", [](int i) { return WithDefinitions(Waiting(i), 20'000); }, 40},
    {"many units", [](int i) { return WithUnits(Waiting(i), 1000); }, 40},
    {"units with flags", [](int i) { return WithFlags(WithUnits(Waiting(i), 1000), 500, "-Wall"); }, 8},
    {"units with include roots", [](int i) { return WithRoots(WithUnits(Waiting(i), 1000), 500); }, 6},
    {"units with long labels", [](int i) { return WithLongLabels(WithUnits(Waiting(i), 1000)); }, 20},
    {"many sources", [](int i) { return WithSources(Waiting(i), 20'000); }, 40},
    {"many functions", [](int i) { return WithFunctions(Waiting(i), 4'000); }, 40},
    {"functions with many parameters", [](int i) { return WithInstances(Waiting(i), 400, 100); }, 20},
    {"large texts", [](int i) { return WithText(Waiting(i), "//" + std::string(4 << 20, 'x')); }, 15},
};

class KindsOfLoadsTest : public CostsTest, public ::testing::WithParamInterface<Kind> {};

TEST_P(KindsOfLoadsTest, CountAsWhatTheyCost) {
  constexpr uint64_t kLimit = 64 * kMiB;
  variables_["KERNIX_MAX_REQUEST_BYTES_PER_USER"] = "64MiB";
  Serve();
  uint64_t grown = 0;
  Hold(GetParam().make, GetParam().most, grown);
  // Besides what waits, there is what is being planned or read.
  Judge(kBounds, GetParam().what, grown <= 2 * kLimit ? "" : StrCat("they take ", grown / kMiB, " MiB"));
}

INSTANTIATE_TEST_SUITE_P(CostsTest, KindsOfLoadsTest, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return NameOf(kind.param); });

// Each is read as 900,000 tokens.
TEST_F(CostsTest, FewOfAUsersLoadsAreReadAtOnce) {
  Serve();
  uint64_t grown = 0;
  Hold([](int i) { return WithText(Waiting(i), std::string(900'000, ';')); }, 40, grown);
  Judge(kBounds, "forty texts of semicolons", grown <= 800 * kMiB ? "" : StrCat("they take ", grown / kMiB, " MiB"));
}

TEST_F(CostsTest, WhatPeopleLoadHasRoom) {
  Serve();
  uint64_t grown = 0;
  // As many as load_many() has under way.
  const int waiting = Hold([](int i) { return WithHeaders(Waiting(i), 3'000, 40); }, 64, grown);
  JudgeTwin(kBounds, "64 loads with 3,000 headers each", waiting == 64 ? "" : StrCat("only ", waiting, " wait"));
  Kernel large = WithFlags(WithUnits(CppKernel(), 5), 100, "-Wall");
  for (int i = 0; i < 200; ++i) AddHeader(large, StrCat("folder/", i, ".h"), StrCat("#define A", i, "\n"));
  Twin(kBounds, "five units with 100 flags and 200 headers", large);
}

}  // namespace
}  // namespace kernix::security
