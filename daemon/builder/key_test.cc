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

}  // namespace
}  // namespace kernix::build
