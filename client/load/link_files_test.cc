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
using ::testing::UnorderedElementsAre;

TEST(FlagFilesTest, AreThoseThatAreThere) {
  const ScratchFolder folder;
  for (const char* name : {"a.o", "lib/libb.a", "lib/libb.so", "lib/odd.so.1", "more/libb.a", "plugin.so", "specs"}) {
    folder.Write(name, "");
  }
  const FlagFiles found =
      FindFlagFiles(Env::Posix(), v1::LANGUAGE_CPP,
                    {StrCat("-fplugin=", folder / "plugin.so"), StrCat("-DX=", folder / "a.o"), "-O2"},
                    {folder / "a.o", folder / "none.o", StrCat("-L", folder / "lib"), "-L", folder / "more", "-lb",
                     "-l", ":odd.so.1", "-lm", "-Wl,-z,now", StrCat("-specs=", folder / "specs")});
  EXPECT_THAT(found.folders, ElementsAre(folder / "lib", folder / "more"));
  EXPECT_THAT(found.files,
              UnorderedElementsAre(folder / "plugin.so", folder / "a.o", folder / "lib/libb.so", folder / "lib/libb.a",
                                   folder / "more/libb.a", folder / "lib/odd.so.1", folder / "specs"));
}

TEST(FlagFilesTest, FlagsWithoutTheirValuesNameNothing) {
  const FlagFiles found = FindFlagFiles(Env::Posix(), v1::LANGUAGE_CPP, {}, {"-l", "x", "-L"});
  EXPECT_THAT(found.files, IsEmpty());
  EXPECT_THAT(found.folders, IsEmpty());
}

TEST(FlagFilesTest, NvccsFlagsAreReadAsNvccReadsThem) {
  const ScratchFolder folder;
  const std::string library = folder.Write("lib/libb.a", "");
  const std::string plugin = folder.Write("plugin.so", "");
  const std::string lib = folder / "lib";
  for (const std::vector<std::string>& spelling : std::vector<std::vector<std::string>>{
           {"-library-path", lib}, {"-L=" + lib}, {"--library-path=" + lib}, {"-Xcompiler=-L" + lib}, {"-L" + lib}}) {
    std::vector<std::string> flags = spelling;
    flags.push_back("-lb");
    const FlagFiles found = FindFlagFiles(Env::Posix(), v1::LANGUAGE_CUDA, {"-Xcompiler=-g,-fplugin=" + plugin}, flags);
    EXPECT_THAT(found.files, ElementsAre(plugin, library)) << spelling.front();
    EXPECT_THAT(found.folders, ElementsAre(lib)) << spelling.front();
  }
}

}  // namespace
}  // namespace kernix
