// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/link_stub.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/os/elf_file.h"
#include "tests/support/test_util.h"

namespace kernix::build {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

ElfImage::Import Of(const std::string& library, const std::string& name, unsigned char type,
                    const std::string& version) {
  return {.name = name, .type = type, .version = version, .library = library};
}

TEST(LinkStubTest, WhatIsLinkedWithStubsImportsTheirNamesAndVersions) {
  const std::vector<ElfImage::Import> imports = {
      Of("libone.so.1", "one", STT_FUNC, "ONE_1"), Of("libone.so.1", "newer", STT_FUNC, "ONE_2"),
      Of("libone.so.1", "variable", STT_OBJECT, "ONE_1"), Of("libtwo.so.2", "two", STT_FUNC, "TWO")};
  const ScratchDirectory folder;
  Env& env = Env::Posix();
  ASSERT_THAT(env.WriteFile(folder / "one.so", LinkStub("libone.so.1", imports), 0600), IsOk());
  ASSERT_THAT(env.WriteFile(folder / "two.so", LinkStub("libtwo.so.2", imports), 0600), IsOk());
  ASSERT_THAT(env.WriteFile(folder / "none.so", LinkStub("libnone.so", imports), 0600), IsOk());
  const std::string source =
      "extern int variable; void one(); void newer(); void two();\n"
      "int f() { one(); newer(); two(); return variable; }\n";
  ASSERT_THAT(env.WriteFile(folder / "a.c", source, 0600), IsOk());
  ProcessSpec spec;
  spec.argv = {"/usr/bin/cc", "-shared", "-fPIC",  "-nostdlib", "-Wl,--no-undefined", "-Wl,--as-needed", "-o", "a.so",
               "a.c",         "one.so",  "two.so", "none.so"};
  spec.environment = {{"PATH", "/usr/bin:/bin"}};
  spec.working_directory = folder.path();
  const auto linked = env.RunProcess(spec, nullptr, nullptr);
  ASSERT_THAT(linked, IsOk());
  ASSERT_EQ(linked->exit_code, 0) << linked->output;

  const auto file = ElfFile::Open(folder / "a.so");
  ASSERT_THAT(file, IsOk());
  const auto imported = file->image().Imports();
  ASSERT_THAT(imported, IsOk());
  EXPECT_THAT(*imported, UnorderedElementsAre(imports[0], imports[1], imports[2], imports[3]));
  const auto libraries = file->image().NeededLibraries();
  ASSERT_THAT(libraries, IsOk());
  EXPECT_THAT(*libraries, ElementsAre("libone.so.1", "libtwo.so.2"));
}

TEST(LinkStubTest, AStubImportsNothing) {
  const std::string stub = LinkStub("libone.so.1", {Of("libone.so.1", "one", STT_FUNC, "ONE_1")});
  const auto image = ElfImage::Parse(stub);
  ASSERT_THAT(image, IsOk());
  EXPECT_THAT(*image->Imports(), IsEmpty());
}

}  // namespace
}  // namespace kernix::build
