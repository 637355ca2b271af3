// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/step_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/os/env.h"
#include "tests/support/test_util.h"

namespace kernix::cache {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class StepStoreTest : public ::testing::Test {
 protected:
  StepStore Open(uint64_t limit = 1 << 20) { return StepStore(env_, folder(), limit); }
  std::string folder() const { return scratch_ / "steps"; }
  std::vector<std::string> Files() { return env_.ListDirectory(folder()).value_or(std::vector<std::string>()); }

  static Digest Key(std::string_view name) { return DigestOf(name); }
  static StepResult Result(const std::string& content) {
    return {.outputs = {{"unit.o", content}}, .headers = {{"kernix-host-0/a.h", DigestOf("a")}}};
  }

  Env& env_ = Env::Posix();
  const ScratchDirectory scratch_;
};

TEST_F(StepStoreTest, ALaterProcessFindsWhatWasKept) {
  {
    StepStore store = Open();
    EXPECT_FALSE(store.Find(Key("a")).has_value());
    store.Put(Key("a"), Result(std::string("object\0file", 11)));
  }
  StepStore store = Open();
  const auto found = store.Find(Key("a"));
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->outputs, ElementsAre(Pair("unit.o", std::string("object\0file", 11))));
  EXPECT_EQ(found->headers, Result("").headers);
  EXPECT_FALSE(store.Find(Key("b")).has_value());
}

TEST_F(StepStoreTest, ServesAResultWhileOthersKeepItAgain) {
  StepStore store = Open();
  const StepResult result = Result(std::string(1 << 16, 'x'));
  store.Put(Key("a"), result);
  std::atomic<int> writing = 3;
  std::vector<std::thread> writers;
  for (int i = 0; i < 3; ++i) {
    writers.emplace_back([&] {
      for (int n = 0; n < 100; ++n) store.Put(Key("a"), result);
      --writing;
    });
  }
  while (writing > 0) EXPECT_TRUE(store.Find(Key("a")).has_value());
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(StepStoreTest, WhatIsDamagedIsNeverServed) {
  for (const bool cut : {false, true}) {
    StepStore store = Open();
    store.Put(Key("a"), Result("content"));
    const std::string path = folder() + "/" + Key("a").Hex();
    std::string file = *env_.ReadFile(path);
    if (cut) {
      file.resize(file.size() - 1);
    } else {
      file[file.size() / 2] ^= 1;
    }
    ASSERT_TRUE(env_.WriteFile(path, file, 0600).ok());
    EXPECT_FALSE(store.Find(Key("a")).has_value());
    EXPECT_THAT(Files(), IsEmpty());
    EXPECT_EQ(store.bytes(), 0u);
    store.Put(Key("a"), Result("content"));
    EXPECT_TRUE(store.Find(Key("a")).has_value());
  }
}

TEST_F(StepStoreTest, KeepsWhatWasUsedLastWithinItsLimit) {
  const std::string content(1000, 'x');
  StepStore store = Open(10'000);
  for (int i = 0; i < 8; ++i) store.Put(Key(std::to_string(i)), Result(content));
  ASSERT_TRUE(store.Find(Key("0")).has_value());
  for (int i = 8; i < 12; ++i) store.Put(Key(std::to_string(i)), Result(content));
  EXPECT_LE(store.bytes(), 10'000u);
  EXPECT_TRUE(store.Find(Key("0")).has_value());
  EXPECT_FALSE(store.Find(Key("1")).has_value());
  EXPECT_TRUE(store.Find(Key("11")).has_value());
  EXPECT_EQ(Open(10'000).bytes(), store.bytes());
}

TEST_F(StepStoreTest, ALargeResultDoesNotPushOutTheOthers) {
  StepStore store = Open(10'000);
  store.Put(Key("small"), Result("x"));
  store.Put(Key("large"), Result(std::string(2000, 'x')));
  EXPECT_TRUE(store.Find(Key("small")).has_value());
  EXPECT_FALSE(store.Find(Key("large")).has_value());
}

TEST_F(StepStoreTest, WhatACrashHasLeftGoes) {
  ASSERT_TRUE(env_.CreateDirectories(folder()).ok());
  ASSERT_TRUE(env_.WriteFile(folder() + "/" + Key("a").Hex() + ".tmp", "half", 0600).ok());
  ASSERT_TRUE(env_.WriteFile(folder() + "/" + Key("b").Hex(), "", 0600).ok());
  StepStore store = Open();
  EXPECT_FALSE(store.Find(Key("b")).has_value());
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(StepStoreTest, RemovesAll) {
  StepStore store = Open();
  store.Put(Key("a"), Result("x"));
  store.RemoveAll();
  EXPECT_FALSE(store.Find(Key("a")).has_value());
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(StepStoreTest, AFolderThatCannotBeMadeLosesResultsOnly) {
  ASSERT_TRUE(env_.WriteFile(folder(), "a file", 0600).ok());
  StepStore store = Open();
  store.Put(Key("a"), Result("x"));
  EXPECT_FALSE(store.Find(Key("a")).has_value());
}

}  // namespace
}  // namespace kernix::cache
