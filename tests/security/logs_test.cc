// SPDX-License-Identifier: Apache-2.0
//
// One member who has kernixd write its log: neither the disk fills, nor do others' lines drown.
#include <signal.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "common/base/strings.h"
#include "common/wire/quick_lookup.h"
#include "tests/security/security_fixture.h"
#include "tests/support/test_util.h"

namespace kernix::security {
namespace {

constexpr char kBounds[] = "11 bounds per user";
// What a user's lines may have in a minute is 256 KiB.
constexpr size_t kMost = 600 << 10;
constexpr size_t kMostAMinute = 256 << 10;  // after the first

// A connection on which `user` asks for `load` again and again.
class Asker {
 public:
  Asker(uid_t user, const std::string& path, const v1::LoadRequest& load)
      : connection_(*ConnectAs(user, path)), text_(LookupOf(load).SerializeAsString()) {}

  // Whether it was a hit.
  bool Ask() {
    const MonotonicTime deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const std::string_view magic = std::exchange(asked_, true) ? "" : kLookupMagic;
    if (!SendFrame(connection_.get(), magic, text_, deadline).ok()) return false;
    const absl::StatusOr<std::string> reply = ReceiveFrame(connection_.get(), 1 << 20, deadline);
    return reply.ok() && !reply->empty();
  }

 private:
  const UniqueFd connection_;
  std::string text_;
  bool asked_ = false;
};

// The numbers behind `field` in the lines that hold `word`.
uint64_t SumOf(const std::string& log, const std::string& word, const std::string& field) {
  uint64_t sum = 0;
  for (size_t at = log.find(word); at != std::string::npos; at = log.find(word, at + 1)) {
    const size_t end = log.find('\n', at);
    const size_t value = log.find(field, at);
    if (value < end) sum += std::strtoull(log.c_str() + value + field.size(), nullptr, 10);
  }
  return sum;
}

uint64_t LinesWith(const std::string& log, const std::string& word) {
  uint64_t lines = 0;
  for (size_t at = log.find(word); at != std::string::npos; at = log.find(word, at + 1)) ++lines;
  return lines;
}

class LogsTest : public SecurityTest {
 protected:
  // Counts an attack that makes `times` lines.
  void Flood(const std::string& what, int times, const std::function<void()>& call) {
    const size_t before = daemon().Log().size();
    const auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) call();
    const auto minutes = std::chrono::ceil<std::chrono::minutes>(std::chrono::steady_clock::now() - begun).count();
    const size_t grown = daemon().Log().size() - before;
    std::printf("%s: %zu KiB for %d calls\n", what.c_str(), grown >> 10, times);
    Judge(kBounds, what,
          grown <= kMost + static_cast<size_t>(minutes - 1) * kMostAMinute
              ? ""
              : StrCat("the log grew by ", grown >> 10, " KiB"));
  }

  void OtherIsLogged() {
    const server::LoadOutcome outcome = Load(*Connect(TheUsers().other), CppKernel("int other = 1;"));
    const bool logged = daemon().Log().find(StrCat(" info load user=", TheUsers().other, " ")) != std::string::npos;
    JudgeTwin(kBounds, "another's line", outcome.result && logged ? "" : "it is not in the log");
  }
};

TEST_F(LogsTest, HitsAreCountedAndNotAllWritten) {
  Serve();
  const Kernel kernel = CppKernel();
  ASSERT_TRUE(Load(member(), kernel).result);
  Asker asker(TheUsers().member, socket(), kernel.request);
  constexpr int kHits = 20'000;
  int hits = 0;
  Flood("hits on one connection", kHits, [&] { hits += asker.Ask() ? 1 : 0; });
  EXPECT_EQ(hits, kHits);
  OtherIsLogged();
  daemon().Signal(SIGTERM);
  EXPECT_EQ(daemon().AwaitExit(), 0);
  const std::string log = daemon().Log();
  const uint64_t told = LinesWith(log, StrCat(" info load user=", TheUsers().member, " ")) +
                        SumOf(log, StrCat(" lines_left_out of=", TheUsers().member, " "), "lines=");
  JudgeTwin(kBounds, "all hits are accounted for", told == kHits + 1 ? "" : StrCat(told, " of ", kHits + 1));
}

TEST_F(LogsTest, WhatFailsIsCountedAndNotAllWritten) {
  Serve();
  Kernel unnamed = CppKernel();
  unnamed.request.set_name(std::string(5000, '/'));
  Flood("loads that fail", 1000, [&] { Load(member(), unnamed); });
  OtherIsLogged();
}

TEST_F(LogsTest, BuildsThatFailAreCountedAndNotAllWritten) {
  Serve();
  Kernel broken = CppKernel(StrCat("#include \"/", std::string(3900, 'x'), "\""));
  Flood("builds that fail", 200, [&] { Load(member(), broken); });
  OtherIsLogged();
}

TEST_F(LogsTest, PurgesAreCountedAndNotAllWritten) {
  Serve();
  Flood("purges", 1000, [&] { (void)member().Purge(std::string(5000, 'x')); });
  OtherIsLogged();
}

}  // namespace
}  // namespace kernix::security
