// SPDX-License-Identifier: Apache-2.0
//
// Loads that wait, and are far larger in kernixd's memory than as messages: what one member's hold stays within
// max_request_bytes_per_user.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/strings.h"
#include "common/os/env.h"
#include "tests/security/security_fixture.h"

namespace kernix::security {
namespace {

constexpr char kBounds[] = "11 bounds per user";
constexpr uint64_t kMiB = 1 << 20;

uint64_t ResidentBytes(pid_t pid) {
  const std::string status = Env::Posix().ReadFile(StrCat("/proc/", pid, "/status")).value_or("");
  const size_t at = status.find("\nVmRSS:");
  return at == std::string::npos ? 0 : std::strtoull(status.c_str() + at + 7, nullptr, 10) << 10;
}

// Waits for a header that nobody sends.
Kernel Waiting(int number) {
  Kernel kernel = CppKernel(StrCat("#include \"mine.h\"\nint number = ", number, ";"));
  AddHeader(kernel, "mine.h", "#pragma once\n");
  return kernel;
}

// `count` headers with names of `length` bytes.
Kernel WithHeaders(Kernel kernel, int count, size_t length) {
  for (int i = 0; i < count; ++i) {
    std::string name = StrCat(i % 100, "/");
    while (name.size() + 20 < length)
      StrAppend(&name, std::string(std::min<size_t>(200, length - name.size() - 10), 'h'), "/");
    AddHeader(kernel, StrCat(name, i), "");
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

Kernel WithFunctions(Kernel kernel, int count, int tokens) {
  const std::string name = kernel.request.functions().function(0).name();
  std::string text = kernel.request.source(0).text();
  for (int i = 0; i < count; ++i) {
    StrAppend(&text, "\nvoid f", i, "(const BE::Tensor x, BE::Tensor y);");
    v1::Function& function = *kernel.request.mutable_functions()->add_function();
    function.set_name(StrCat("f", i));
    for (int token = 0; token < tokens; ++token) function.add_tokens("arg");
    function.add_tokens("ret");
  }
  kernel.request.mutable_source(0)->set_text(text);
  return kernel;
}

class CostsTest : public SecurityTest {
 protected:
  // Sends loads until one is refused or there are `most`.
  void Hold(const std::string& what, const std::function<Kernel(int)>& make, int most);
};

void CostsTest::Hold(const std::string& what, const std::function<Kernel(int)>& make, int most) {
  constexpr uint64_t kLimit = 64 * kMiB;
  Load(member(), CppKernel());
  const uint64_t before = ResidentBytes(daemon().pid());
  std::vector<std::unique_ptr<server::LoadStream>> streams;
  int waiting = 0;
  uint64_t bytes = 0;
  std::string refusal;
  for (int i = 0; i < most; ++i) {
    server::LoadStream& stream = *streams.emplace_back(std::make_unique<server::LoadStream>(member().stub()));
    const Kernel kernel = make(i);
    stream.Send(kernel.request);
    const std::optional<v1::LoadEvent> event = stream.Next();
    if (!event || !event->has_need_blobs()) {
      refusal = event ? event->failure().message().substr(0, 300) : "end";
      break;
    }
    ++waiting;
    bytes += kernel.request.ByteSizeLong();
  }
  const uint64_t grown = ResidentBytes(daemon().pid()) - before;
  std::printf("%-40s %4d waiting, %7.2f MiB sent, grew %7.2f MiB, %6.2f x; %s\n", what.c_str(), waiting,
              bytes / 1048576.0, grown / 1048576.0, double(grown) / std::max<uint64_t>(bytes, 1), refusal.c_str());
  std::fflush(stdout);
  Judge(kBounds, what, grown <= 2 * kLimit ? "" : StrCat("they hold ", grown / kMiB, " MiB"));
  for (const auto& stream : streams) stream->Cancel();
}

struct Kind {
  const char* what;
  std::function<Kernel(int)> make;
  int most;
};

class CostsOfTest : public CostsTest, public ::testing::WithParamInterface<Kind> {};

TEST_P(CostsOfTest, AreCounted) {
  variables_["KERNIX_MAX_REQUEST_BYTES_PER_USER"] = "64MiB";
  Serve();
  Hold(GetParam().what, GetParam().make, GetParam().most);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, CostsOfTest,
    ::testing::Values(Kind{"long header names", [](int i) { return WithHeaders(Waiting(i), 20'000, 240); }, 12},
                      Kind{"longest header names", [](int i) { return WithHeaders(Waiting(i), 5'000, 1000); }, 12},
                      Kind{"short header names", [](int i) { return WithHeaders(Waiting(i), 20'000, 6); }, 40},
                      Kind{"flags", [](int i) { return WithFlags(Waiting(i), 20'000, "-Wall"); }, 40},
                      Kind{"definitions", [](int i) { return WithDefinitions(Waiting(i), 20'000); }, 40},
                      Kind{"units", [](int i) { return WithUnits(Waiting(i), 1000); }, 40},
                      Kind{"units with flags",
                           [](int i) { return WithFlags(WithUnits(Waiting(i), 1000), 1000, "-Wall"); }, 10},
                      Kind{"units with roots", [](int i) { return WithRoots(WithUnits(Waiting(i), 1000), 500); }, 6},
                      Kind{"sources", [](int i) { return WithSources(Waiting(i), 20'000); }, 40},
                      Kind{"functions", [](int i) { return WithFunctions(Waiting(i), 4'000, 1); }, 40},
                      Kind{"tokens", [](int i) { return WithFunctions(Waiting(i), 100, 200); }, 40},
                      Kind{"text",
                           [](int i) {
                             Kernel k = Waiting(i);
                             k.request.mutable_source(0)->mutable_text()->append("//" + std::string(4 << 20, 'x'));
                             return k;
                           },
                           20}));

}  // namespace
}  // namespace kernix::security
