// SPDX-License-Identifier: Apache-2.0
#include "client/bundle/bundle_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/bundle/bundle.h"
#include "common/base/error.h"
#include "tests/support/fault_env.h"
#include "tests/support/mem_env.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string ErrorOf(const absl::Status& status) { return GetErrorDetail(status).message(); }

v1::RecordedLoad LoadOf(const std::string& name, const std::string& text, const std::string& gpu) {
  v1::RecordedLoad load;
  v1::LoadRequest& request = *load.mutable_request();
  request.set_name(name);
  request.add_source()->set_label("k.cu");
  load.add_source_digest(DigestOf(text).Raw());
  request.mutable_options()->add_architectures(gpu);
  request.mutable_options()->set_architectures_of_gpu(true);
  return load;
}

class BundleSearchTest : public ::testing::Test {
 protected:
  void Make(const std::string& path, const std::string& name, const std::string& text, const std::string& gpu) {
    BundledKernel kernel{.load = LoadOf(name, text, gpu), .result = {}, .targets = targets_};
    kernel.targets.machine_code.push_back(gpu);
    const std::string code = text + gpu;
    kernel.result.set_artifact_digest(DigestOf(code).Raw());
    kernel.result.set_artifact_size(code.size());
    BundleFiles files;
    AddKernel(kernel, code, nullptr, files);
    ASSERT_THAT(WriteBundle(env_, path, std::move(files)), IsOk());
  }
  BundleAnswer Ask(const std::vector<std::string>& bundles, const v1::RecordedLoad& load) {
    const auto answer = AskBundles(env_, bundles, {}, load, 0, Question::kWhy);
    EXPECT_THAT(answer, IsOk());
    return answer.value_or(BundleAnswer());
  }

  MemEnv env_;
  GpuTargets targets_;  // besides machine code
};

TEST_F(BundleSearchTest, TheFirstBundleThatHasTheKernelAnswers) {
  Make("/a", "k", "text", "sm_80");
  Make("/b", "k", "text", "sm_90");
  const BundleAnswer answer = Ask({"/none", "/a", "/b"}, LoadOf("k", "text", "sm_90"));
  ASSERT_TRUE(answer.result.has_value());
  EXPECT_EQ(answer.bundle, "/b");
  EXPECT_TRUE(answer.result->cache_hit());
  EXPECT_EQ(env_.ReadFile(answer.result->artifact_path()).value(), "textsm_90");
  EXPECT_EQ(answer.miss, "");
}

TEST_F(BundleSearchTest, TheKernelThatFitsTheGpuBestAnswers) {
  Make("/a", "k", "text", "sm_80");
  Make("/b", "k", "text", "sm_86");
  EXPECT_EQ(Ask({"/a", "/b"}, LoadOf("k", "text", "sm_89")).bundle, "/b");
  EXPECT_EQ(Ask({"/b", "/a"}, LoadOf("k", "text", "sm_80")).bundle, "/a");
}

TEST_F(BundleSearchTest, NamesOfArchitecturesAreComparedAsTheyAre) {
  Make("/a", "k", "text", "all-major");
  v1::RecordedLoad load = LoadOf("k", "text", "all-major");
  load.mutable_request()->mutable_options()->set_architectures_of_gpu(false);
  EXPECT_TRUE(Ask({"/a"}, load).result.has_value());
}

TEST_F(BundleSearchTest, AnOlderDriverIsAMiss) {
  targets_ = {.machine_code = {}, .ptx = {"sm_90"}, .cuda_version = 13010};
  Make("/a", "k", "text", "sm_90");
  const auto ask = [this](const std::string& gpu, unsigned driver) {
    return AskBundles(env_, {"/a"}, {}, LoadOf("k", "text", gpu), driver, Question::kWhy).value();
  };
  EXPECT_TRUE(ask("sm_90", 13000).result.has_value());  // machine code
  EXPECT_TRUE(ask("sm_120", 13010).result.has_value());
  EXPECT_TRUE(ask("sm_120", 0).result.has_value());  // not known
  EXPECT_THAT(ask("sm_90", 12080).miss,
              HasSubstr("\"k\" for drivers of CUDA 13.0 or later, and this machine's is of CUDA 12.8"));
  EXPECT_THAT(ask("sm_120", 13000).miss, HasSubstr("for drivers of CUDA 13.1 or later"));
}

TEST_F(BundleSearchTest, CodeForNoGpuFitsEach) {
  BundledKernel kernel{.load = LoadOf("k", "text", "sm_90"), .result = {}, .targets = {}};
  kernel.result.set_artifact_digest(DigestOf("code").Raw());
  kernel.result.set_artifact_size(4);
  BundleFiles files;
  AddKernel(kernel, "code", nullptr, files);
  ASSERT_THAT(WriteBundle(env_, "/a", std::move(files)), IsOk());
  EXPECT_TRUE(Ask({"/a"}, LoadOf("k", "text", "sm_80")).result.has_value());
}

TEST_F(BundleSearchTest, AMissSaysWhatDiffers) {
  Make("/a", "k", "text", "sm_80");
  EXPECT_THAT(Ask({"/a"}, LoadOf("k", "other text", "sm_80")).miss,
              HasSubstr("\"k\" from other inputs, which differ in source k.cu"));
  EXPECT_THAT(Ask({"/a"}, LoadOf("k", "text", "sm_90")).miss, HasSubstr("\"k\" for sm_80, not for sm_90"));
  EXPECT_TRUE(Ask({"/none", "/a"}, LoadOf("k", "text", "sm_90")).has_name);
  const BundleAnswer other = Ask({"/none", "/a"}, LoadOf("other", "other text", "sm_80"));
  EXPECT_EQ(other.miss, "there is no bundle /none; the bundle /a has nothing named \"other\"");
  EXPECT_FALSE(other.has_name);
  EXPECT_THAT(other.asked, ElementsAre("/a"));
  EXPECT_THAT(Ask({}, LoadOf("k", "text", "sm_80")).miss, IsEmpty());
}

// Otherwise each hit of kernixd's cache would read all statements of a bundle that lacks the kernel.
TEST_F(BundleSearchTest, WhyABundleLacksAKernelIsAskedApart) {
  Make("/a", "k", "text", "sm_80");
  FaultEnv env(env_);
  const auto ask = [&](Question question) {
    return AskBundles(env, {"/a"}, {}, LoadOf("k", "other", "sm_80"), 0, question).value();
  };
  EXPECT_EQ(ask(Question::kKernel).miss, "");
  EXPECT_EQ(env.Calls(Operation::kListDirectory), 0);
  EXPECT_THAT(ask(Question::kWhy).miss, HasSubstr("from other inputs"));
}

TEST_F(BundleSearchTest, ABundleThatIsReplacedMeanwhileIsAskedAgain) {
  Make("/a", "k", "text", "sm_80");
  FaultEnv env(env_);
  env.Inject({.operation = Operation::kStat, .match = ".so", .error = absl::NotFoundError("replaced")});
  const auto answer = AskBundles(env, {"/a"}, {}, LoadOf("k", "text", "sm_80"));
  ASSERT_THAT(answer, IsOk());
  EXPECT_TRUE(answer->result.has_value());
  EXPECT_EQ(env.Hits(), 1);
}

TEST_F(BundleSearchTest, WithoutKeysAMissSaysNothingOfSignatures) {
  Make("/a", "k", "text", "sm_80");
  FaultEnv env(env_);  // the kernel comes between two looks
  env.Inject({.operation = Operation::kReadFile, .match = ".kernel", .error = absl::NotFoundError("")});
  const auto answer = AskBundles(env, {"/a"}, {}, LoadOf("k", "text", "sm_80"), 0, Question::kWhy);
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(answer->miss, Not(HasSubstr("KERNIX_BUNDLE_KEYS")));
}

TEST_F(BundleSearchTest, WithKeysOnlySignedKernelsCount) {
  Make("/a", "k", "text", "sm_80");
  const std::string variable = "KERNIX_BUNDLE_KEYS=";
  const auto keys = BundleKeysOf({variable + "MCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw="});
  ASSERT_THAT(keys, IsOk());
  const auto answer = AskBundles(env_, {"/a"}, *keys, LoadOf("k", "text", "sm_80"), 0, Question::kWhy);
  ASSERT_THAT(answer, IsOk());
  EXPECT_FALSE(answer->result.has_value());
  EXPECT_THAT(answer->miss, HasSubstr("no key of KERNIX_BUNDLE_KEYS has signed it"));
  EXPECT_THAT(ErrorOf(BundleKeysOf({variable + "no key"}).status()), HasSubstr("KERNIX_BUNDLE_KEYS"));
  for (const char* none : {"", " ", ","}) {
    EXPECT_THAT(ErrorOf(BundleKeysOf({"A=1", variable + none}).status()), HasSubstr("holds no key"));
  }
  EXPECT_TRUE(BundleKeysOf({"A=1"})->empty());
}

TEST(BundleBesideTest, OnlyABundleOfTheSourcesOwnerCounts) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: makes files of other users";
  const ScratchDirectory folder;
  const std::string source = folder / "k.cu";
  const std::string bundle = folder / "k.kernix";
  const auto found = [&] { return BundleBeside(Env::Posix(), source, "k").has_value(); };
  ASSERT_THAT(Env::Posix().WriteFile(source, "text", 0644), IsOk());
  EXPECT_FALSE(found());
  ASSERT_THAT(WriteBundle(Env::Posix(), bundle, {}), IsOk());
  EXPECT_TRUE(found());
  ASSERT_EQ(chown(bundle.c_str(), 4711, 4711), 0);
  EXPECT_FALSE(found());
  ASSERT_EQ(chown(source.c_str(), 4711, 4711), 0);
  EXPECT_TRUE(found());
  ASSERT_EQ(chmod(bundle.c_str(), 0777), 0);
  EXPECT_FALSE(found());
  ASSERT_EQ(chmod(bundle.c_str(), 0755), 0);
  const std::string format = JoinPath(bundle, "kernix-bundle");
  ASSERT_THAT(Env::Posix().WriteFile(format, "kernix bundle, format 9\n", 0644), IsOk());
  EXPECT_TRUE(found()) << "one of a newer kernix is told of";
  ASSERT_THAT(Env::Posix().RemoveFile(format), IsOk());
  EXPECT_FALSE(found()) << "what is no bundle is none";
}

TEST(BundleBesideTest, ALinkIsFollowedUnlessAStrangerHasMadeIt) {
  const ScratchDirectory folder;
  const std::string source = folder / "k.cu";
  const std::string link = folder / "k.kernix";
  ASSERT_THAT(Env::Posix().WriteFile(source, "text", 0644), IsOk());
  ASSERT_THAT(WriteBundle(Env::Posix(), folder / "real", {}), IsOk());
  ASSERT_EQ(symlink("real", link.c_str()), 0);
  EXPECT_TRUE(BundleBeside(Env::Posix(), source, "k").has_value());
  if (geteuid() != 0) GTEST_SKIP() << "needs root: makes files of other users";
  ASSERT_EQ(lchown(link.c_str(), 4711, 4711), 0);
  EXPECT_FALSE(BundleBeside(Env::Posix(), source, "k").has_value());
}

}  // namespace
}  // namespace kernix
