// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/known_loads.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kernix::build {
namespace {

using toolchain::Toolchain;
using toolchain::ToolchainPtr;

constexpr UserId kUser{1000};
constexpr UserId kOther{1001};

FileCheck::Files Headers(const std::string& path) {
  return std::make_shared<const std::vector<WatchedFile>>(std::vector{WatchedFile{path, std::nullopt}});
}

KnownHit Hit(const FileCheck::Files& headers, size_t bytes = 0) {
  KnownHit hit{DigestOf("key"), std::make_shared<const Toolchain>(), {}, DigestOf("artifact"), headers, 1};
  hit.result.set_artifact_path(std::string(bytes, 'x'));
  return hit;
}

KnownHit Load(const std::string& key, const ToolchainPtr& toolchain) {
  KnownHit hit = Hit(Headers("h"));
  hit.key = DigestOf(key);
  hit.toolchain = toolchain;
  return hit;
}

TEST(KnownLoads, AnotherToolchainIsAnotherLoad) {
  KnownLoads loads(10);
  const auto one = std::make_shared<const Toolchain>(), other = std::make_shared<const Toolchain>();
  EXPECT_EQ(loads.Find(DigestOf("a"), one), nullptr);
  loads.Add(DigestOf("a"), kUser, Load("key of a", one));
  ASSERT_NE(loads.Find(DigestOf("a"), one), nullptr);
  EXPECT_EQ(loads.Find(DigestOf("a"), one)->key, DigestOf("key of a"));
  EXPECT_EQ(loads.Find(DigestOf("a"), other), nullptr);
  EXPECT_EQ(loads.Find(DigestOf("b"), one), nullptr);
  loads.Add(DigestOf("a"), kUser, Load("key of a by the other", other));
  EXPECT_EQ(loads.Find(DigestOf("a"), one), nullptr);
  EXPECT_NE(loads.Find(DigestOf("a"), other), nullptr);
}

TEST(KnownLoads, AreBounded) {
  KnownLoads loads(2);
  const auto toolchain = std::make_shared<const Toolchain>();
  for (const char* name : {"a", "b", "c"}) {
    loads.Add(DigestOf(name), kUser, Load(name, toolchain));
    EXPECT_NE(loads.Find(DigestOf("a"), toolchain), nullptr) << "it is used again and again";
  }
  EXPECT_EQ(loads.Find(DigestOf("b"), toolchain), nullptr);
  EXPECT_NE(loads.Find(DigestOf("c"), toolchain), nullptr);
}

TEST(KnownLoads, TheUserWithMostOfThemLosesOne) {
  KnownLoads loads(3);
  const auto toolchain = std::make_shared<const Toolchain>();
  loads.Add(DigestOf("a"), kOther, Load("a", toolchain));
  for (const char* name : {"b", "c", "d"}) loads.Add(DigestOf(name), kUser, Load(name, toolchain));
  EXPECT_NE(loads.Find(DigestOf("a"), toolchain), nullptr);
  EXPECT_EQ(loads.Find(DigestOf("b"), toolchain), nullptr);
  EXPECT_NE(loads.Find(DigestOf("c"), toolchain), nullptr);
  EXPECT_NE(loads.Find(DigestOf("d"), toolchain), nullptr);
}

TEST(KnownLoads, HitsWithTheSameHeadersShareTheirList) {
  KnownLoads loads(10);
  const KnownHit one = Hit(Headers("/usr/include/math.h")), other = Hit(Headers("/usr/include/math.h"));
  loads.Add(DigestOf("a"), kUser, one);
  loads.Add(DigestOf("b"), kUser, other);
  EXPECT_EQ(loads.Find(DigestOf("a"), one.toolchain)->headers, loads.Find(DigestOf("b"), other.toolchain)->headers);
}

FileCheck::Files ManyHeaders(const std::string& name, size_t count) {
  return std::make_shared<const std::vector<WatchedFile>>(count, WatchedFile{name, std::nullopt});
}

TEST(KnownLoads, HundredsHaveListsOfTheirOwn) {
  KnownLoads loads(4096);
  std::vector<KnownHit> all;
  for (int i = 0; i < 300; ++i) {
    all.push_back(Hit(ManyHeaders(std::to_string(i), 200)));
    loads.Add(DigestOf(std::to_string(i)), kUser, all.back());
  }
  for (int i = 0; i < 300; ++i) {
    const KnownHitPtr load = loads.Find(DigestOf(std::to_string(i)), all[static_cast<size_t>(i)].toolchain);
    EXPECT_NE(load, nullptr) << i;
  }
}

TEST(KnownLoads, HeadersOfAllListsAreBounded) {
  KnownLoads loads(10'000);
  constexpr size_t kLists = 16;
  std::vector<KnownHit> all;
  for (size_t i = 0; i <= kLists; ++i) {
    all.push_back(Hit(ManyHeaders(std::to_string(i), KnownLoads::kMostHeaders / kLists)));
    loads.Add(DigestOf(std::to_string(i)), kUser, all.back());
  }
  EXPECT_EQ(loads.Find(DigestOf("0"), all[0].toolchain), nullptr) << "it was used longest ago";
  for (size_t i = kLists / 2; i <= kLists; ++i) {
    const KnownHitPtr load = loads.Find(DigestOf(std::to_string(i)), all[i].toolchain);
    EXPECT_NE(load, nullptr) << i;
  }
  const KnownHit large = Hit(ManyHeaders("large", KnownLoads::kMostHeaders + 1));
  loads.Add(DigestOf("large"), kUser, large);
  EXPECT_EQ(loads.Find(DigestOf("large"), large.toolchain), nullptr);
}

TEST(KnownLoads, LongAnswersAreNotKept) {
  KnownLoads loads(10);
  const KnownHit load = Hit(Headers("h"), KnownLoads::kMostHitBytes + 1);
  loads.Add(DigestOf("a"), kUser, load);
  EXPECT_EQ(loads.Find(DigestOf("a"), load.toolchain), nullptr);
}

TEST(KnownLoads, WhatALibraryIsMayChange) {
  BuildRequest request;
  request.link_flags = {"-fopenmp", "-Wl,-z,now"};
  EXPECT_FALSE(DependsOnFiles(request));
  request.link_flags.push_back("-lnobody_has_it_yet");
  EXPECT_TRUE(DependsOnFiles(request));
  request.link_flags.clear();
  request.flag_files = {{"", "/opt/my.specs", DigestOf("specs")}};
  EXPECT_TRUE(DependsOnFiles(request));
  request.flag_files.clear();
  request.keep = true;
  EXPECT_TRUE(DependsOnFiles(request));
}

}  // namespace
}  // namespace kernix::build
