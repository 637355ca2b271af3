// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/known_loads.h"

#include <gtest/gtest.h>

namespace kernix::build {
namespace {

using toolchain::Toolchain;
using toolchain::ToolchainPtr;

KnownLoadPtr Load(const std::string& key, const ToolchainPtr& toolchain) {
  return std::make_shared<const KnownLoad>(KnownLoad{DigestOf(key), toolchain, {}});
}

TEST(KnownLoads, AnotherToolchainIsAnotherLoad) {
  KnownLoads loads(10);
  const auto one = std::make_shared<const Toolchain>(), other = std::make_shared<const Toolchain>();
  EXPECT_EQ(loads.Find(DigestOf("a"), one), nullptr);
  loads.Add(DigestOf("a"), Load("key of a", one));
  ASSERT_NE(loads.Find(DigestOf("a"), one), nullptr);
  EXPECT_EQ(loads.Find(DigestOf("a"), one)->key, DigestOf("key of a"));
  EXPECT_EQ(loads.Find(DigestOf("a"), other), nullptr);
  EXPECT_EQ(loads.Find(DigestOf("b"), one), nullptr);
  loads.Add(DigestOf("a"), Load("key of a by the other", other));
  EXPECT_EQ(loads.Find(DigestOf("a"), one), nullptr);
  EXPECT_NE(loads.Find(DigestOf("a"), other), nullptr);
}

TEST(KnownLoads, AreBounded) {
  KnownLoads loads(2);
  const auto toolchain = std::make_shared<const Toolchain>();
  for (const char* name : {"a", "b", "c"}) loads.Add(DigestOf(name), Load(name, toolchain));
  EXPECT_EQ(loads.Find(DigestOf("a"), toolchain), nullptr);
  EXPECT_EQ(loads.Find(DigestOf("b"), toolchain), nullptr);
  EXPECT_NE(loads.Find(DigestOf("c"), toolchain), nullptr);
}

TEST(KnownLoads, LongWarningsAreNotKept) {
  KnownLoads loads(2);
  const auto toolchain = std::make_shared<const Toolchain>();
  KnownLoad load{DigestOf("a"), toolchain, {}};
  load.warnings.emplace_back().set_text(std::string(KnownLoads::kMostWarningBytes, 'x'));
  loads.Add(DigestOf("a"), std::make_shared<const KnownLoad>(load));
  EXPECT_EQ(loads.Find(DigestOf("a"), toolchain), nullptr);
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
