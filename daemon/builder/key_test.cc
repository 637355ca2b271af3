// SPDX-License-Identifier: Apache-2.0
//
// Loads get different keys if their artifacts depend on different data.
#include <gtest/gtest.h>

#include "tests/support/testing_load.h"

namespace kernix::build {
namespace {

TEST(KeyTest, TheOrderInWhichFoldersAreSearchedCounts) {
  KERNIX_NEED_PROGRAM(compiler, "g++");
  TestBuilder t(TestBuilder::On::kInlineExecutor);
  const std::string zero = "#define WHICH 0\n", one = "#define WHICH 1\n";
  v1::LoadRequest request = CppRequest(compiler);
  request.mutable_options()->set_separate_units(true);
  v1::Source& source = *request.mutable_source(0);
  source.mutable_text()->append("#include <which.h>\nextern \"C\" int which() { return WHICH; }\n");
  AddHeader(request, 0, "which.h", zero);
  AddHeader(request, 1, "which.h", one);
  const auto load = [&](uint32_t first, uint32_t second) {
    source.clear_include_root();
    source.add_include_root(first);
    source.add_include_root(second);
    RecordingObserver observer({zero, one});
    return t.Load(request, observer);
  };
  const auto a = load(0, 1);
  const auto b = load(1, 0);
  ASSERT_THAT(a, IsOk());
  ASSERT_THAT(b, IsOk());
  EXPECT_NE(a->key(), b->key());
  EXPECT_NE(a->artifact_digest(), b->artifact_digest());
}

// Otherwise nodes of a fleet could not share what their users' own kernixds and a machine's service have built.
TEST(KeyTest, SharedAndPrivateDaemonsAgree) {
  KERNIX_NEED_PROGRAM(compiler, "g++");
  TestBuilder owned(TestBuilder::On::kInlineExecutor);
  TestBuilder shared(TestBuilder::On::kInlineExecutor, {.flag_policy = toolchain::FlagPolicy::kShared});
  const v1::LoadRequest request = CppRequest(compiler);
  const auto own_load = owned.Load(request), shared_load = shared.Load(request);
  ASSERT_THAT(own_load, IsOk());
  ASSERT_THAT(shared_load, IsOk());
  EXPECT_EQ(own_load->key(), shared_load->key());
  EXPECT_EQ(own_load->artifact_digest(), shared_load->artifact_digest());
}

TEST(KeyTest, WhatLinksForLinkTimeOptimizationCountsForThemAlone) {
  KERNIX_NEED_PROGRAM(compiler, "g++");
  TestBuilder t(TestBuilder::On::kInlineExecutor, {}, TestBuilder::Tools::kOwn);
  const v1::LoadRequest plain = CppRequest(compiler);
  v1::LoadRequest lto = plain;
  lto.mutable_options()->add_compile_flags("-flto");
  const auto toolchain = t.toolchains().Resolve(plain.toolchain(), v1::LANGUAGE_CPP);
  ASSERT_THAT(toolchain, IsOk());
  if ((*toolchain)->host.lto_programs.empty()) GTEST_SKIP() << compiler << " has no lto1";
  const auto plain_before = t.Load(plain), lto_before = t.Load(lto);
  t.env.PretendChanged((*toolchain)->host.lto_programs.front());
  const auto plain_after = t.Load(plain), lto_after = t.Load(lto);
  for (const auto& load : {plain_before, lto_before, plain_after, lto_after}) ASSERT_THAT(load, IsOk());
  EXPECT_EQ(plain_after->key(), plain_before->key());
  EXPECT_TRUE(plain_after->cache_hit());
  EXPECT_NE(lto_after->key(), lto_before->key());
  EXPECT_FALSE(lto_after->cache_hit());
}

}  // namespace
}  // namespace kernix::build
