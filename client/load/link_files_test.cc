// SPDX-License-Identifier: Apache-2.0
#include "client/load/link_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/strings.h"
#include "tests/support/client_support.h"

namespace kernix {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::ScratchFolder;

TEST(FlagFilesTest, AreThoseThatAreThere) {
  const ScratchFolder folder;
  for (const char* name : {"a.o", "lib/libb.a", "lib/libb.so", "lib/odd.so.1", "more/libb.a", "profile"}) {
    folder.Write(name, "");
  }
  const FlagFiles found =
      FindFlagFiles(Env::Posix(), {StrCat("-fprofile-use=", folder / "profile"), "-DX=/nowhere", "-O2"},
                    {folder / "a.o", folder / "none.o", StrCat("-L", folder / "lib"), "-L", folder / "more", "-lb",
                     "-l", ":odd.so.1", "-lm", "-Wl,-z,now"});
  EXPECT_THAT(found.folders, ElementsAre(folder / "lib", folder / "more"));
  EXPECT_THAT(found.files, ElementsAre(folder / "profile", folder / "a.o", folder / "lib/libb.so",
                                       folder / "lib/libb.a", folder / "more/libb.a", folder / "lib/odd.so.1"));
}

TEST(FlagFilesTest, FlagsWithoutTheirValuesNameNothing) {
  const FlagFiles found = FindFlagFiles(Env::Posix(), {}, {"-l", "x", "-L"});
  EXPECT_THAT(found.files, IsEmpty());
  EXPECT_THAT(found.folders, IsEmpty());
}

}  // namespace
}  // namespace kernix
