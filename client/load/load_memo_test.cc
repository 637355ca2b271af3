// SPDX-License-Identifier: Apache-2.0
#include "client/load/load_memo.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "client/tools/environment.h"
#include "common/base/strings.h"
#include "tests/support/client_support.h"

namespace kernix {
namespace {

using testing::ScratchFolder;

// Two folders; the second has a header, which is older than a load that begins now.
class LoadInputsTest : public ::testing::Test {
 protected:
  LoadInputsTest() {
    for (const char* folder : {"first/sub", "second/sub"}) EXPECT_TRUE(env_.CreateDirectories(tree_ / folder).ok());
    tree_.Write("second/sub/x.h", "1");
    AwaitClock();
  }

  // Waits until earlier changes are older than a load that begins afterwards.
  void AwaitClock() {
    const int64_t changed_ms = env_.Stat(tree_.Write("clock", ""))->ctime_ns / 1'000'000;
    while (env_.UnixMillis() <= changed_ms + 100) std::this_thread::yield();
  }

  // The inputs of a load that finds the header.
  LoadInputs Inputs() {
    LoadInputs inputs(env_);
    inputs.Add({tree_ / "second/sub/x.h"}, {tree_ / "missing", tree_ / "first/sub", tree_ / "second/sub"});
    return inputs;
  }

  Env& env_ = Env::Posix();
  ScratchFolder tree_;
};

TEST_F(LoadInputsTest, NothingChangesByItself) {
  const auto inputs = Inputs().Look();
  ASSERT_TRUE(inputs);
  EXPECT_TRUE(Unchanged(env_, *inputs));
}

TEST_F(LoadInputsTest, ChangesAreSeen) {
  const std::string header = tree_ / "second/sub/x.h";
  const std::vector<std::pair<const char*, std::function<void()>>> changes = {
      {"other content", [&] { tree_.Write("second/sub/x.h", "2"); }},
      {"hidden by a new one", [&] { tree_.Write("first/sub/x.h", ""); }},
      {"a folder appears", [&] { ASSERT_TRUE(env_.CreateDirectories(tree_ / "missing").ok()); }},
      {"removed", [&] { ASSERT_TRUE(env_.RemoveFile(header).ok()); }},
  };
  for (const auto& [what, change] : changes) {
    AwaitClock();
    const auto inputs = Inputs().Look();
    ASSERT_TRUE(inputs) << what;
    change();
    EXPECT_FALSE(Unchanged(env_, *inputs)) << what;
  }
}

TEST_F(LoadInputsTest, ARenamedFolderIsSeen) {
  const auto inputs = Inputs().Look();
  ASSERT_TRUE(inputs);
  ASSERT_TRUE(env_.Rename(tree_ / "second", tree_ / "elsewhere").ok());
  EXPECT_FALSE(Unchanged(env_, *inputs));
}

TEST_F(LoadInputsTest, AChangeDuringTheLoadIsNotTrusted) {
  const LoadInputs inputs = Inputs();
  tree_.Write("second/sub/x.h", "2");
  EXPECT_FALSE(inputs.Look());
}

TEST_F(LoadInputsTest, AHeaderThatIsGoneWhenTheLoadEndsIsNotTrusted) {
  const LoadInputs inputs = Inputs();
  ASSERT_TRUE(env_.Rename(tree_ / "second", tree_ / "elsewhere").ok());
  EXPECT_FALSE(inputs.Look());
}

std::string KeyOf(const LoadOptions& options) { return MemoKey(ClientOptions(), Language::kCpp, "m", options); }

TEST(MemoKeyTest, EveryArgumentIsPartOfIt) {
  const std::vector<std::pair<const char*, std::function<void(LoadOptions&)>>> changes = {
      {"separate", [](LoadOptions& o) { o.separate = true; }},
      {"debug", [](LoadOptions& o) { o.debug = true; }},
      {"keep", [](LoadOptions& o) { o.keep = true; }},
      {"no functions", [](LoadOptions& o) { o.functions.emplace(); }},
      {"functions", [](LoadOptions& o) { o.functions = std::vector<Function>{{.name = "f", .tokens = {}}}; }},
      {"tokens", [](LoadOptions& o) { o.functions = std::vector<Function>{{.name = "f", .tokens = {"arg"}}}; }},
      {"compile_flags", [](LoadOptions& o) { o.compile_flags = {"-DX"}; }},
      {"link_flags", [](LoadOptions& o) { o.link_flags = {"-DX"}; }},
      {"include_paths", [](LoadOptions& o) { o.include_paths = {"-DX"}; }},
      {"last_include_paths", [](LoadOptions& o) { o.last_include_paths = {"-DX"}; }},
      {"compute_capability", [](LoadOptions& o) { o.compute_capability = "sm_90"; }},
      {"optimization_level", [](LoadOptions& o) { o.optimization_level = 2; }},
      {"use_fast_math", [](LoadOptions& o) { o.use_fast_math = true; }},
      {"allow_cuda_graph", [](LoadOptions& o) { o.allow_cuda_graph = false; }},
      {"environment", [](LoadOptions& o) { o.environment = std::vector<std::string>{"CXX=other"}; }},
  };
  std::map<std::string, std::string> changed_by = {{KeyOf({}), "nothing"}};
  for (const auto& [what, change] : changes) {
    LoadOptions options;
    change(options);
    const auto [other, is_new] = changed_by.emplace(KeyOf(options), what);
    EXPECT_TRUE(is_new) << what << " and " << other->second;
  }
}

TEST(MemoKeyTest, SoAreNameLanguageAndClient) {
  ClientOptions client;
  std::set<std::string> keys = {MemoKey(client, Language::kCpp, "m", {}), MemoKey(client, Language::kCpp, "n", {}),
                                MemoKey(client, Language::kCuda, "m", {})};
  client.store_directory = "/store";
  keys.insert(MemoKey(client, Language::kCpp, "m", {}));
  client.address = "unix:/socket";
  keys.insert(MemoKey(client, Language::kCpp, "m", {}));
  client.site_packages = {"/site"};
  keys.insert(MemoKey(client, Language::kCpp, "m", {}));
  EXPECT_EQ(keys.size(), 6u);
}

TEST(MemoKeyTest, SoIsTheWorkingFolder) {
  const ScratchFolder folder;
  char before[4096];
  ASSERT_NE(getcwd(before, sizeof(before)), nullptr);
  const std::string key = KeyOf({});
  ASSERT_EQ(chdir(folder.path().c_str()), 0);
  const std::string elsewhere = KeyOf({});
  ASSERT_EQ(chdir(before), 0);
  EXPECT_NE(key, elsewhere);
  EXPECT_EQ(key, KeyOf({}));
}

TEST(MemoKeyTest, WhatDoesNotChangeTheResultIsNot) {
  LoadOptions options;
  options.max_parallel_jobs = 7;
  options.verbose = options.force_rebuild = options.batch = true;
  options.callbacks.cancelled = [] { return false; };
  EXPECT_EQ(KeyOf(options), KeyOf({}));
  LoadOptions other;
  options.environment = ProcessVariables();
  other.environment = ProcessVariables();
  other.environment->push_back("SOMETHING=else");
  EXPECT_EQ(KeyOf(options), KeyOf({}));
  EXPECT_EQ(KeyOf(other), KeyOf({}));
}

class LoadMemoTest : public ::testing::Test {
 protected:
  static std::vector<Source> Text(const std::string& text) { return {{.text = text, .label = "", .path = ""}}; }
  uint64_t Remember(const std::vector<Source>& sources, std::vector<WatchedFile> inputs = {}) {
    return memo_.Remember(key_, sources, nullptr, std::move(inputs)).slot;
  }
  uint64_t Find(const std::vector<Source>& sources) { return memo_.Find(key_, sources).slot; }

  // The shortest of some.
  int64_t NanosecondsToFind(const std::vector<Source>& sources) {
    int64_t shortest = std::numeric_limits<int64_t>::max();
    for (int i = 0; i < 20; ++i) {
      const auto begun = std::chrono::steady_clock::now();
      EXPECT_NE(Find(sources), 0u);
      const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - begun;
      shortest = std::min<int64_t>(shortest, taken.count());
    }
    return shortest;
  }

  // Not one of our own: fork() would still take its mutex after its end.
  LoadMemo& memo_ = PerProcess<LoadMemo>::Get();
  const std::string key_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(LoadMemoTest, OtherSourcesAreAnotherLoad) {
  const uint64_t slot = Remember(Text("a"));
  EXPECT_EQ(Find(Text("a")), slot);
  EXPECT_EQ(Remember(Text("a")), slot);
  EXPECT_EQ(Find(Text("b")), 0u);
  EXPECT_EQ(Find({{.text = "a", .label = "l", .path = ""}}), 0u);
  EXPECT_EQ(Find({{.text = "a", .label = "", .path = "/p"}}), 0u);
  EXPECT_EQ(Find({Text("a")[0], Text("a")[0]}), 0u);
  EXPECT_EQ(Find({}), 0u);
  EXPECT_EQ(memo_.Find("other key", Text("a")).slot, 0u);
}

TEST_F(LoadMemoTest, AFileThatHasChangedEndsIt) {
  const ScratchFolder folder;
  Remember(Text("a"), {StateOf(Env::Posix(), folder / "x.h")});
  EXPECT_NE(Find(Text("a")), 0u);
  folder.Write("x.h", "");
  EXPECT_EQ(Find(Text("a")), 0u);
}

// As of a program that writes its kernels.
TEST_F(LoadMemoTest, ThousandsOfTextsCostNoMoreThanOne) {
  const std::string long_text(8 << 10, 'x');
  Remember(Text(long_text + "first"));
  const int64_t alone = NanosecondsToFind(Text(long_text + "first"));
  for (int i = 10'000; i < 13'000; ++i) Remember(Text(StrCat(long_text, i)));
  EXPECT_LT(NanosecondsToFind(Text(long_text + "12999")), 20 * alone);
}

TEST_F(LoadMemoTest, WhatWasUsedLongestAgoIsForgotten) {
  const uint64_t first = Remember(Text("first"));
  Remember(Text("second"));
  for (size_t i = 0; i + 2 < LoadMemo::kMostLoads; ++i) Remember(Text(StrCat("other ", i)));
  EXPECT_EQ(Find(Text("first")), first);
  Remember(Text("one more"));
  EXPECT_EQ(Find(Text("first")), first);
  EXPECT_EQ(Find(Text("second")), 0u);
}

}  // namespace

}  // namespace kernix
