// SPDX-License-Identifier: Apache-2.0
#include "client/bundle/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "tests/support/client_support.h"
#include "tests/support/mem_env.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::string ErrorOf(const absl::Status& status) { return GetErrorDetail(status).message(); }

constexpr char kFolder[] = "/kernels.kernix";

BundledKernel Kernel(const std::string& name, std::string_view artifact) {
  BundledKernel kernel;
  kernel.load.mutable_request()->set_name(name);
  kernel.load.mutable_request()->add_source()->set_label(StrCat(name, ".cpp"));
  kernel.load.add_source_digest(DigestOf(name).Raw());
  kernel.result.set_key(DigestOf(StrCat(name, " key")).Raw());
  kernel.result.set_artifact_digest(DigestOf(artifact).Raw());
  kernel.result.set_artifact_size(artifact.size());
  kernel.result.set_artifact_path("/store/x.so");
  kernel.result.set_build_ms(7);
  kernel.targets.machine_code = {"sm_90"};
  return kernel;
}

class BundleTest : public ::testing::Test {
 protected:
  void Write(const BundleFiles& files) { ASSERT_THAT(WriteBundle(env_, kFolder, files), IsOk()); }
  Bundle Open() { return *Bundle::Open(env_, kFolder); }
  std::string NameOf(const BundledKernel& kernel) { return StrCat(BundleKey(kernel.load).Hex(), ".kernel"); }

  void Change(const std::string& name, std::string_view content) {
    ASSERT_THAT(env_.WriteFile(JoinPath(kFolder, name), content, 0644), IsOk());
  }

  MemEnv env_;
};

TEST_F(BundleTest, HasWhatWasAdded) {
  BundleFiles files;
  AddKernel(Kernel("add", "code of add"), "code of add", nullptr, files);
  AddKernel(Kernel("mul", "code of mul"), "code of mul", nullptr, files);
  Write(files);
  const auto found = Open().Find(BundleKey(Kernel("mul", "").load), {});
  ASSERT_THAT(found, IsOk());
  ASSERT_THAT(*found, SizeIs(1));
  EXPECT_EQ((*found)[0].load.request().name(), "mul");
  EXPECT_EQ((*found)[0].result.key(), DigestOf("mul key").Raw());
  EXPECT_EQ((*found)[0].result.artifact_path(), "");
  EXPECT_EQ((*found)[0].result.build_ms(), 0u);
  const auto artifact = Open().Artifact((*found)[0].result, Bundle::Compare::kContent);
  ASSERT_THAT(artifact, IsOk());
  EXPECT_EQ(env_.ReadFile(*artifact).value(), "code of mul");
  EXPECT_THAT(Open().Find(DigestOf("another"), {}).value(), IsEmpty());
  EXPECT_THAT(Open().All({}).value(), SizeIs(2));
}

TEST_F(BundleTest, KernelsOfOneKeyStandSideBySide) {
  BundleFiles ampere;
  BundleFiles hopper;
  AddKernel(Kernel("add", "ampere"), "ampere", nullptr, ampere);
  AddKernel(Kernel("add", "hopper"), "hopper", nullptr, hopper);
  BundleFiles both = ampere;
  AddBundle(hopper, both);
  AddBundle(hopper, both);
  BundleFiles other_order = hopper;
  AddBundle(ampere, other_order);
  EXPECT_EQ(both, other_order);
  Write(both);
  EXPECT_THAT(Open().Find(BundleKey(Kernel("add", "").load), {}).value(), SizeIs(2));
}

TEST_F(BundleTest, AnotherBundleTakesItsPlaceAndNothingElseDoes) {
  BundleFiles files;
  AddKernel(Kernel("add", "code"), "code", nullptr, files);
  Write(files);
  ASSERT_THAT(WriteBundle(env_, std::string(kFolder) + "/", {}), IsOk());
  EXPECT_THAT(Open().All({}).value(), IsEmpty());
  EXPECT_THAT(env_.ListDirectory("/").value(), Not(Contains(HasSubstr("kernels.kernix."))));
  ASSERT_THAT(env_.CreateDirectories("/home/me", 0755), IsOk());
  ASSERT_THAT(env_.WriteFile("/home/me/thesis", "text", 0644), IsOk());
  EXPECT_THAT(ErrorOf(WriteBundle(env_, "/home/me", files)), HasSubstr("will not replace /home/me"));
  EXPECT_EQ(env_.ReadFile("/home/me/thesis").value(), "text");
}

TEST_F(BundleTest, WhatIsDamagedIsToldWithItsFile) {
  const BundledKernel kernel = Kernel("add", "code");
  BundleFiles files;
  AddKernel(kernel, "code", nullptr, files);
  const std::string statement = files.at(NameOf(kernel));
  std::string other_name = statement;
  other_name.replace(other_name.find("add.cpp"), 7, "odd.cpp");
  for (const std::string& content : {statement.substr(0, statement.size() - 1), std::string("text"), other_name}) {
    Write(files);
    Change(NameOf(kernel), content);
    EXPECT_THAT(ErrorOf(Open().Find(BundleKey(kernel.load), {}).status()), HasSubstr(NameOf(kernel)));
    EXPECT_THAT(ErrorOf(Open().All({}).status()), HasSubstr("Copy the bundle again"));
  }
  Write(files);
  const std::string artifact = StrCat(DigestOf("code").Hex(), ".so");
  Change(artifact, "c0de");
  EXPECT_THAT(ErrorOf(Open().Artifact(kernel.result, Bundle::Compare::kContent).status()),
              HasSubstr("its content has changed"));
  Change(artifact, "cod");
  for (const auto compare : {Bundle::Compare::kSize, Bundle::Compare::kContent}) {
    EXPECT_THAT(ErrorOf(Open().Artifact(kernel.result, compare).status()), HasSubstr("it has another size"));
  }
  ASSERT_THAT(env_.RemoveFile(JoinPath(kFolder, artifact)), IsOk());
  EXPECT_THAT(ErrorOf(Open().Artifact(kernel.result, Bundle::Compare::kSize).status()), HasSubstr("it is missing"));
}

TEST_F(BundleTest, OtherFormatsAndOtherFoldersAreNoBundles) {
  EXPECT_TRUE(absl::IsNotFound(Bundle::Open(env_, kFolder).status()));
  Write({});
  Change("kernix-bundle", "kernix bundle, format 2\n");
  EXPECT_THAT(ErrorOf(Bundle::Open(env_, kFolder).status()), HasSubstr("newer kernix"));
  Change("kernix-bundle", "something");
  EXPECT_THAT(ErrorOf(Bundle::Open(env_, kFolder).status()), HasSubstr("is damaged"));
  ASSERT_THAT(env_.CreateDirectories("/empty", 0755), IsOk());
  EXPECT_THAT(ErrorOf(Bundle::Open(env_, "/empty").status()), HasSubstr("lacks the file kernix-bundle"));
}

}  // namespace

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

void AddHeader(v1::RecordedLoad& load, uint32_t root, const std::string& path, std::string_view text) {
  v1::Header& header = *load.mutable_request()->add_header();
  header.set_include_root(root);
  header.set_path(path);
  header.set_digest(DigestOf(text).Raw());
}

v1::RecordedLoad Example() {
  v1::RecordedLoad load;
  v1::LoadRequest& request = *load.mutable_request();
  request.set_name("add");
  request.set_language(v1::LANGUAGE_CUDA);
  request.add_source()->set_label("add.cu");
  load.add_source_digest(DigestOf("text").Raw());
  v1::Options& options = *request.mutable_options();
  options.add_compile_flags("-DN=4");
  options.add_architectures("sm_90");
  options.set_include_root_count(3);
  options.set_optimization_level(3);
  options.add_quoted_include_root(0);
  AddHeader(load, 1, "a.h", "a");
  return load;
}

using Change = std::function<void(v1::RecordedLoad&)>;

v1::RecordedLoad With(const Change& change) {
  v1::RecordedLoad load = Example();
  change(load);
  return load;
}

TEST(BundleKeyTest, CoversNeitherCompilersNorArchitecturesNorTheName) {
  const Change changes[] = {
      [](auto& load) { load.set_key("abc"); },
      [](auto& load) { load.set_host_compiler("/usr/bin/g++"); },
      [](auto& load) { load.set_architecture_of_machine(true); },
      [](auto& load) { load.mutable_request()->set_name("other"); },
      [](auto& load) { load.mutable_request()->mutable_toolchain()->set_nvcc("/usr/bin/nvcc"); },
      [](auto& load) { load.mutable_request()->mutable_options()->add_architectures("sm_80"); },
      [](auto& load) { load.mutable_request()->mutable_options()->set_architectures_of_gpu(true); },
  };
  for (const Change& change : changes) EXPECT_EQ(BundleKey(With(change)), BundleKey(Example()));
}

TEST(BundleKeyTest, WhatAnEnvironmentAddsForCompilersDoesNotCount) {
  EXPECT_EQ(BundleKey(With([](auto& load) {
              load.mutable_request()->mutable_options()->add_link_flags("-L/usr/local/cuda/lib64/stubs");
              load.mutable_request()->mutable_options()->add_compile_flags("-allow-unsupported-compiler");
            })),
            BundleKey(Example()));
}

TEST(BundleKeyTest, FoldersWithoutAHeaderThatIsReachedDoNotCount) {
  EXPECT_EQ(BundleKey(With([](auto& load) {
              v1::LoadRequest& request = *load.mutable_request();
              request.mutable_header(0)->set_include_root(4);
              request.mutable_options()->set_include_root_count(7);
              request.mutable_options()->add_quoted_include_root(2);
            })),
            BundleKey(Example()));
}

struct Part {
  Change change;
  const char* name;
};

TEST(BundleKeyTest, CoversAllElseAndTellsWhatDiffers) {
  const Part parts[] = {
      {[](auto& load) { load.set_source_digest(0, DigestOf("other").Raw()); }, "source add.cu"},
      {[](auto& load) { load.mutable_request()->mutable_header(0)->set_digest("other"); }, "header a.h"},
      {[](auto& load) { AddHeader(load, 2, "b.h", "b"); }, "header b.h"},
      {[](auto& load) { load.mutable_request()->mutable_functions()->add_function()->set_name("f"); }, "the functions"},
      {[](auto& load) { load.mutable_request()->set_language(v1::LANGUAGE_CPP); }, "the language"},
      {[](auto& load) { load.mutable_request()->mutable_options()->add_compile_flags("-g"); }, "compile flags"},
      {[](auto& load) { load.mutable_request()->mutable_options()->add_link_flags("-lm"); }, "link flags"},
      {[](auto& load) { load.mutable_request()->mutable_options()->set_optimization_level(0); }, "optimization_level"},
      {[](auto& load) { load.mutable_request()->mutable_options()->set_use_fast_math(true); }, "use_fast_math"},
      {[](auto& load) { load.mutable_request()->mutable_options()->set_allow_cuda_graph(true); }, "allow_cuda_graph"},
      {[](auto& load) { load.mutable_request()->mutable_options()->set_separate_units(true); }, "separate"},
      {[](auto& load) { load.mutable_request()->mutable_options()->set_keep(true); }, "keep"},
  };
  for (const Part& part : parts) {
    const v1::RecordedLoad other = With(part.change);
    EXPECT_NE(BundleKey(other), BundleKey(Example())) << part.name;
    EXPECT_THAT(DifferencesOf(Example(), other), ElementsAre(part.name));
  }
  EXPECT_THAT(DifferencesOf(Example(), Example()), IsEmpty());
}

TEST(BundleKeyTest, TheSearchOrderOfHeadersCounts) {
  const v1::RecordedLoad one = With([](auto& load) { AddHeader(load, 2, "a.h", "other a"); });
  v1::RecordedLoad turned = one;
  turned.mutable_request()->mutable_header()->SwapElements(0, 1);
  turned.mutable_request()->mutable_header(0)->set_include_root(1);
  turned.mutable_request()->mutable_header(1)->set_include_root(2);
  EXPECT_NE(BundleKey(one), BundleKey(turned));
  EXPECT_THAT(DifferencesOf(one, turned), Not(IsEmpty()));
}

}  // namespace

namespace {

using ::testing::HasSubstr;
using testing::ScratchFolder;

class ZipFileTest : public ::testing::Test {
 protected:
  std::string Content(const std::string& path) { return Env::Posix().ReadFile(path).value(); }

  ScratchFolder folder_;
  const std::string path_ = folder_ / "a.zip";
};

TEST_F(ZipFileTest, KeepsNamesAndBytes) {
  const std::map<std::string, std::string> contents = {
      {"empty", ""}, {"a.so", std::string("\0\x7f\n\r", 4)}, {"large", std::string(300'000, 'x')}};
  ASSERT_THAT(WriteZip(path_, contents), IsOk());
  EXPECT_EQ(ReadZip(path_).value(), contents);
  EXPECT_THAT(Content(path_), HasSubstr(std::string(300'000, 'x')));  // stored
}

TEST_F(ZipFileTest, EqualContentsMakeEqualFiles) {
  ASSERT_THAT(WriteZip(path_, {{"a", "1"}, {"b", "2"}}), IsOk());
  ASSERT_THAT(WriteZip(folder_ / "other.zip", {{"b", "2"}, {"a", "1"}}), IsOk());
  EXPECT_EQ(Content(path_), Content(folder_ / "other.zip"));
}

TEST_F(ZipFileTest, DamageIsFound) {
  ASSERT_THAT(WriteZip(path_, {{"a", std::string(1000, 'x')}}), IsOk());
  const std::string whole = Content(path_);
  std::string edited = whole;
  edited[500] = 'y';
  for (const std::string& content : {whole.substr(0, 700), whole.substr(0, whole.size() - 30), edited, std::string()}) {
    EXPECT_TRUE(absl::IsDataLoss(ReadZip(folder_.Write("bad.zip", content)).status())) << content.size();
  }
}

TEST_F(ZipFileTest, FoldersAreRefused) {
  ASSERT_THAT(WriteZip(path_, {{"../a", "1"}}), IsOk());
  EXPECT_TRUE(absl::IsDataLoss(ReadZip(path_).status()));
}

TEST_F(ZipFileTest, NothingIsWrittenWhereNothingCanBe) {
  EXPECT_FALSE(WriteZip(folder_ / "none/a.zip", {{"a", "1"}}).ok());
}

}  // namespace

}  // namespace kernix
