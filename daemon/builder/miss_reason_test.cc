// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/miss_reason.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/strings.h"

namespace kernix::build {
namespace {

using cache::BuildInput;
using cache::BuiltFrom;
using cache::InputKind;

std::vector<BuildInput> Sorted(std::vector<BuildInput> inputs) {
  std::sort(inputs.begin(), inputs.end());
  return inputs;
}

std::string Reason(std::vector<BuildInput> now, std::vector<BuildInput> before) {
  return CompareWithEarlier(Sorted(std::move(now)), {{Digest(), Sorted(std::move(before))}}).reason;
}

const BuildInput kSource{InputKind::kSource, "k.cu", "1"};

TEST(MissReasonTest, WithoutAnEarlierBuildTheSourceIsNew) {
  EXPECT_EQ(CompareWithEarlier({kSource}, {}).reason, "new source");
}

TEST(MissReasonTest, FilesAreChangedNewOrGone) {
  EXPECT_EQ(Reason({kSource}, {{InputKind::kSource, "k.cu", "2"}}), "source k.cu changed");
  const BuildInput a{InputKind::kHeader, "a.h", "1"}, b{InputKind::kHeader, "b.h", "1"};
  EXPECT_EQ(Reason({kSource, a}, {kSource, b}), "header a.h is new; header b.h is gone");
  EXPECT_EQ(Reason({kSource, a, a}, {kSource, a}), "header a.h is new") << "the same file in two folders";
}

TEST(MissReasonTest, SettingsAreWhatTheyAreAndWhatTheyWere) {
  const BuildInput fast{InputKind::kFlag, "--use-fast-math", ""};
  const BuildInput o2{InputKind::kFlag, "-O2", ""}, o3{InputKind::kFlag, "-O3", ""};
  EXPECT_EQ(Reason({o2, fast}, {o3}), "other flags: --use-fast-math, -O2, was -O3");
  EXPECT_EQ(Reason({o2, fast}, {o2}), "other flags: now also --use-fast-math");
  EXPECT_EQ(Reason({o2}, {o2, fast}), "other flags: no longer --use-fast-math");
  const BuildInput gcc{InputKind::kTool, "GCC 12.2.0", "1"};
  EXPECT_EQ(Reason({gcc}, {{InputKind::kTool, "GCC 12.2.0", "2"}}), "other toolchain: GCC 12.2.0 changed");
  EXPECT_EQ(Reason({gcc}, {{InputKind::kTool, "GCC 11.4.0", "2"}}), "other toolchain: GCC 12.2.0, was GCC 11.4.0");
}

TEST(MissReasonTest, ALongListIsShortened) {
  std::vector<BuildInput> headers;
  for (int i = 0; i < 9; ++i) headers.push_back({InputKind::kHeader, StrCat(i, ".h"), "1"});
  EXPECT_EQ(Reason(headers, {kSource}), "source k.cu is gone; headers 0.h, 1.h, 2.h and 6 more are new");
}

TEST(MissReasonTest, AnotherKernixdExplainsOnlyWhatNothingElseDoes) {
  const BuildInput now{InputKind::kKernix, "", "1"}, before{InputKind::kKernix, "", "2"};
  EXPECT_EQ(Reason({kSource, now}, {kSource, before}),
            "other kernix: another build of kernixd made the earlier kernel");
  EXPECT_EQ(Reason({kSource, now}, {before}), "source k.cu is new");
  EXPECT_EQ(Reason({kSource}, {kSource}), "other order: of flags, sources, functions or include paths");
}

TEST(MissReasonTest, TheNearestOfTheEarlierBuildsIsCompared) {
  const BuildInput h{InputKind::kHeader, "x.h", "1"}, flag{InputKind::kFlag, "-g", ""};
  const std::vector<BuiltFrom> earlier = {{Digest(), {{InputKind::kHeader, "x.h", "2"}}},
                                          {Digest(), Sorted({kSource, flag, {InputKind::kHeader, "x.h", "2"}})}};
  EXPECT_EQ(CompareWithEarlier(Sorted({kSource, h, flag}), earlier).reason, "header x.h changed");
}

TEST(MissReasonTest, BuildsOfAnotherLanguageAreNotCompared) {
  const BuildInput architecture{InputKind::kArchitecture, "sm_90", ""};
  const BuildInput cpp{InputKind::kSource, "k.cpp", "2"};
  EXPECT_EQ(Reason({cpp}, {kSource, architecture}), "new source");
  EXPECT_EQ(Reason({kSource, architecture}, {cpp}), "new source");
}

TEST(MissReasonTest, ItIsOneLineThatCanBePrinted) {
  EXPECT_EQ(Reason({{InputKind::kSource, "a\n\x1b[2J", "1"}}, {kSource}),
            "source a\\x0a\\x1b[2J is new; source k.cu is gone");
}

}  // namespace
}  // namespace kernix::build
