// SPDX-License-Identifier: Apache-2.0
#include "client/load/compile_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/tools/environment.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "tests/support/client_support.h"
#include "tests/support/mem_env.h"

namespace kernix {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

TEST(SortFlagsTest, FoldersOfHeadersAreTakenOut) {
  const auto flags = SortFlags(v1::LANGUAGE_CPP, {"-O2", "-Ia", "-I", "b", "-isystem", "c", "-isystemd", "-idirafter",
                                                  "e", "-iquote", "f", "--include-directory=g", "-DX=1"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_THAT(flags->compile, ElementsAre("-O2", "-DX=1"));
  EXPECT_THAT(flags->include_paths, ElementsAre("a", "b", "f", "g"));
  EXPECT_THAT(flags->system_include_paths, ElementsAre("c", "d"));
  EXPECT_THAT(flags->last_include_paths, ElementsAre("e"));
}

TEST(SortFlagsTest, LinkerFlagsAreTakenOut) {
  const auto flags =
      SortFlags(v1::LANGUAGE_CPP, {"-lfoo", "-L/x", "-L", "/y", "-Wl,-z,now", "-Xlinker", "-v", "-Wall", "-l", "bar"});
  ASSERT_TRUE(flags.ok());
  EXPECT_THAT(flags->compile, ElementsAre("-Wall"));
  EXPECT_THAT(flags->link, ElementsAre("-lfoo", "-L/x", "-L/y", "-Wl,-z,now", "-Xlinker", "-v", "-lbar"));
}

TEST(SortFlagsTest, UnderstandsNvccsSpellings) {
  const auto flags = SortFlags(v1::LANGUAGE_CUDA, {"-I=a,b", "--include-path", "c", "-isystem=d", "--system-include=e",
                                                   "-ccbin=g++-12", "-Xcompiler", "-I/not/ours", "--library=cublas"});
  ASSERT_TRUE(flags.ok());
  EXPECT_THAT(flags->include_paths, ElementsAre("a", "b", "c"));
  EXPECT_THAT(flags->system_include_paths, ElementsAre("d", "e"));
  EXPECT_THAT(flags->compile, ElementsAre("-Xcompiler", "-I/not/ours"));
  EXPECT_THAT(flags->link, ElementsAre("-lcublas"));
  EXPECT_EQ(flags->host_compiler, "g++-12");
}

TEST(SortFlagsTest, FlagsOfNvccsAreNoLibraries) {
  const std::vector<std::string> own = {"-lineinfo", "-lto", "-ldir=/x"};
  EXPECT_EQ(SortFlags(v1::LANGUAGE_CUDA, own)->compile, own);
  EXPECT_THAT(SortFlags(v1::LANGUAGE_CUDA, {"-lineinfos", "-ltoy"})->link, ElementsAre("-lineinfos", "-ltoy"));
  EXPECT_THAT(SortFlags(v1::LANGUAGE_CPP, {"-lineinfo"})->link, ElementsAre("-lineinfo"));
}

TEST(SortFlagsTest, TheLastHostCompilerCounts) {
  EXPECT_EQ(SortFlags(v1::LANGUAGE_CUDA, {"-ccbin", "a", "--compiler-bindir=b"})->host_compiler, "b");
  EXPECT_THAT(SortFlags(v1::LANGUAGE_CPP, {"-ccbin", "a"})->compile, ElementsAre("-ccbin", "a"));
}

TEST(SortFlagsTest, AFlagWithoutItsValueIsNamed) {
  const auto flags = SortFlags(v1::LANGUAGE_CPP, {"-O2", "-I"});
  EXPECT_EQ(KindOf(flags.status()), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(flags.status().ToString(), HasSubstr("-I"));
}

TEST(AsksForWarningsTest, IsAboutWarningsOnly) {
  for (const char* flag : {"-Wall", "-Werror=unused", "-Xcompiler=-Wextra", "-Xcompiler=-fPIC,-Wall"}) {
    EXPECT_TRUE(AsksForWarnings({"-O2", flag})) << flag;
  }
  EXPECT_FALSE(AsksForWarnings({"-Wl,--gc-sections", "-Wno-all", "-w", "-W", "-DWall"}));
  EXPECT_FALSE(AsksForWarnings({}));
}

TEST(SplitShellWordsTest, SplitsAsAShellDoes) {
  EXPECT_THAT(*SplitShellWords("  a 'b c'\t\"d \\\" $e\" f\\ g h'i'\"j\" '' "),
              ElementsAre("a", "b c", "d \" $e", "f g", "hij", ""));
  EXPECT_THAT(*SplitShellWords(" \n"), IsEmpty());
  EXPECT_FALSE(SplitShellWords("a 'b").ok());
  EXPECT_FALSE(SplitShellWords("\"").ok());
  EXPECT_THAT(*SplitShellWords("a\\"), ElementsAre("a\\"));
}

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
  EXPECT_THAT(found.folders, IsSupersetOf({folder / "lib", folder / "more"}));
  EXPECT_THAT(found.files,
              UnorderedElementsAre(folder / "plugin.so", folder / "a.o", folder / "lib/libb.so", folder / "lib/libb.a",
                                   folder / "more/libb.a", folder / "lib/odd.so.1", folder / "specs"));
}

TEST(FlagFilesTest, ALinkerFindsLibrariesByItself) {
  MemEnv env;
  for (const char* file : {"/usr/local/lib/libb.a", "/usr/local/lib64/odd.so.1", "/l/libb.so"}) {
    ASSERT_TRUE(env.CreateDirectories(Dirname(file), 0755).ok() && env.WriteFile(file, "", 0644).ok());
  }
  const FlagFiles found = FindFlagFiles(env, v1::LANGUAGE_CPP, {}, {"-lb", "-l", ":odd.so.1", "-L/l", "-lnone"});
  EXPECT_THAT(found.files, UnorderedElementsAre("/l/libb.so", "/usr/local/lib/libb.a", "/usr/local/lib64/odd.so.1"));
}

TEST(FlagFilesTest, FlagsWithoutTheirValuesNameNothing) {
  const FlagFiles found = FindFlagFiles(Env::Posix(), v1::LANGUAGE_CPP, {}, {"-L/l", "x", "-L"});
  EXPECT_THAT(found.files, IsEmpty());
  EXPECT_THAT(found.folders, ElementsAre("/l"));
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
    EXPECT_THAT(found.folders, Contains(lib)) << spelling.front();
  }
}

TEST(CudaAdviceTest, AConflictMarkerIsNoLaunch) {
  const auto advice = [](const std::string& text) {
    v1::LoadRequest request;
    request.set_language(v1::LANGUAGE_CPP);
    request.add_source()->set_text(text);
    const absl::Status error = MakeError(v1::ErrorDetail::COMPILATION, "g++ failed");
    return std::string(WithCudaAdvice(request, error).message());
  };
  EXPECT_THAT(advice("\nvoid f() { k<<<1, 2>>>(); }"), HasSubstr(":2 has '<<<', which is CUDA"));
  EXPECT_EQ(advice("<<<<<<< HEAD\nint x;\n=======\nint y;\n>>>>>>> other\n"), "g++ failed");
}

}  // namespace

}  // namespace kernix
