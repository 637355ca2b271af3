// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/handlers.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace kernix {
namespace {

// Handlers with different return values, which tell them apart.
template <uintptr_t kId>
XLA_FFI_Error* Numbered(XLA_FFI_CallFrame*) {
  return reinterpret_cast<XLA_FFI_Error*>(kId);
}

uintptr_t Call(Handler handler) { return reinterpret_cast<uintptr_t>(handler(nullptr)); }

TEST(TrampolineTest, LeadsToItsTargetWithTheArgument) {
  TrampolinePool pool;
  const auto echo = [](XLA_FFI_CallFrame* frame) { return reinterpret_cast<XLA_FFI_Error*>(frame); };
  const auto trampoline = pool.Create(echo);
  ASSERT_TRUE(trampoline.ok()) << trampoline.status();
  int frame = 0;
  auto* argument = reinterpret_cast<XLA_FFI_CallFrame*>(&frame);
  EXPECT_EQ(reinterpret_cast<XLA_FFI_CallFrame*>(trampoline->address()(argument)), argument);
  EXPECT_NE(trampoline->address(), trampoline->handler());
}

TEST(TrampolineTest, PassesTheNameToCodeThatTakesOne) {
  TrampolinePool pool;
  Trampoline trampoline = *pool.Create(Numbered<1>);
  const NamedHandler name_of = [](XLA_FFI_CallFrame*, const char* module) {
    return reinterpret_cast<XLA_FFI_Error*>(const_cast<char*>(module));
  };
  const char* const names[] = {"first", "second"};
  for (const char* name : names) {
    trampoline.SetHandler(name_of, name);
    EXPECT_EQ(Call(trampoline.address()), reinterpret_cast<uintptr_t>(name));
  }
  trampoline.SetHandler(Numbered<2>);
  EXPECT_EQ(Call(trampoline.address()), 2u);
}

TEST(TrampolineTest, FollowsItsTargetUnderTheSameAddress) {
  TrampolinePool pool;
  Trampoline trampoline = *pool.Create(Numbered<1>);
  const Handler address = trampoline.address();
  trampoline.SetHandler(Numbered<2>);
  EXPECT_EQ(Call(address), 2u);
  EXPECT_EQ(trampoline.address(), address);
}

TEST(TrampolineTest, ThereIsNoLimitThatAUserMeets) {
  constexpr size_t kMany = 150'000;
  TrampolinePool pool;
  std::vector<Trampoline> trampolines;
  std::set<Handler> addresses;
  for (size_t i = 0; i < kMany; ++i) {
    trampolines.push_back(*pool.Create(i % 2 == 0 ? Numbered<1> : Numbered<2>));
    addresses.insert(trampolines.back().address());
  }
  EXPECT_EQ(addresses.size(), kMany);
  for (size_t i = 0; i < kMany; i += 2) trampolines[i].SetHandler(Numbered<3>);
  for (size_t i = 0; i < kMany; ++i) ASSERT_EQ(Call(trampolines[i].address()), i % 2 == 0 ? 3u : 2u) << i;
}

TEST(TrampolineTest, NoPageIsWritableAndExecutable) {
  TrampolinePool pool;
  const auto address = reinterpret_cast<uintptr_t>(pool.Create(Numbered<1>)->address());
  std::ifstream maps("/proc/self/maps");
  std::string line, mode;
  while (std::getline(maps, line)) {
    uintptr_t begin = 0, end = 0;
    char permissions[5] = {};
    ASSERT_EQ(sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, permissions), 3) << line;
    if (begin <= address && address < end) mode = permissions;
  }
  EXPECT_EQ(mode, "r-xp");
}

TEST(TrampolineTest, CallsGoOnWhileTheTargetChanges) {
  TrampolinePool pool;
  Trampoline trampoline = *pool.Create(Numbered<1>);
  std::atomic<bool> stop{false};
  std::atomic<int> strangers{0};
  std::atomic<uint64_t> calls{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      while (!stop) {
        const uintptr_t id = Call(trampoline.address());
        if (id != 1 && id != 2) ++strangers;
        ++calls;
      }
    });
  }
  for (int i = 0; i < 200'000 || calls < 1000; ++i) trampoline.SetHandler(i % 2 == 0 ? Numbered<2> : Numbered<1>);
  stop = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(strangers, 0);
}

TEST(TrampolineTest, AChildHasItsOwn) {
  TrampolinePool pool;
  Trampoline trampoline = *pool.Create(Numbered<1>);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool inherited = Call(trampoline.address()) == 1;
    trampoline.SetHandler(Numbered<2>);
    _exit(inherited && Call(trampoline.address()) == 2 && pool.Create(Numbered<3>).ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Call(trampoline.address()), 1u);
}

}  // namespace

}  // namespace kernix
