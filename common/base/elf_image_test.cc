// SPDX-License-Identifier: Apache-2.0
#include "common/base/elf_image.h"

#include <dlfcn.h>
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "common/os/elf_file.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A shared object from the real compiler.
const std::string& RealObject() {
  static const std::string& bytes = *new std::string([] {
    const ScratchDirectory folder;
    Env& env = Env::Posix();
    const std::string source =
        "#include <string>\n"
        "#include <stdexcept>\n"
        "#include <cstdio>\n"
        "asm(\".section .kx.one,\\\"\\\",@progbits\\n.ascii \\\"1\\\"\\n\"\n"
        "    \".section .kx.two,\\\"\\\",@progbits\\n.ascii \\\"22\\\"\\n.text\");\n"
        "extern \"C\" void exported(int n) { std::puts(\"\"); if (n > 3) throw std::runtime_error(std::to_string(n)); "
        "}\n"
        "extern \"C\" __attribute__((visibility(\"hidden\"))) void hidden_one() {}\n"
        "static void local_one() {}\n"
        "extern \"C\" __attribute__((weak)) void weak_one() { local_one(); }\n";
    EXPECT_THAT(env.WriteFile(folder / "a.cc", source, 0600), IsOk());
    ProcessSpec spec;
    spec.argv = {"/usr/bin/c++", "-shared", "-fPIC", "-o", "a.so", "a.cc"};
    spec.environment = {{"PATH", "/usr/bin:/bin"}};
    spec.working_directory = folder.path();
    const auto result = env.RunProcess(spec, nullptr, nullptr);
    EXPECT_THAT(result, IsOk());
    return env.ReadFile(folder / "a.so").value_or("");
  }());
  return bytes;
}

TEST(ElfImageTest, NamesWhatIsExported) {
  const auto image = ElfImage::Parse(RealObject());
  ASSERT_THAT(image, IsOk());
  const auto symbols = image->ExportedSymbols();
  ASSERT_THAT(symbols, IsOk());
  EXPECT_THAT(*symbols, Contains("exported"));
  EXPECT_THAT(*symbols, Contains("weak_one"));
  EXPECT_THAT(*symbols, Not(Contains("hidden_one")));
  EXPECT_THAT(*symbols, Not(Contains("local_one")));
  EXPECT_THAT(*symbols, Not(Contains("__cxa_throw")));  // imported only
}

TEST(ElfImageTest, NamesTheVersionsThatAreNeeded) {
  const auto versions = ElfImage::Parse(RealObject())->NeededVersions();
  ASSERT_THAT(versions, IsOk());
  EXPECT_THAT(*versions, Contains(HasSubstr("GLIBCXX_3.4")));
  EXPECT_THAT(*versions, Contains(HasSubstr("CXXABI_1.3")));
  EXPECT_THAT(*versions, Contains(HasSubstr("GLIBC_2")));
}

TEST(ElfImageTest, NamesTheLibrariesThatAreNeeded) {
  const auto libraries = ElfImage::Parse(RealObject())->NeededLibraries();
  ASSERT_THAT(libraries, IsOk());
  EXPECT_THAT(*libraries, Contains("libc.so.6"));
  EXPECT_THAT(*libraries, Contains(HasSubstr("libstdc++.so")));
}

TEST(ElfImageTest, NamesWhatIsImportedFromWhere) {
  const auto imports = ElfImage::Parse(RealObject())->Imports();
  ASSERT_THAT(imports, IsOk());
  const auto find = [&](std::string_view name) {
    const auto found =
        std::find_if(imports->begin(), imports->end(), [&](const auto& one) { return one.name == name; });
    return found == imports->end() ? ElfImage::Import() : *found;
  };
  const ElfImage::Import thrown = find("__cxa_throw");
  EXPECT_EQ(thrown.version, "CXXABI_1.3");
  EXPECT_THAT(thrown.library, HasSubstr("libstdc++.so"));
  EXPECT_EQ(find("puts").library, "libc.so.6");
  EXPECT_EQ(find("exported"), ElfImage::Import());
}

// What a library offers is what the linker makes of it.
TEST(ElfImageTest, NamesWhatALibraryOffersToOthers) {
  const auto imports = ElfImage::Parse(RealObject())->Imports();
  ASSERT_THAT(imports, IsOk());
  absl::flat_hash_set<std::string_view> names = {"no_such_name"};
  std::vector<ElfImage::Import> of_libc;
  for (const ElfImage::Import& import : *imports) {
    names.insert(import.name);
    if (import.library == "libc.so.6") of_libc.push_back(import);
  }
  std::sort(of_libc.begin(), of_libc.end());
  ASSERT_THAT(of_libc, Not(IsEmpty()));
  const auto libc = ElfFile::Open("/lib/x86_64-linux-gnu/libc.so.6");
  if (!libc.ok()) GTEST_SKIP() << "libc is elsewhere: " << libc.status();
  EXPECT_EQ(*libc->image().OwnName(), "libc.so.6");
  const auto offers = libc->image().OffersOf(names);
  ASSERT_THAT(offers, IsOk());
  EXPECT_EQ(*offers, of_libc);

  EXPECT_TRUE(absl::IsNotFound(ElfImage::Parse(RealObject())->OwnName().status()));
  EXPECT_TRUE(absl::IsNotFound(ElfImage::Parse(RealObject())->OffersOf({"exported"}).status()));
}

// memcpy has an older version, which what is linked today does not get.
TEST(ElfImageTest, OffersADefaultVersionOnly) {
  const auto libc = ElfFile::Open("/lib/x86_64-linux-gnu/libc.so.6");
  if (!libc.ok()) GTEST_SKIP() << "libc is elsewhere: " << libc.status();
  const auto offers = libc->image().OffersOf({"memcpy"});
  ASSERT_THAT(offers, IsOk());
  ASSERT_EQ(offers->size(), 1u);
  EXPECT_EQ(offers->front().version, "GLIBC_2.14");
}

TEST(ElfImageTest, ReadsTheSymbolsOfAnObjectForTheLinker) {
  const ScratchDirectory folder;
  Env& env = Env::Posix();
  ASSERT_THAT(
      env.WriteFile(folder / "a.c", "static int here; int needed(int*); int f() { return needed(&here); }\n", 0600),
      IsOk());
  ProcessSpec spec;
  spec.argv = {"/usr/bin/cc", "-c", "-o", "a.o", "a.c"};
  spec.environment = {{"PATH", "/usr/bin:/bin"}};
  spec.working_directory = folder.path();
  ASSERT_THAT(env.RunProcess(spec, nullptr, nullptr), IsOk());
  const std::string bytes = env.ReadFile(folder / "a.o").value();
  EXPECT_TRUE(absl::IsInvalidArgument(ElfImage::Parse(bytes).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ElfImage::ParseObject(RealObject()).status()));
  const auto object = ElfImage::ParseObject(bytes);
  ASSERT_THAT(object, IsOk());
  const auto symbols = object->Symbols();
  ASSERT_THAT(symbols, IsOk());
  const auto is = [&](std::string_view name, bool local, bool defined) {
    return std::any_of(symbols->begin(), symbols->end(), [&](const ElfImage::Symbol& symbol) {
      return symbol.name == name && symbol.is_local == local && symbol.is_defined == defined;
    });
  };
  EXPECT_TRUE(is("here", true, true));
  EXPECT_TRUE(is("f", false, true));
  EXPECT_TRUE(is("needed", false, false));
}

TEST(ElfImageTest, FindsASectionByItsName) {
  const auto image = ElfImage::Parse(RealObject());
  EXPECT_EQ(image->SectionNamed(".kx.one").value(), "1");
  EXPECT_EQ(image->SectionNamed(".kx.two").value(), "22");
  EXPECT_TRUE(absl::IsNotFound(image->SectionNamed(".kx.").status()));
}

// What other programs think of the object: the loader opens it, and readelf has nothing to say against it.
TEST(AddSectionTest, TheObjectWorksAsBefore) {
  std::string object = RealObject();
  const std::string content(5001, 'x');
  ASSERT_THAT(AddSection(".kx.three", content, object), IsOk());
  ASSERT_THAT(AddSection(".kx.four", "4", object), IsOk());
  const auto image = ElfImage::Parse(object);
  ASSERT_THAT(image, IsOk());
  EXPECT_EQ(image->SectionNamed(".kx.two").value(), "22");
  EXPECT_EQ(image->SectionNamed(".kx.three").value(), content);
  EXPECT_EQ(image->SectionNamed(".kx.four").value(), "4");
  EXPECT_THAT(image->ExportedSymbols().value(), Contains("exported"));

  const ScratchDirectory folder;
  ASSERT_THAT(Env::Posix().WriteFile(folder / "k.so", object, 0600), IsOk());
  void* library = dlopen((folder / "k.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_NE(dlsym(library, "exported"), nullptr);
  dlclose(library);
  ProcessSpec spec;
  spec.argv = {"/usr/bin/readelf", "--wide", "--all", "--enable-checks", "k.so"};
  spec.environment = {{"LC_ALL", "C"}};
  spec.working_directory = folder.path();
  const auto read = Env::Posix().RunProcess(spec, nullptr, nullptr);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->exit_code, 0);
  EXPECT_THAT(read->output, HasSubstr(".kx.three"));
  EXPECT_THAT(read->output, Not(HasSubstr("Warning")));
}

TEST(AddSectionTest, RefusesWhatItCannotExtend) {
  std::string twice = RealObject();
  EXPECT_TRUE(absl::IsDataLoss(AddSection(".kx.one", "forged", twice)));
  EXPECT_EQ(twice, RealObject());
  std::string text = "no object";
  EXPECT_TRUE(absl::IsInvalidArgument(AddSection(".kx", "1", text)));
  EXPECT_EQ(text, "no object");
  const auto damage = [](auto&& change) {
    std::string object = RealObject();
    Elf64_Ehdr header;
    std::memcpy(&header, object.data(), sizeof(header));
    change(header);
    std::memcpy(object.data(), &header, sizeof(header));
    const std::string before = object;
    EXPECT_FALSE(AddSection(".kx", "1", object).ok());
    EXPECT_EQ(object, before);
  };
  damage([](Elf64_Ehdr& header) { header.e_shoff = ~0ull; });
  damage([](Elf64_Ehdr& header) { header.e_phoff = ~0ull; });
  damage([](Elf64_Ehdr& header) { header.e_shnum = 0; });
  damage([](Elf64_Ehdr& header) { header.e_shnum = 0xfeff; });
  damage([](Elf64_Ehdr& header) { header.e_shstrndx = header.e_shnum; });
  damage([](Elf64_Ehdr& header) { header.e_shoff -= 32; });  // so that the names' place is nonsense
}

TEST(ElfFileTest, IsReadFromTheDisk) {
  const ScratchDirectory folder;
  Env& env = Env::Posix();
  ASSERT_THAT(env.WriteFile(folder / "k.so", RealObject(), 0600), IsOk());
  const auto file = ElfFile::Open(folder / "k.so");
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->bytes(), RealObject());
  EXPECT_EQ(file->image().SectionNamed(".kx.two").value(), "22");
  EXPECT_TRUE(absl::IsNotFound(ElfFile::Open(folder / "none.so").status()));
  ASSERT_THAT(env.WriteFile(folder / "empty.so", "", 0600), IsOk());
  EXPECT_TRUE(absl::IsInvalidArgument(ElfFile::Open(folder / "empty.so").status()));
}

TEST(SymbolVersionTest, HasAFamilyAndANumber) {
  const auto version = SymbolVersion::Parse("GLIBCXX_3.4.30");
  ASSERT_TRUE(version.has_value());
  EXPECT_EQ(version->family, "GLIBCXX");
  EXPECT_THAT(version->number, ElementsAre(3, 4, 30));
  for (const char* name : {"", "odd", "GLIBC_", "GLIBC_PRIVATE", "GLIBC_ABI_DT_RELR", "GLIBC_2.x"}) {
    EXPECT_FALSE(SymbolVersion::Parse(name).has_value()) << name;
  }
}

TEST(ElfImageTest, RefusesWhatIsNoSharedObject) {
  EXPECT_FALSE(ElfImage::Parse("").ok());
  EXPECT_FALSE(ElfImage::Parse("\x7f"
                               "ELF")
                   .ok());
  EXPECT_FALSE(ElfImage::Parse(std::string(5000, 'x')).ok());
  std::string executable = RealObject();
  executable[offsetof(Elf64_Ehdr, e_type)] = ET_EXEC;
  EXPECT_FALSE(ElfImage::Parse(executable).ok());
  std::string other_machine = RealObject();
  other_machine[offsetof(Elf64_Ehdr, e_machine)] = EM_ARM;
  EXPECT_FALSE(ElfImage::Parse(other_machine).ok());
}

TEST(ElfImageTest, EveryCutIsRefused) {
  const std::string& bytes = RealObject();
  for (size_t size = 0; size < bytes.size(); size += 97) {
    EXPECT_FALSE(ElfImage::Parse(std::string_view(bytes).substr(0, size)).ok()) << size;
  }
}

// Asserts nothing about the results. Under the sanitizers, this test shows that every read stays within bounds.
TEST(ElfImageTest, DamageIsSurvived) {
  std::mt19937 random(1);
  int answers = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = RealObject();
    for (int flips = 0; flips < 8; ++flips) {
      // Most of the structure is at the beginning and the end.
      const size_t at = random() % 2 == 0 ? random() % 4096 : bytes.size() - 1 - random() % 4096;
      bytes[at] = static_cast<char>(random());
    }
    const auto image = ElfImage::Parse(bytes);
    if (!image.ok()) continue;
    answers += image->ExportedSymbols().ok();
    answers += image->NeededVersions().ok();
    answers += image->NeededLibraries().ok();
    answers += image->OffersOf({"exported"}).ok();
    answers += image->SectionNamed(".kx.two").ok();
    answers += AddSection(".kx", "1", bytes).ok();  // ends the views into `bytes`
  }
  EXPECT_GT(answers, 0);
}

TEST(ElfImageTest, AChainThatRunsInCirclesEnds) {
  std::string bytes = RealObject();
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  for (int i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    char* at = bytes.data() + header.e_shoff + i * sizeof(section);
    std::memcpy(&section, at, sizeof(section));
    if (section.sh_type != SHT_GNU_verneed) continue;
    Elf64_Verneed need;
    std::memcpy(&need, bytes.data() + section.sh_offset, sizeof(need));
    need.vn_cnt = 0xffff;
    std::memcpy(bytes.data() + section.sh_offset, &need, sizeof(need));
    Elf64_Vernaux first;
    std::memcpy(&first, bytes.data() + section.sh_offset + need.vn_aux, sizeof(first));
    first.vna_next = 0;
    std::memcpy(bytes.data() + section.sh_offset + need.vn_aux, &first, sizeof(first));
  }
  EXPECT_TRUE(absl::IsDataLoss(ElfImage::Parse(bytes)->NeededVersions().status()));
}

TEST(NewestRuntimeVersionsTest, ComparesByNumberAndKeepsTheFamiliesOfTheRuntime) {
  EXPECT_THAT(
      NewestRuntimeVersions({"GLIBC_2.9", "GLIBC_2.34", "GLIBC_2.4", "GLIBCXX_3.4", "GLIBCXX_3.4.30", "GLIBCXX_3.4.9",
                             "CXXABI_1.3", "GCC_3.0", "GCC_12.0.0", "OMP_1.0", "odd", "GLIBC_PRIVATE"}),
      ElementsAre("CXXABI_1.3", "GCC_12.0.0", "GLIBC_2.34", "GLIBCXX_3.4.30"));
  EXPECT_THAT(NewestRuntimeVersions({}), IsEmpty());
}

}  // namespace

}  // namespace kernix
