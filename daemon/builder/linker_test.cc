// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/linker.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "tests/support/testing_load.h"

namespace kernix::build {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Code that needs names of the C and the C++ library.
constexpr char kPlain[] = "int value() { return 1; }";
constexpr char kStrings[] =
    "#include <cstdlib>\n#include <string>\n"
    "int value() { return std::stoi(std::string(\"4\") + std::to_string(std::abs(-2))); }\n"
    "int ends() { return std::at_quick_exit([] {}); }";  // from libc_nonshared.a
constexpr char kFewerStrings[] =
    "#include <cstdlib>\n#include <string>\nint value() { return std::stoi(\"7\"); }\n"
    "int ends() { return std::at_quick_exit([] {}); }";

class LinkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KERNIX_NEED_PROGRAM(compiler, "g++");
    compiler_ = compiler;
  }

  // A kernel with `code`, which defines value().
  v1::LoadRequest Request(const std::string& code) const {
    v1::LoadRequest request = CppRequest(compiler_);
    request.mutable_source(0)->mutable_text()->append(
        StrCat("\n", code, "\nextern \"C\" int value_of_kernel() { return value(); }\n"));
    return request;
  }

  // What value() of the built kernel returns.
  int ValueOf(const absl::StatusOr<v1::LoadResult>& built) {
    EXPECT_THAT(built, IsOk());
    if (!built.ok()) return -1;
    void* library = dlopen(t_.cache->BlobPath(Digest::FromRaw(built->artifact_digest()).value()).c_str(), RTLD_NOW);
    EXPECT_NE(library, nullptr) << dlerror();
    if (library == nullptr) return -1;
    return reinterpret_cast<int (*)()>(dlsym(library, "value_of_kernel"))();
  }

  // As kernixctl's metrics show it.
  static int Links(const TestBuilder& t, std::string_view how) {
    MetricsRegistry registry;
    t.builder->Register(registry);
    const std::string text = registry.Text();
    const std::string line = StrCat("kernix_plain_links_total{how=\"", how, "\"} ");
    const size_t at = text.find(line);
    return at == std::string::npos ? -1 : std::stoi(text.substr(at + line.size()));
  }

  int Links(std::string_view how) const { return Links(t_, how); }

  TestBuilder t_{TestBuilder::On::kInlineExecutor};
  std::string compiler_;
};

TEST_F(LinkerTest, KernelsThatNeedWhatAnEarlierOneNeededAreLinkedWithStubs) {
  EXPECT_EQ(ValueOf(t_.Load(Request(kStrings))), 42);
  EXPECT_EQ(Links("whole"), 1);
  EXPECT_EQ(Links("stubs"), 0);
  EXPECT_EQ(ValueOf(t_.Load(Request(kFewerStrings))), 7);
  EXPECT_EQ(ValueOf(t_.Load(Request(kPlain))), 1);
  EXPECT_EQ(Links("whole"), 1);
  EXPECT_EQ(Links("stubs"), 2);

  EXPECT_EQ(ValueOf(t_.Load(Request("#include <cstdlib>\nint value() { return std::getenv(\"\") == nullptr; }"))), 1);
  EXPECT_EQ(Links("whole"), 2) << "a name that no kernel had needed";
}

// Compiles when nothing is being learned any more.
class AfterLessons : public exec::Executor {
 public:
  explicit AfterLessons(TestBuilder& builder)
      : builder_(builder), executor_(exec::MakeInlineExecutor(builder.env, {builder.cache->scratch_directory()})) {}
  void Submit(exec::Action action, UserId user, exec::ActionObserver* observer, CancellationPtr cancellation,
              exec::ActionDone done) override {
    if (action.step == "compile") builder_.AwaitEndOfLearning();
    executor_->Submit(std::move(action), user, observer, std::move(cancellation), std::move(done));
  }
  exec::ExecutorLoad load() const override { return executor_->load(); }

 private:
  TestBuilder& builder_;
  const std::unique_ptr<exec::Executor> executor_;
};

TEST_F(LinkerTest, WhatTheHandlersPartNeedsIsLearnedWhileTheKernelCompiles) {
  TestBuilder t(TestBuilder::On::kInlineExecutor, {}, TestBuilder::Tools::kKnown, TestBuilder::Lessons::kAll);
  t.RunOn(std::make_unique<AfterLessons>(t));
  const auto first = t.Load(Request(kPlain));
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(Links(t, "whole"), 0);
  EXPECT_EQ(Links(t, "stubs"), 1);
  const auto untaught = t_.Load(Request(kPlain));
  ASSERT_THAT(untaught, IsOk());
  EXPECT_EQ(Links("whole"), 1);
  EXPECT_EQ(first->artifact_digest(), untaught->artifact_digest());

  const auto more = t.Load(Request(kStrings));
  ASSERT_THAT(more, IsOk());
  EXPECT_EQ(Links(t, "whole"), 1) << "names that the handlers' part does not need";
  EXPECT_EQ(more->artifact_digest(), t_.Load(Request(kStrings))->artifact_digest());
}

TEST_F(LinkerTest, AForcedLoadTeachesNothing) {
  TestBuilder t(TestBuilder::On::kInlineExecutor, {}, TestBuilder::Tools::kKnown, TestBuilder::Lessons::kAll);
  t.RunOn(std::make_unique<AfterLessons>(t));
  v1::LoadRequest request = Request(kPlain);
  request.set_force_rebuild(true);
  ASSERT_THAT(t.Load(request), IsOk());
  EXPECT_EQ(t.env.Calls(Operation::kRunProcess), 3) << "a compile, and two links";
}

// Whatever was linked before, and also by force, the same kernel is the same library.
TEST_F(LinkerTest, WhatWasLinkedBeforeChangesNoArtifact) {
  // The last one defines names that the C++ library has, too.
  constexpr char kOwnNames[] =
      "#include <cstdlib>\n#include <memory>\n#include <new>\n#include <string>\n"
      "void* operator new(std::size_t size) { return std::malloc(size); }\n"
      "void operator delete(void* memory) noexcept { std::free(memory); }\n"
      "int value() { return *std::unique_ptr<int>(new int(5)) + std::stoi(\"4\"); }";
  for (const char* code : {kFewerStrings, kOwnNames}) {
    TestBuilder alone(TestBuilder::On::kInlineExecutor);
    v1::LoadRequest request = Request(code);
    const auto first = alone.Load(request);
    ASSERT_THAT(first, IsOk());
    ASSERT_THAT(t_.Load(Request(StrCat(kStrings, " void* more() { return std::malloc(1); }"))), IsOk());
    const auto later = t_.Load(request);
    ASSERT_THAT(later, IsOk());
    EXPECT_EQ(later->artifact_digest(), first->artifact_digest());
    request.set_force_rebuild(true);
    const auto forced = t_.Load(request);
    ASSERT_THAT(forced, IsOk());
    EXPECT_EQ(forced->artifact_digest(), first->artifact_digest());
  }
}

TEST_F(LinkerTest, AForcedLinkReadsTheLibraries) {
  v1::LoadRequest request = Request(kPlain);
  ASSERT_THAT(t_.Load(request), IsOk());
  request.set_force_rebuild(true);
  ASSERT_THAT(t_.Load(request), IsOk());
  EXPECT_EQ(Links("whole"), 2);
}

TEST_F(LinkerTest, ALinkThatFailsSaysWhatItSaysWithTheLibraries) {
  ASSERT_THAT(t_.Load(Request(kStrings)), IsOk());
  RecordingObserver observer;
  const auto missing = t_.Load(Request("int nowhere();\nint value() { return nowhere(); }"), observer);
  EXPECT_EQ(KindOf(missing.status()), v1::ErrorDetail::COMPILATION);
  EXPECT_THAT(GetErrorDetail(missing.status()).compiler_output(), HasSubstr("nowhere"));
  EXPECT_THAT(GetErrorDetail(missing.status()).compiler_output(), Not(HasSubstr("kernix-stubs")));
  EXPECT_THAT(observer.output, Not(HasSubstr("kernix-stubs")));
}

TEST_F(LinkerTest, IfALinkWithStubsFailsTheLibrariesServe) {
  ASSERT_THAT(t_.Load(Request(kStrings)), IsOk());
  t_.env.Inject(FailingChild("kernix-stubs", 1, "a bad day\n"));
  RecordingObserver observer;
  EXPECT_EQ(ValueOf(t_.Load(Request(kFewerStrings), observer)), 7);
  EXPECT_THAT(observer.output, Not(HasSubstr("a bad day")));
  EXPECT_EQ(Links("whole"), 2);
  t_.env.Inject(FailingChild("kernix-stubs", 1, "a bad day\n"));
  EXPECT_EQ(ValueOf(t_.Load(Request("#include <cstdlib>\nint value() { return std::getenv(\"\") == nullptr; }"))), 1);
  EXPECT_EQ(Links("whole"), 3);
}

// Names of the compiler's static library have no place in a stub.
TEST_F(LinkerTest, WhatStubsCannotGiveComesFromTheLibraries) {
  const std::string code = "int value() { return __builtin_cpu_supports(\"sse2\") != 0; }";
  EXPECT_EQ(ValueOf(t_.Load(Request(code))), 1);
  EXPECT_EQ(ValueOf(t_.Load(Request(StrCat(code, " int more() { return 2; }")))), 1);
  EXPECT_EQ(Links("whole"), 2);
  EXPECT_EQ(Links("stubs"), 0);
}

TEST_F(LinkerTest, ACudaKernelIsLinkedWithStubsAndCudasArchives) {
  KERNIX_NEED_NVCC(nvcc);
  const auto edited = [&](const std::string& code) {
    v1::LoadRequest request = CudaRequest(compiler_, nvcc);
    request.mutable_source(0)->mutable_text()->append(code);
    return request;
  };
  ASSERT_THAT(
      t_.Load(edited("void more(void* p) { cudaFree(p); cudaFuncAttributes a; cudaFuncGetAttributes(&a, p); }")),
      IsOk());
  EXPECT_EQ(Links("whole"), 1);
  const auto later = t_.Load(edited("void fewer(void* p) { cudaFree(p); }"));
  ASSERT_THAT(later, IsOk());
  EXPECT_EQ(Links("stubs"), 1);
  TestBuilder alone(TestBuilder::On::kInlineExecutor);
  const auto first = alone.Load(edited("void fewer(void* p) { cudaFree(p); }"));
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(later->artifact_digest(), first->artifact_digest());
}

// Other words may name other libraries.
TEST_F(LinkerTest, FlagsHaveStubsOfTheirOwn) {
  ASSERT_THAT(t_.Load(Request(kPlain)), IsOk());
  v1::LoadRequest request = Request(kPlain);
  request.mutable_options()->add_compile_flags("-fopenmp");
  ASSERT_THAT(t_.Load(request), IsOk());
  EXPECT_EQ(Links("whole"), 2);
  request.mutable_options()->clear_compile_flags();
  request.mutable_options()->add_link_flags("-Wl,-z,now");
  ASSERT_THAT(t_.Load(request), IsOk());
  EXPECT_EQ(Links("whole") + Links("stubs"), 2) << "a link with flags of the user's is not a plain one";
}

}  // namespace
}  // namespace kernix::build
