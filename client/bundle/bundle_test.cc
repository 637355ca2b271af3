// SPDX-License-Identifier: Apache-2.0
#include "client/bundle/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/bundle/bundle_key.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
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

TEST_F(BundleTest, AFileThatHasLostItsStatementsIsDamaged) {
  BundleFiles files;
  AddKernel(Kernel("add", "code"), "code", nullptr, files);
  Write(files);
  const std::string name = NameOf(Kernel("add", "code"));
  Change(name, "");
  const Digest key = BundleKey(Kernel("add", "code").load);
  EXPECT_THAT(ErrorOf(Open().Find(key, {}).status()), HasSubstr(StrCat(name, ": it is damaged")));
  EXPECT_THAT(ErrorOf(Open().All({}).status()), HasSubstr(StrCat(name, ": it is damaged")));
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
}  // namespace kernix
