// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "client/runtime/handlers.h"
#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/wire/artifact_texts.h"
#include "kernix/call_frame.h"
#include "tests/support/client_support.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const RuntimeVersions& Debian() {
  static const auto* versions = new RuntimeVersions{
      .libc_version = "2.36",
      .libraries = {{"GLIBC_2.2.5", "/lib/libc.so.6"},
                    {"GLIBC_ABI_DT_RELR", "/lib/libc.so.6"},
                    {"GLIBCXX_3.4.9", "/lib/libstdc++.so.6"},
                    {"GLIBCXX_3.4.30", "/lib/libstdc++.so.6"},
                    {"CXXABI_1.3.13", "/lib/libstdc++.so.6"}},
  };
  return *versions;
}

TEST(SymbolVersionsTest, KnowsThoseOfThisProcess) {
  const RuntimeVersions versions = LoadedRuntimeVersions();
  EXPECT_FALSE(versions.libc_version.empty());
  EXPECT_TRUE(versions.libraries.contains("GLIBC_2.2.5"));
  EXPECT_TRUE(versions.libraries.contains("GLIBCXX_3.4.21"));
  EXPECT_TRUE(versions.libraries.contains("CXXABI_1.3"));
}

TEST(SymbolVersionsTest, OldEnoughPasses) {
  EXPECT_TRUE(CheckSymbolVersions({"GLIBC_2.34", "GLIBC_2.36", "GLIBC_ABI_DT_RELR", "GLIBCXX_3.4.30"}, Debian()).ok());
  EXPECT_TRUE(CheckSymbolVersions({}, Debian()).ok());
}

TEST(SymbolVersionsTest, EachMissingOneIsNamedWithWhatThereIs) {
  const absl::Status status = CheckSymbolVersions({"GLIBC_2.38", "GLIBCXX_3.4.30", "GLIBCXX_3.4.32"}, Debian());
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::LOAD);
  EXPECT_THAT(status.ToString(),
              AllOf(HasSubstr("GLIBC_2.38 where this process has GLIBC_2.36"),
                    HasSubstr("GLIBCXX_3.4.32 where this process has GLIBCXX_3.4.30 (/lib/libstdc++.so.6)"),
                    Not(HasSubstr("GLIBCXX_3.4.30 where"))));
}

TEST(SymbolVersionsTest, NumbersAreComparedAsNumbers) {
  EXPECT_TRUE(CheckSymbolVersions({"GLIBC_2.4"}, Debian()).ok());
  EXPECT_FALSE(CheckSymbolVersions({"GLIBC_2.100"}, Debian()).ok());
}

TEST(SymbolVersionsTest, AFamilyThatIsNotLoadedIsTheLoadersBusiness) {
  EXPECT_TRUE(CheckSymbolVersions({"GOMP_5.0", "OMP_1.0"}, Debian()).ok());
}

using testing::AddConstantHandler;
using testing::CompileLibrary;
using ::testing::Contains;
using testing::ScratchFolder;
using testing::Variables;

std::vector<std::string> NoFolders() { return {}; }

// An artifact with the digest of the file's content, as the daemon would report it.
Artifact ArtifactAt(const std::string& path) {
  return {.path = path, .digest = DigestOf(Env::Posix().ReadFile(path).value_or(path)), .required_symbol_versions = {}};
}

float AddTo(float x, Handler handler) {
  float out = 0;
  CallFrame frame;
  frame.AddArgument(&x, DataType::kFloat32, {1}).AddResult(&out, DataType::kFloat32, {1});
  EXPECT_TRUE(frame.Call(handler).ok());
  return out;
}

TEST(LibraryTest, OpensAndFindsHandlers) {
  ScratchFolder folder;
  CompileLibrary(AddConstantHandler("add_two", 2, 1), folder / "k.so");
  const auto library = OpenLibrary(ArtifactAt(folder / "k.so"), NoFolders);
  ASSERT_TRUE(library.ok()) << library.status();
  const auto handler = library->library->FindHandler("add_two");
  ASSERT_TRUE(handler.ok()) << handler.status();
  EXPECT_EQ(AddTo(40, *handler), 42);
  EXPECT_EQ(*ProbeHandler(*handler), 1u);

  const auto missing = library->library->FindHandler("add_three");
  EXPECT_EQ(KindOf(missing.status()), v1::ErrorDetail::LOAD);
  EXPECT_THAT(missing.status().ToString(), HasSubstr("add_three"));
}

TEST(LibraryTest, TheSameArtifactIsOpenedOnce) {
  ScratchFolder folder;
  CompileLibrary(AddConstantHandler("once", 1), folder / "a.so");
  folder.Write("b.so", *Env::Posix().ReadFile(folder / "a.so"));
  std::vector<OpenArtifact> opened(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < opened.size(); ++i) {
    threads.emplace_back(
        [&, i] { opened[i] = *OpenLibrary(ArtifactAt(folder / (i % 2 == 0 ? "a.so" : "b.so")), NoFolders); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const OpenArtifact& artifact : opened) EXPECT_EQ(artifact.library, opened[0].library);
}

TEST(LibraryTest, TheSameCodeWithOtherTextsIsOpenedOnce) {
  ScratchFolder folder;
  CompileLibrary(AddConstantHandler("texts", 1), folder / "k.so");
  const auto open_with = [&](const std::string& text) {
    v1::ArtifactTexts texts;
    texts.add_unit()->set_text(text);
    std::string artifact = *Env::Posix().ReadFile(folder / "k.so");
    EXPECT_TRUE(AddTexts(texts, artifact).ok());
    return OpenLibrary(ArtifactAt(folder.Write(text + ".so", artifact)), NoFolders).value();
  };
  const OpenArtifact a = open_with("a"), b = open_with("b");
  EXPECT_EQ(a.library, b.library);
  EXPECT_EQ(ReadTexts(a.file->image())->unit(0).text(), "a");
  EXPECT_EQ(ReadTexts(b.file->image())->unit(0).text(), "b");
}

TEST(LibraryTest, InstancesOfOtherNamesAndLoadsThatBeginAnewHaveTheirOwnVariables) {
  ScratchFolder folder;
  CompileLibrary("static int count; extern \"C\" int next() { return ++count; }", folder / "k.so");
  const auto open = [&](const std::string& instance, bool anew) {
    Artifact artifact = ArtifactAt(folder / "k.so");
    artifact.instance = instance;
    artifact.begins_anew = anew;
    return OpenLibrary(artifact, NoFolders).value();
  };
  const auto next = [](const OpenArtifact& open) {
    return reinterpret_cast<int (*)()>(open.library->FindHandler("next").value())();
  };
  const OpenArtifact a = open("a", false), b = open("b", false);
  EXPECT_EQ(next(a), 1);
  EXPECT_EQ(next(a), 2);
  EXPECT_EQ(next(b), 1);
  const OpenArtifact anew = open("a", true);
  EXPECT_EQ(next(anew), 1);
  EXPECT_EQ(open("a", false).library, anew.library) << "the latest is shared";
  EXPECT_EQ(open("b", false).library, b.library);
  EXPECT_NE(open("a", true).library, anew.library);
  EXPECT_EQ(next(a), 3) << "it stays open";
}

void CloseCopies() {
  std::vector<int> copies;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(file.path(), gone).string();
    if (target.find("memfd:kernix.so") != std::string::npos) copies.push_back(std::stoi(file.path().filename()));
  }
  ASSERT_FALSE(copies.empty());
  for (const int file : copies) close(file);
}

TEST(LibraryTest, ACopyIsItsOwnThoughTheApplicationHasClosedTheDescriptorsOfOthers) {
  ScratchFolder folder;
  CompileLibrary("static int count; extern \"C\" int next() { return ++count; }", folder / "k.so");
  std::vector<OpenArtifact> open;
  for (int i = 0; i < 4; ++i) {
    Artifact artifact = ArtifactAt(folder / "k.so");
    artifact.instance = "closed descriptors";
    artifact.begins_anew = true;
    open.push_back(OpenLibrary(artifact, NoFolders).value());
    EXPECT_EQ(reinterpret_cast<int (*)()>(open.back().library->FindHandler("next").value())(), 1);
    if (i > 0) CloseCopies();
  }
}

TEST(LibraryTest, AnEvictedArtifactIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(OpenLibrary(ArtifactAt("/nonexistent/kernix.so"), NoFolders).status()));
}

TEST(LibraryTest, OneThatCannotBeOpenedIsNoEvictedOne) {
  ScratchFolder folder;
  const std::string loop = folder / "k.so";
  ASSERT_EQ(symlink(loop.c_str(), loop.c_str()), 0);
  const absl::Status status = OpenLibrary(ArtifactAt(loop), NoFolders).status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::LOAD) << status;
  EXPECT_THAT(status.ToString(), AllOf(HasSubstr(loop), HasSubstr("symbolic links")));
}

TEST(LibraryTest, WhatIsNoLibraryIsALoadError) {
  ScratchFolder folder;
  const auto library = OpenLibrary(ArtifactAt(folder.Write("k.so", "not a library")), NoFolders);
  EXPECT_EQ(KindOf(library.status()), v1::ErrorDetail::LOAD);
}

TEST(LibraryTest, AnUndefinedSymbolIsNamed) {
  ScratchFolder folder;
  CompileLibrary("int nowhere(); int here() { return nowhere(); }", folder / "k.so");
  const auto library = OpenLibrary(ArtifactAt(folder / "k.so"), NoFolders);
  EXPECT_EQ(KindOf(library.status()), v1::ErrorDetail::LOAD);
  EXPECT_THAT(library.status().ToString(),
              AllOf(HasSubstr("undefined symbol"), HasSubstr("nowhere"), HasSubstr("extra_ldflags")));
}

TEST(LibraryTest, ATooOldRuntimeIsNamed) {
  ScratchFolder folder;
  folder.Write("versions", "GLIBC_2.999 { *; };");
  CompileLibrary("extern \"C\" int of_a_later_libc() { return 1; }", folder / "later.so",
                 {"-nostdlib", "-Wl,-soname,libc.so.6", StrCat("-Wl,--version-script=", folder / "versions")});
  CompileLibrary("extern \"C\" int of_a_later_libc(); extern \"C\" int one() { return of_a_later_libc(); }",
                 folder / "k.so", {"-nostdlib", folder / "later.so"});
  Artifact artifact = ArtifactAt(folder / "k.so");
  artifact.required_symbol_versions = {"GLIBC_2.2.5", "GLIBC_2.999"};
  const auto library = OpenLibrary(artifact, NoFolders);
  EXPECT_EQ(KindOf(library.status()), v1::ErrorDetail::LOAD);
  EXPECT_THAT(library.status().ToString(), AllOf(HasSubstr("GLIBC_2.999"), ::testing::Not(HasSubstr("GLIBC_2.2.5 "))));
}

// libfakeblas.so.1 needs libfakeblaslt.so.1. Both are where a wheel would install them.
class CudaLibrariesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string lib = folder_ / "nvidia/fakeblas/lib";
    folder_.Write("nvidia/fakeblas/lib/README", "");
    CompileLibrary(StrCat("extern \"C\" int fake_lt_", tag_, "() { return 20; }"),
                   lib + "/libfakeblaslt" + tag_ + ".so.1", {"-Wl,-soname,libfakeblaslt" + tag_ + ".so.1"});
    CompileLibrary(StrCat("extern \"C\" int fake_lt_", tag_, "(); extern \"C\" int fake_blas_", tag_,
                          "() { return 22 + fake_lt_", tag_, "(); }"),
                   lib + "/libfakeblas" + tag_ + ".so.1",
                   {"-Wl,-soname,libfakeblas" + tag_ + ".so.1", lib + "/libfakeblaslt" + tag_ + ".so.1"});
    CompileLibrary(StrCat("extern \"C\" int fake_blas_", tag_, "(); extern \"C\" long answer() { return fake_blas_",
                          tag_, "(); }"),
                   folder_ / "k.so", {lib + "/libfakeblas" + tag_ + ".so.1"});
  }

  // Libraries stay loaded, so each test has its own.
  const std::string tag_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  ScratchFolder folder_;
};

TEST_F(CudaLibrariesTest, AreOpenedFromTheClientsWheels) {
  const auto library = OpenLibrary(ArtifactAt(folder_ / "k.so"), [&] {
    return CudaLibraryDirectories(Env::Posix(), Variables({}), {folder_.path()});
  });
  ASSERT_TRUE(library.ok()) << library.status();
  const auto symbol = library->library->FindHandler("answer");
  ASSERT_TRUE(symbol.ok());
  EXPECT_EQ(reinterpret_cast<intptr_t>((*symbol)(nullptr)), 42);
}

TEST_F(CudaLibrariesTest, AMissingOneIsNamed) {
  const auto library = OpenLibrary(ArtifactAt(folder_ / "k.so"), NoFolders);
  EXPECT_EQ(KindOf(library.status()), v1::ErrorDetail::LOAD);
  EXPECT_THAT(library.status().ToString(), AllOf(HasSubstr("libfakeblas" + tag_), HasSubstr("LD_LIBRARY_PATH")));
}

TEST(CudaLibraryDirectoriesTest, AreThoseThatAreThere) {
  ScratchFolder folder;
  folder.Write("site/nvidia/cu13/lib/x", "");
  folder.Write("site/nvidia/cudnn/include/x", "");
  folder.Write("toolkit/lib64/x", "");
  const auto found = CudaLibraryDirectories(
      Env::Posix(), Variables({{"CUDA_HOME", folder / "toolkit"}, {"CUDA_PATH", folder / "none"}}),
      {folder / "site", folder / "nowhere"});
  ASSERT_GE(found.size(), 2u);
  EXPECT_EQ(found[0], folder / "site/nvidia/cu13/lib");
  EXPECT_EQ(found[1], folder / "toolkit/lib64");
}

// Handlers that must not reach XLA.
XLA_FFI_Error* Silent(XLA_FFI_CallFrame*) { return nullptr; }
XLA_FFI_Error* Complaining(XLA_FFI_CallFrame* frame) { return reinterpret_cast<XLA_FFI_Error*>(frame); }

TEST(HandlerProbeTest, RefusesBadAnswers) {
  for (const Handler handler : {Silent, Complaining}) {
    const auto traits = ProbeHandler(handler);
    EXPECT_EQ(KindOf(traits.status()), v1::ErrorDetail::LOAD);
  }
}

TEST(HandlerProbeTest, RefusesAnotherApiVersion) {
  ScratchFolder folder;
  std::string source = AddConstantHandler("newer", 1);
  const std::string version = "minor_version = abi::kApiMinor";
  source.replace(source.find(version), version.size(), "minor_version = 7");
  CompileLibrary(source, folder / "k.so");
  const auto traits = ProbeHandler(*OpenLibrary(ArtifactAt(folder / "k.so"), NoFolders)->library->FindHandler("newer"));
  EXPECT_EQ(KindOf(traits.status()), v1::ErrorDetail::LOAD);
  EXPECT_THAT(traits.status().ToString(), HasSubstr("0.7"));
}

}  // namespace

}  // namespace kernix
