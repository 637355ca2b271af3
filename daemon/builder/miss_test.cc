// SPDX-License-Identifier: Apache-2.0
//
// What a load that was a miss says about it, by real builds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/error.h"
#include "common/wire/quick_lookup.h"
#include "tests/support/testing_load.h"

namespace kernix::build {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class MissTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KERNIX_NEED_PROGRAM(compiler, "g++");
    compiler_ = compiler;
    request_ = CppRequest(compiler_);
  }

  // What `request_` gets from a build; "hit" if it needs none.
  std::string Reason(UserId user = UserId{1000}) {
    RecordingObserver observer({"int a;\n", "int b;\n"});
    const auto result = builder_.builder->Load(request_, user, observer, nullptr);
    EXPECT_THAT(result, IsOk());
    if (!result.ok()) return "";
    EXPECT_EQ(result->cache_hit(), result->miss_reason().empty());
    return result->cache_hit() ? "hit" : result->miss_reason();
  }

  TestBuilder builder_{TestBuilder::On::kInlineExecutor, {}, TestBuilder::Tools::kOwn};
  std::string compiler_;
  v1::LoadRequest request_;
};

constexpr char kNew[] = "new source";

TEST_F(MissTest, SourcesAndHeadersAreCompared) {
  EXPECT_EQ(Reason(), kNew);
  EXPECT_EQ(Reason(), "hit");
  request_.mutable_source(0)->mutable_text()->append("// edited\n");
  EXPECT_EQ(Reason(), "source kernel.cc changed");
  request_.mutable_options()->set_include_root_count(1);
  EXPECT_EQ(Reason(), "hit") << "a path without headers changes nothing";
  AddHeader(request_, 0, "x.h", "int a;\n");
  EXPECT_EQ(Reason(), "header x.h is new; other include paths");
  request_.mutable_header(0)->set_digest(DigestOf("int b;\n").Raw());
  EXPECT_EQ(Reason(), "header x.h changed");
  request_.clear_header();
  request_.mutable_options()->add_compile_flags("-g");
  request_.mutable_source(0)->mutable_text()->append("// edited again\n");
  EXPECT_EQ(Reason(), "source kernel.cc changed; header x.h is gone; other flags: now also -g");
  request_.set_force_rebuild(true);
  EXPECT_EQ(Reason(), "force_rebuild");
}

TEST_F(MissTest, SettingsAreCompared) {
  request_.mutable_options()->add_compile_flags("-DN=1");
  EXPECT_EQ(Reason(), kNew);
  request_.mutable_options()->set_compile_flags(0, "-DN=2");
  EXPECT_EQ(Reason(), "other defines: N=2, was N=1");
  request_.mutable_options()->set_optimization_level(1);
  EXPECT_EQ(Reason(), "other flags: -O1, was -O3");
  request_.mutable_functions()->set_from_annotations(false);
  v1::Function* function = request_.mutable_functions()->add_function();
  function->set_name("f");
  for (const char* token : {"arg", "ret:float32"}) function->add_tokens(token);
  EXPECT_EQ(Reason(), "other functions: f(arg, ret:float32), was f(arg, ret)");
}

TEST_F(MissTest, ToolchainsAreCompared) {
  KERNIX_NEED_PROGRAM(clang, "clang++");
  request_.mutable_source(0)->mutable_text()->insert(0, "#include <locale.h>\n");
  EXPECT_EQ(Reason(), kNew);
  builder_.env.PretendChanged("/usr/include/locale.h");
  EXPECT_EQ(Reason(), "toolchain header /usr/include/locale.h changed");
  EXPECT_EQ(Reason(), "hit");
  builder_.env.PretendChanged(compiler_);
  EXPECT_THAT(Reason(), ContainsRegex("^other toolchain: GCC [0-9.]+ changed$"));
  request_.mutable_toolchain()->set_host_compiler(clang);
  EXPECT_THAT(Reason(), ContainsRegex("^other toolchain: Clang [0-9.]+, was GCC [0-9.]+$"));
}

TEST_F(MissTest, ArchitecturesAreCompared) {
  KERNIX_NEED_PROGRAM(nvcc, "nvcc");
  request_ = CudaRequest(compiler_, nvcc);
  EXPECT_EQ(Reason(), kNew);
  request_.mutable_options()->set_architectures(0, "sm_80");
  EXPECT_EQ(Reason(), "other architectures: sm_80, was sm_90");
}

// Others' loads are no answer to anybody's question, and a load by another user of what one has loaded too is none.
TEST_F(MissTest, OnlyWhatTheUserHasLoadedUnderTheNameIsCompared) {
  EXPECT_EQ(Reason(UserId{1}), kNew);
  request_.mutable_source(0)->mutable_text()->append("// edited\n");
  EXPECT_EQ(Reason(UserId{2}), kNew);
  request_.set_name("other");
  EXPECT_EQ(Reason(UserId{1}), "hit") << "of what user 2 has built; from here on user 1 has it, under this name";
  request_.mutable_source(0)->mutable_text()->append("// edited again\n");
  EXPECT_EQ(Reason(UserId{1}), "source kernel.cc changed");
  EXPECT_EQ(Reason(UserId{2}), "hit");
}

TEST_F(MissTest, AVerboseLoadSaysItBeforeItBuilds) {
  request_.set_verbose(true);
  RecordingObserver observer;
  ASSERT_THAT(builder_.Load(request_, observer), IsOk());
  EXPECT_THAT(observer.output, StartsWith(StrCat("\nkernixd: building module: ", kNew, "\n")));
  EXPECT_THAT(observer.output, HasSubstr(" -c "));
}

// --- only_cached -----------------------------------------------------------------------------------------------------

TEST_F(MissTest, ALoadThatMayNotCompileHitsOrNamesTheNearest) {
  request_.set_only_cached(true);
  const absl::Status nothing = builder_.Load(request_).status();
  EXPECT_EQ(KindOf(nothing), v1::ErrorDetail::NOT_CACHED);
  EXPECT_THAT(std::string(nothing.message()), AllOf(HasSubstr("\"module\""), HasSubstr("no kernel of this name")));

  request_.set_only_cached(false);
  const auto built = builder_.Load(request_);
  ASSERT_THAT(built, IsOk());
  request_.set_only_cached(true);
  const auto hit = builder_.Load(request_);
  ASSERT_THAT(hit, IsOk());
  EXPECT_TRUE(hit->cache_hit());
  EXPECT_EQ(hit->key(), built->key()) << "the policy is no part of the key";

  request_.mutable_options()->add_compile_flags("-DN=2");
  const absl::Status flag = builder_.Load(request_).status();
  EXPECT_THAT(std::string(flag.message()), AllOf(HasSubstr(Digest::FromRaw(built->key())->Hex().substr(0, 12)),
                                                 HasSubstr("differs: other defines: now also N=2.")));
  EXPECT_THAT(std::string(flag.message()), HasSubstr("the policy \"cached\""));
  EXPECT_EQ(builder_.Stats().builds(), 1u);
  EXPECT_EQ(builder_.Stats().misses(), 3u);
  EXPECT_EQ(builder_.Stats().failures(), 0u);
}

TEST_F(MissTest, ALoadOfAFrozenProcessSaysSoAndHasTheSameKey) {
  const auto built = builder_.Load(request_);
  ASSERT_THAT(built, IsOk());
  request_.set_frozen(true);
  request_.set_only_cached(true);
  const auto hit = builder_.Load(request_);
  ASSERT_THAT(hit, IsOk());
  EXPECT_EQ(hit->key(), built->key());
  request_.mutable_options()->add_compile_flags("-DN=2");
  const absl::Status refused = builder_.Load(request_).status();
  EXPECT_EQ(KindOf(refused), v1::ErrorDetail::NOT_CACHED);
  EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr("this process is frozen: it compiles nothing. "),
                                                    HasSubstr("differs: other defines: now also N=2."),
                                                    HasSubstr(" Load them before the process is frozen, ")));
  request_.set_only_cached(false);
  EXPECT_THAT(builder_.Load(request_), IsOk()) << "it may compile: then the daemon only counts";
}

TEST_F(MissTest, ALoadThatMayNotCompileNamesTheToolchainHeaderThatHasChanged) {
  request_.mutable_source(0)->mutable_text()->insert(0, "#include <locale.h>\n");
  ASSERT_THAT(builder_.Load(request_), IsOk());
  builder_.env.PretendChanged("/usr/include/locale.h");
  request_.set_only_cached(true);
  const absl::Status changed = builder_.Load(request_).status();
  EXPECT_EQ(KindOf(changed), v1::ErrorDetail::NOT_CACHED);
  EXPECT_THAT(std::string(changed.message()), HasSubstr("toolchain header /usr/include/locale.h changed"));
}

TEST_F(MissTest, ALookupServesALoadThatMayNotCompile) {
  request_.set_only_cached(true);
  const auto deliver = [](const v1::LoadResult&) { return true; };
  EXPECT_FALSE(builder_.builder->LookUp(request_, UserId{1000}, deliver));
  request_.set_only_cached(false);
  ASSERT_THAT(builder_.Load(request_), IsOk());
  request_.set_only_cached(true);
  FileCheck check(builder_.env);
  EXPECT_TRUE(builder_.builder->LookUpKnown(LookupOf(request_), UserId{1000}, check, deliver)) << "the build is known";
  EXPECT_TRUE(builder_.builder->LookUp(request_, UserId{1000}, deliver));
}

}  // namespace
}  // namespace kernix::build
