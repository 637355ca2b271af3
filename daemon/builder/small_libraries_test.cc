// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/small_libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/base/elf_image.h"
#include "daemon/plan/link_stub.h"
#include "tests/support/test_util.h"

namespace kernix::build {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::UnorderedElementsAre;

class SmallLibrariesTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_THAT(env_.CreateDirectories(folder_ / "lib", 0700), IsOk()); }

  void Write(const std::string& name, const std::string& content) {
    ASSERT_THAT(env_.WriteFile(folder_ / ("lib/" + name), content, 0600), IsOk());
  }

  // A shared library with a symbol of each name.
  void WriteLibrary(const std::string& name, const std::vector<std::string>& symbols) {
    const std::string own_name = name + ".1";
    std::string source;
    std::string versions = "VERSION_1 { global:";
    for (const std::string& symbol : symbols) {
      source += StrCat("void ", symbol, "(void) {}\n");
      versions += StrCat(" ", symbol, ";");
    }
    Write("a.c", source);
    Write("a.map", versions + " local: *; };\n");
    ProcessSpec spec;
    spec.argv = {
        "/usr/bin/cc", "-shared", "-fPIC", "-nostdlib", StrCat("-Wl,-soname,", own_name), "-Wl,--version-script,a.map",
        "-o",          name,      "a.c"};
    spec.environment = {{"PATH", "/usr/bin:/bin"}};
    spec.working_directory = folder_ / "lib";
    const auto linked = env_.RunProcess(spec, nullptr, nullptr);
    ASSERT_THAT(linked, IsOk());
    ASSERT_EQ(linked->exit_code, 0) << linked->output;
  }

  absl::StatusOr<SmallLibraries> Make(const std::vector<std::string>& names,
                                      const std::vector<std::string>& libraries = {"libone.so"}) {
    return MakeSmallLibraries(env_, {folder_ / "lib"}, libraries, names);
  }

  static std::map<std::string, std::string> Files(const SmallLibraries& small) {
    std::map<std::string, std::string> files;
    for (const exec::InputFile& file : small.files) files[file.path] = *file.content;
    return files;
  }

  Env& env_ = Env::Posix();
  const ScratchDirectory folder_;
};

TEST_F(SmallLibrariesTest, HaveTheNamesThatAreNeeded) {
  WriteLibrary("libone.so", {"first", "second", "third"});
  const auto small = Make({"second", "nowhere"});
  ASSERT_THAT(small, IsOk());
  EXPECT_THAT(small->names, ElementsAre("nowhere", "second"));
  const auto files = Files(*small);
  ASSERT_THAT(files, ElementsAre(Key("kernix-libraries/libone.so")));
  const auto image = ElfImage::Parse(files.begin()->second);
  ASSERT_THAT(image, IsOk());
  EXPECT_THAT(files.begin()->second, HasSubstr("libone.so.1"));
  EXPECT_THAT(*image->ExportedSymbols(), UnorderedElementsAre("second"));
}

TEST_F(SmallLibrariesTest, AScriptNamesTheSmallLibraryInItsPlace) {
  WriteLibrary("libone.so", {"first"});
  ASSERT_THAT(env_.Rename(folder_ / "lib/libone.so", folder_ / "lib/libone.so.1"), IsOk());
  const std::string library = folder_ / "lib/libone.so.1";
  Write("libone.so",
        StrCat("/* a script */\nGROUP ( ", library, " /lib/one_nonshared.a  AS_NEEDED ( /lib/libmore.so.3 ) )\n"));
  const auto small = Make({"first"});
  ASSERT_THAT(small, IsOk());
  const auto files = Files(*small);
  EXPECT_THAT(files, ElementsAre(Key("kernix-libraries/libone.so"), Key("kernix-libraries/libone.so.1")));
  EXPECT_EQ(files.at("kernix-libraries/libone.so"),
            "/* a script */\nGROUP ( libone.so.1 /lib/one_nonshared.a  AS_NEEDED ( /lib/libmore.so.3 ) )\n");
}

TEST_F(SmallLibrariesTest, WhatStartFilesNeedIsThereToo) {
  WriteLibrary("libone.so", {"first", "finalize"});
  Write("a.c", "void finalize(void) __attribute__((weak)); void (*kept)(void) = finalize;\n");
  ProcessSpec spec;
  spec.argv = {"/usr/bin/cc", "-c", "-fPIC", "-o", "crtbeginS.o", "a.c"};
  spec.environment = {{"PATH", "/usr/bin:/bin"}};
  spec.working_directory = folder_ / "lib";
  ASSERT_THAT(env_.RunProcess(spec, nullptr, nullptr), IsOk());
  const auto small = Make({});
  ASSERT_THAT(small, IsOk());
  EXPECT_THAT(small->names, ElementsAre("finalize"));
  const auto image = ElfImage::Parse(*small->files.front().content);
  EXPECT_THAT(*image->ExportedSymbols(), UnorderedElementsAre("finalize"));
}

TEST_F(SmallLibrariesTest, AScriptOfAnotherFormGivesNone) {
  WriteLibrary("libone.so", {"first"});
  ASSERT_THAT(env_.Rename(folder_ / "lib/libone.so", folder_ / "lib/libone.so.1"), IsOk());
  const std::string library = folder_ / "lib/libone.so.1";
  for (const std::string& script :
       {std::string("INPUT ( -lthree )"), StrCat("INPUT ( ", library, " -lone_nonshared )"),
        StrCat("GROUP ( ", library, " -lmore )"), StrCat("GROUP ( ", library, " /lib/other.a )"),
        StrCat("GROUP ( ", library), std::string("GROUP ( libone.so.1 )"), std::string("/* no end"), std::string()}) {
    Write("libone.so", script);
    EXPECT_FALSE(Make({"first"}).ok()) << script;
  }
  Write("libone.so", StrCat("GROUP ( ", library, " )"));
  EXPECT_THAT(Make({"first"}), IsOk());
}

// The linker reads the path below the sysroot.
TEST_F(SmallLibrariesTest, AScriptThatNamesAnotherFolderGivesNone) {
  WriteLibrary("libone.so", {"first"});
  ASSERT_THAT(env_.CreateDirectories(folder_ / "host", 0700), IsOk());
  ASSERT_THAT(env_.Rename(folder_ / "lib/libone.so", folder_ / "host/libone.so.1"), IsOk());
  const std::string library = folder_ / "host/libone.so.1";
  Write("libone.so", StrCat("GROUP ( ", library, " )"));
  EXPECT_FALSE(Make({"first"}).ok());
}

TEST_F(SmallLibrariesTest, ALibraryWithoutVersionsGivesNone) {
  Write("a.c", "void first(void) {}\n");
  ProcessSpec spec;
  spec.argv = {"/usr/bin/cc", "-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libone.so.1", "-o", "libone.so", "a.c"};
  spec.environment = {{"PATH", "/usr/bin:/bin"}};
  spec.working_directory = folder_ / "lib";
  ASSERT_THAT(env_.RunProcess(spec, nullptr, nullptr), IsOk());
  EXPECT_TRUE(absl::IsNotFound(Make({"first"}).status()));
}

// As where libstdc++ is an archive.
TEST_F(SmallLibrariesTest, WithoutOneOfTheLibrariesThereAreNone) {
  WriteLibrary("libone.so", {"first"});
  EXPECT_TRUE(absl::IsNotFound(Make({"first"}, {"libone.so", "libtwo.so"}).status()));
}

}  // namespace
}  // namespace kernix::build
