// SPDX-License-Identifier: Apache-2.0
//
// The flags that users may pass to the linker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "tests/support/flags_fixture.h"

namespace kernix::toolchain {
namespace {

using ::testing::ElementsAre;

TEST_F(FlagsTest, CommonLinkFlagsPassAsTheyAre) {
  for (const FlagPolicy policy : kBoth) {
    for (const v1::Language language : {v1::LANGUAGE_CPP, v1::LANGUAGE_CUDA}) {
      for (const char* flags : {"-pthread", "-fopenmp", "-s", "-static-libgcc", "-static-libstdc++", "-Wl,--as-needed",
                                "-Wl,-z,now", "-Wl,--gc-sections,--exclude-libs,ALL", "-Wl,--no-undefined", "-Wl,-O1",
                                "-Wl,--build-id=sha1", "-Wl,--build-id=0xab", "-z|undefs"}) {
        EXPECT_EQ(absl::StrJoin(MustPass(language, policy, "", flags).link, "|"), flags);
      }
    }
  }
}

TEST_F(FlagsTest, LinkFlagsThatAreNeverPossible) {
  const Refusal refusals[] = {
      {"-Wl,-rpath,/home/u/lib", "LD_LIBRARY_PATH"},
      {"-Wl,-rpath=/home/u/lib", "LD_LIBRARY_PATH"},
      {"-Wl,--rpath-link,/x", "LD_LIBRARY_PATH"},
      {"-Wl,--rpat=lib", "LD_LIBRARY_PATH"},  // the linker takes abbreviations
      {"-Wl,-R/x", "LD_LIBRARY_PATH"},
      {"-rpath|/x", "LD_LIBRARY_PATH"},
      {"-Wl,--version-script=/x", "a file"},
      {"-Wl,-T,/x", "a file"},
      {"-Wl,--version-script,/x", "a file"},
      {"-T|/x", "a file"},
      {"-Wl,-Map=/x", "a file"},
      {"-Wl,-o,/x", "a file"},
      {"-Wl,-plugin,/x", "a file"},
      {"-Wl,-L/x", "by itself"},
      {"-Wl,-soname,x", "no name"},
      {"-Wl,--build-id=uuid", "--build-id=sha1"},
      {"-Wl,-build=uuid", "--build-id=sha1"},
      {"-Wl,--stats", "from run to run"},
      {"-Wl,@/x", "write the flags"},
      {"-o|x", "kernix decides"},
      {"-B/x", "CXX"},
      {"@x", "write the flags"},
      {"-pie", "shared library"},
      {"-l", "value is missing"},
      {"-l/x", "cannot contain"},
  };
  for (const FlagPolicy policy : kBoth) {
    for (const v1::Language language : {v1::LANGUAGE_CPP, v1::LANGUAGE_CUDA}) {
      for (const Refusal& refusal : refusals) ExpectRefused(language, policy, "", refusal.flags, refusal.words);
    }
  }
  ExpectRefusedLink("-Xlinker|-rpath");
}

// A word is a value only if the linker, too, sees it directly after its flag.
TEST_F(FlagsTest, WordsOfTheLinkerCannotHideAsValues) {
  EXPECT_EQ(absl::StrJoin(MustPass(v1::LANGUAGE_CPP, FlagPolicy::kShared, "", "-Xlinker|-z|-Xlinker|now").link, "|"),
            "-Wl,-z|-Wl,now");
  ExpectRefusedLink("-Wl,-z,now,-rpath,/x");
  ExpectRefusedLink("-Wl,-z|-lm|-Wl,-rpath|-Wl,/x");
  ExpectRefusedLink("-Wl,-z|-s|-Wl,-rpath|-Wl,/x");
  ExpectRefusedLink("-Wl,-z,@/x");
}

TEST_F(FlagsTest, NvccsSpellingOfLinkFlagsIsTranslated) {
  EXPECT_THAT(
      MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "", "-Xlinker=-z,now|-Xcompiler|-fopenmp|-cudart=static").link,
      ElementsAre("-Wl,-z,now", "-fopenmp"));
  EXPECT_THAT(MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "", "--library=m|--library|m").link,
              ElementsAre("-lm", "-lm"));
  EXPECT_THAT(MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "", "--l|l|-Xcompiler|-lq -s").link,
              ElementsAre("-ll", "-lq", "-s"));
  for (const char* flag : {"-Xcompiler", "-library", "--library-path", "-L"}) {
    ExpectRefused(v1::LANGUAGE_CUDA, FlagPolicy::kPerUser, "", flag, "value is missing");
  }
  ExpectRefused(v1::LANGUAGE_CUDA, FlagPolicy::kPerUser, "", "-cudart=shared", "statically");
  EXPECT_EQ(KindOf(Check(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "", "-Xlinker|-rpath,/x").status()),
            v1::ErrorDetail::INVALID_REQUEST);
}

TEST_F(FlagsTest, LibrariesOfTheCompilerAndTheToolkitGoByNameAndCountByContent) {
  const CheckedFlags checked = MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "", "-lm|-l|cublas|-lnone|-lcudart");
  EXPECT_THAT(checked.link, ElementsAre("-lm", "-l:libcublas.so.13", "-lnone"));
  ASSERT_EQ(checked.files.size(), 2u);
  EXPECT_EQ(checked.files[0].digest, DigestOf("libm"));
  EXPECT_EQ(checked.files[1].digest, DigestOf("cublas"));
  EXPECT_EQ(checked.files[0].staged, "");
}

// No compiler tells of these folders: /usr/local/lib is one of GNU ld's own. They are searched last.
TEST_F(FlagsTest, LibrariesThatTheLinkerFindsByItselfCountByContent) {
  Write("/usr/local/lib/libmine.a", "mine");
  Write("/usr/local/lib/libm.so", "another libm");
  Write("/usr/local/lib/libcublas.so", "another cublas");
  const CheckedFlags checked = MustPass(v1::LANGUAGE_CUDA, FlagPolicy::kShared, "", "-lmine|-lm|-lcublas");
  EXPECT_THAT(checked.link, ElementsAre("flag-files/L/libmine.a", "-lm", "-l:libcublas.so.13"));
  std::vector<Digest> digests;
  for (const FlagFile& file : checked.files) digests.push_back(file.digest);
  EXPECT_THAT(digests, ElementsAre(DigestOf("mine"), DigestOf("libm"), DigestOf("cublas")));
  toolchain_.cuda.reset();
  EXPECT_EQ(MustPass(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "", "-lmine").files.at(0).path,
            "/usr/local/lib/libmine.a");
}

TEST_F(FlagsTest, LibrariesOfTheUserAreStaged) {
  const CheckedFlags checked =
      MustPass(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "", "-lx|-L|/home/u/lib|-ly|-L/home/u/other|-l:libx.a");
  EXPECT_THAT(checked.link,
              ElementsAre("-Lflag-files/L0", "-l:libx.so", "flag-files/L0/liby.a", "flag-files/L0/libx.a"));
  ASSERT_EQ(checked.files.size(), 3u);
  EXPECT_EQ(checked.files[0].staged, "flag-files/L0/libx.so");
  EXPECT_EQ(checked.files[0].path, "/home/u/lib/libx.so");
  EXPECT_EQ(checked.files[0].digest, DigestOf("x shared"));
  ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kShared, "", "-L/home/u/lib", "shared");
  ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "", "-Llib", "absolute");
}

TEST_F(FlagsTest, BstaticPrefersTheStaticLibrary) {
  EXPECT_THAT(
      MustPass(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "", "-L/home/u/lib|-Wl,-Bstatic|-lx|-Wl,-Bdynamic|-lx").link,
      ElementsAre("-Wl,-Bstatic", "flag-files/L0/libx.a", "-Wl,-Bdynamic", "-Lflag-files/L0", "-l:libx.so"));
}

TEST_F(FlagsTest, ObjectsOfTheUserAreStaged) {
  const CheckedFlags checked = MustPass(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "", "/home/u/o.o|/home/u/lib/libx.so");
  EXPECT_THAT(checked.link, ElementsAre("flag-files/F0/o.o", "-Lflag-files/F1", "-l:libx.so"));
  EXPECT_EQ(checked.files.at(0).digest, DigestOf("object"));
  ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "", "/home/u/none.o", "none.o");
  ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "", "o.o", "absolute");
  ExpectRefused(v1::LANGUAGE_CPP, FlagPolicy::kShared, "", "/home/u/o.o", "shared");
}

}  // namespace
}  // namespace kernix::toolchain
