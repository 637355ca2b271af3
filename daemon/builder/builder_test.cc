// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/builder.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <map>
#include <new>
#include <thread>

#include "absl/strings/str_replace.h"
#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/paths.h"
#include "common/os/elf_file.h"
#include "common/wire/artifact_texts.h"
#include "common/wire/quick_lookup.h"
#include "daemon/request/request.h"
#include "daemon/toolchain/tool_query.h"
#include "tests/support/await.h"
#include "tests/support/inline_executor.h"
#include "tests/support/testing_load.h"

namespace kernix::build {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The artifact's dynamic section, as readelf prints it.
std::string DynamicSection(const std::string& readelf, const v1::LoadResult& result) {
  const auto answer = toolchain::AskTool(Env::Posix(), {readelf, "--dynamic", "--wide", result.artifact_path()});
  EXPECT_THAT(answer, IsOk());
  return answer.value_or("");
}

class BuilderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KERNIX_NEED_PROGRAM(compiler, "g++");
    compiler_ = compiler;
  }

  std::string compiler_;
};

// The two sources share names that would clash in one unit.
v1::LoadRequest SeparateRequest(const std::string& compiler) {
  v1::LoadRequest request = CppRequest(compiler);
  v1::Source second = request.source(0);
  request.mutable_source(0)->mutable_text()->insert(0, "static int same;\nint g_value();\nint (*use)() = &g_value;\n");
  second.set_label("second.cc");
  second.set_text(
      "#include \"brainevent/common.h\"\nstatic int same;\nint g_value() { return 1; }\n"
      "// @BE g ret\nvoid g(BE::Tensor y) {}\n");
  *request.add_source() = second;
  request.mutable_options()->set_separate_units(true);
  return request;
}

v1::ArtifactTexts TextsIn(const v1::LoadResult& result) {
  const auto file = ElfFile::Open(result.artifact_path());
  EXPECT_THAT(file, IsOk());
  return ReadTexts(file->image()).value();
}

TEST_F(BuilderTest, SeparateUnitsAreLinkedOnce) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  v1::LoadRequest request = SeparateRequest(compiler_);
  const auto built = t.Load(request);
  ASSERT_THAT(built, IsOk());
  ASSERT_EQ(built->function_size(), 2);
  EXPECT_EQ(built->function(0).name(), "f");
  EXPECT_EQ(built->function(1).name(), "g");
  const v1::ArtifactTexts texts = TextsIn(*built);
  ASSERT_EQ(texts.unit_size(), 2);
  EXPECT_THAT(texts.unit(1).source(), ::testing::ElementsAre("second.cc"));

  request.set_force_rebuild(true);
  const auto again = t.Load(request);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->artifact_digest(), built->artifact_digest());
  request.mutable_options()->set_separate_units(false);
  EXPECT_EQ(KindOf(t.Load(request).status()), v1::ErrorDetail::COMPILATION);
}

// The files that only the second unit reads count like those of the first.
TEST_F(BuilderTest, FilesThatAnyUnitReadsAreLookedAt) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  v1::LoadRequest request = SeparateRequest(compiler_);
  const std::string path = t.folder / "data";
  ASSERT_THAT(t.env.WriteFile(path, "x", 0600), IsOk());
  request.mutable_source(1)->mutable_text()->append(
      StrCat("asm(\".section .rodata\\n.incbin \\\"", path, "\\\"\\n.text\");\n"));
  const auto built = t.Load(request);
  ASSERT_THAT(built, IsOk());
  ASSERT_THAT(t.env.WriteFile(path, "another", 0600), IsOk());
  const auto again = t.Load(request);
  ASSERT_THAT(again, IsOk());
  EXPECT_FALSE(again->cache_hit());
  EXPECT_NE(again->artifact_digest(), built->artifact_digest());
}

TEST_F(BuilderTest, BuildsThenHits) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  v1::LoadRequest request = CppRequest(compiler_);
  const auto built = t.Load(request);
  ASSERT_THAT(built, IsOk());
  EXPECT_FALSE(built->cache_hit());
  EXPECT_GT(built->build_ms(), 0u);
  ASSERT_EQ(built->function_size(), 1);
  EXPECT_EQ(built->function(0).name(), "f");
  EXPECT_THAT(built->function(0).tokens(), ::testing::ElementsAre("arg", "ret"));
  EXPECT_THAT(TextsIn(*built).unit(0).text(), HasSubstr("void f(const BE::Tensor x"));
  EXPECT_THAT(built->required_symbol_versions(), Contains(StartsWith("GLIBC_2.")));

  void* library = dlopen(built->artifact_path().c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_NE(dlsym(library, built->function(0).handler_symbol().c_str()), nullptr);
  dlclose(library);

  request.set_name("another name");
  const auto hit = t.Load(request);
  ASSERT_THAT(hit, IsOk());
  EXPECT_TRUE(hit->cache_hit());
  EXPECT_EQ(hit->build_ms(), 0u);
  EXPECT_THAT(hit->required_symbol_versions(), Contains(StartsWith("GLIBC_2.")));
  v1::LoadResult same = *hit;
  same.set_cache_hit(false);
  same.set_build_ms(built->build_ms());
  same.set_miss_reason(built->miss_reason());
  EXPECT_EQ(same.SerializeAsString(), built->SerializeAsString());
  EXPECT_EQ(t.Stats().builds(), 1u);
  EXPECT_EQ(t.Stats().hits(), 1u);
  EXPECT_EQ(t.Stats().misses(), 1u);
}

TEST_F(BuilderTest, OtherSourceIsAnotherArtifact) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  const auto one = t.Load(CppRequest(compiler_, 1));
  const auto two = t.Load(CppRequest(compiler_, 2));
  ASSERT_THAT(one, IsOk());
  ASSERT_THAT(two, IsOk());
  EXPECT_NE(one->key(), two->key());
  EXPECT_NE(one->artifact_digest(), two->artifact_digest());
}

TEST_F(BuilderTest, ForcedRebuildBuildsAgainAndGivesTheSameBytes) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  v1::LoadRequest request = CppRequest(compiler_);
  const auto first = t.Load(request);
  request.set_force_rebuild(true);
  const auto second = t.Load(request);
  ASSERT_THAT(second, IsOk());
  EXPECT_FALSE(second->cache_hit());
  EXPECT_EQ(first->artifact_digest(), second->artifact_digest());
  EXPECT_EQ(t.Stats().builds(), 2u);
  EXPECT_EQ(t.Stats().entries(), 1u);
}

TEST_F(BuilderTest, ACompileErrorNamesTheUsersLine) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_source(0)->mutable_text()->append("int broken() {\n  return nonsense;\n}\n");
  const auto result = t.Load(request);
  const v1::ErrorDetail detail = GetErrorDetail(result.status());
  EXPECT_EQ(detail.kind(), v1::ErrorDetail::COMPILATION);
  EXPECT_THAT(detail.message(), AllOf(StartsWith("compile failed: kernel.cc:9:10: error: "), HasSubstr("nonsense")));
  EXPECT_THAT(detail.compiler_output(), AllOf(HasSubstr("return nonsense;"), HasSubstr("^~~~")));
  EXPECT_THAT(detail.command(), AllOf(HasSubstr("g++"), HasSubstr(" -c "), HasSubstr("unit.cc")));
  EXPECT_NE(detail.exit_code(), 0);
  EXPECT_EQ(t.Stats().failures(), 1u);
  EXPECT_EQ(t.Stats().entries(), 0u);
}

TEST_F(BuilderTest, AnErrorHasWhatItsCommandReads) {
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_source(0)->mutable_text()->append("int broken = nonsense;\n");
  for (const auto policy : {toolchain::FlagPolicy::kPerUser, toolchain::FlagPolicy::kShared}) {
    TestBuilder t(TestBuilder::On::kLocalExecutor, {.flag_policy = policy});
    const v1::FailedCommand command = GetErrorDetail(t.Load(request).status()).failed_command();
    EXPECT_THAT(command.word(), Contains("kernix-unit/unit.cc"));
    EXPECT_THAT(command.file(), Contains(::testing::ResultOf([](const auto& file) { return file.path(); },
                                                             "kernix/brainevent/common.h")));
  }
}

TEST_F(BuilderTest, CompilersSayWhatTheyLikeAtOnce) {
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_source(0)->mutable_text()->append("static int unused() { return 1; }\nint broken = nonsense;\n");
  request.mutable_options()->add_compile_flags("-Wall");
  request.set_verbose(true);
  for (const auto policy : {toolchain::FlagPolicy::kPerUser, toolchain::FlagPolicy::kShared}) {
    TestBuilder t(TestBuilder::On::kLocalExecutor, {.flag_policy = policy});
    RecordingObserver observer;
    const v1::ErrorDetail detail = GetErrorDetail(t.Load(request, observer).status());
    EXPECT_THAT(detail.compiler_output(), HasSubstr("    9 | int broken = nonsense;\n"));
    EXPECT_THAT(observer.output, AllOf(HasSubstr("error: "), HasSubstr("    9 | int broken = nonsense;\n")));
  }
}

TEST_F(BuilderTest, OddLabelsAreHarmless) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  const std::string long_label(300, 'x');  // too long for a file name
  for (const char* label : {"inc", "kernix", "kernix-unit", "a b\"d", "libc.so.6", "specs", "unit.cc", "vector", "it's",
                            long_label.c_str()}) {
    v1::LoadRequest request = CppRequest(compiler_);
    request.mutable_source(0)->set_label(label);
    request.mutable_source(0)->mutable_text()->insert(0, "#include <vector>\n");
    EXPECT_THAT(t.Load(request), IsOk()) << label;
  }
}

TEST_F(BuilderTest, ALinkErrorNamesTheSymbol) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_source(0)->mutable_text()->append("void missing_one(int);\nvoid caller() { missing_one(1); }\n");
  const auto result = t.Load(request);
  const v1::ErrorDetail detail = GetErrorDetail(result.status());
  EXPECT_EQ(detail.kind(), v1::ErrorDetail::COMPILATION);
  EXPECT_THAT(detail.message(), AllOf(StartsWith("link failed: "), HasSubstr("missing_one(int)")));
  EXPECT_THAT(detail.compiler_output(), HasSubstr("undefined reference"));
}

TEST_F(BuilderTest, FailuresAreNotRemembered) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  t.env.Inject(FailingChild("unit.cc", 1, "kernel.cc:1:1: error: a bad day\n"));
  EXPECT_EQ(KindOf(t.Load(CppRequest(compiler_)).status()), v1::ErrorDetail::COMPILATION);
  EXPECT_THAT(t.Load(CppRequest(compiler_)), IsOk());
  EXPECT_EQ(t.Stats().failures(), 1u);
  EXPECT_EQ(t.Stats().builds(), 1u);
}

TEST_F(BuilderTest, AKilledCompilerIsAResourceError) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  t.env.Inject(KilledChild("unit.cc"));
  const v1::ErrorDetail detail = GetErrorDetail(t.Load(CppRequest(compiler_)).status());
  EXPECT_EQ(detail.kind(), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(detail.message(), HasSubstr("memory"));
}

TEST_F(BuilderTest, NoSpaceInTheStoreIsAResourceErrorAndTheNextLoadWorks) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  t.env.Inject(NoSpace(Operation::kWriteFileDurably, "artifacts"));
  const absl::Status status = t.Load(CppRequest(compiler_)).status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(t.Load(CppRequest(compiler_)), IsOk());
}

TEST_F(BuilderTest, HeadersAreFetchedOnceAndTheirContentIsPartOfTheKey) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  const auto with_header = [&](const std::string& text) {
    v1::LoadRequest request = CppRequest(compiler_);
    request.mutable_source(0)->mutable_text()->insert(0, "#include \"sub/summand.h\"\nstatic_assert(kSummand > 0);\n");
    AddHeader(request, 1, "sub/summand.h", text);
    return request;
  };
  const std::string one = "constexpr int kSummand = 1;\n", two = "constexpr int kSummand = 2;\n";
  RecordingObserver first({one}), second({one}), third({two});
  const auto a = t.Load(with_header(one), first);
  const auto b = t.Load(with_header(one), second);
  const auto c = t.Load(with_header(two), third);
  ASSERT_THAT(a, IsOk());
  ASSERT_THAT(b, IsOk());
  ASSERT_THAT(c, IsOk());
  EXPECT_EQ(first.fetches, 1);
  EXPECT_EQ(second.fetches, 0);
  EXPECT_TRUE(b->cache_hit());
  EXPECT_NE(a->key(), c->key());
}

TEST_F(BuilderTest, AHeaderThatWasSentBeforeIsNotAskedForAgain) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  const auto request = [&](int summand, const std::vector<std::string>& headers) {
    v1::LoadRequest made = CppRequest(compiler_, summand);
    for (size_t i = 0; i < headers.size(); ++i) AddHeader(made, 0, StrCat("h", i, ".h"), headers[i]);
    return made;
  };
  const std::string one = "// one\n", two = "// two\n";
  RecordingObserver first({one}), second, third({two});
  ASSERT_THAT(t.Load(request(1, {one}), first), IsOk());
  ASSERT_THAT(t.Load(request(2, {one}), second), IsOk());
  ASSERT_THAT(t.Load(request(3, {one, two}), third), IsOk());
  EXPECT_EQ(first.fetches, 1);
  EXPECT_EQ(second.fetches, 0);
  EXPECT_EQ(third.fetches, 1);
  EXPECT_EQ(t.Stats().builds(), 3u);
}

TEST_F(BuilderTest, HeadersThatWouldFillTheDiskAreRefused) {
  BuilderOptions options;
  options.limits.max_staged_header_bytes = 2'500;
  TestBuilder t(TestBuilder::On::kLocalExecutor, options);
  v1::LoadRequest request = CppRequest(compiler_);
  const std::string header(1'000, '\n');
  AddHeader(request, 0, "a.h", header);
  AddHeader(request, 0, "b.h", header);
  RecordingObserver observer({header});
  EXPECT_THAT(t.Load(request, observer), IsOk());
  AddHeader(request, 0, "c.h", header);
  const v1::ErrorDetail error = GetErrorDetail(t.Load(request, observer).status());
  EXPECT_EQ(error.kind(), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(error.message(), HasSubstr("3000 bytes"));
  request.clear_header();
  AddHeader(request, 0, "in/a/folder.h", header);
  EXPECT_THAT(GetErrorDetail(t.Load(request, observer).status()).message(), HasSubstr("9192 bytes"));
}

// The `nth` look at the clock finds no memory. The builder looks at it when a build begins and when it is over.
class ExhaustedEnv : public FaultEnv {
 public:
  explicit ExhaustedEnv(int nth) : FaultEnv(Env::Posix()), left_(nth) {}
  MonotonicTime Now() override {
    if (--left_ == 0) throw std::bad_alloc();
    return FaultEnv::Now();
  }

 private:
  std::atomic<int> left_;
};

// Runs each action at once. Records their ranks.
class RankingExecutor : public exec::Executor {
 public:
  RankingExecutor(Env& env, const std::string& scratch_directory)
      : executor_(exec::MakeInlineExecutor(env, {scratch_directory})) {}
  exec::ActionEnd Run(const exec::Action& action, const exec::AskersPtr& askers, exec::ActionObserver* observer,
                      const CancellationPtr& cancellation) override {
    const uint64_t rank = askers->Positions(action.rank, action.batch_rank).front().rank;
    rank_of[action.step] = rank;
    if (action.step == "compile") ranks.push_back(rank);
    return executor_->Run(action, askers, observer, cancellation);
  }
  exec::ExecutorLoad load() const override { return executor_->load(); }

  std::vector<uint64_t> ranks;              // of compiles
  std::map<std::string, uint64_t> rank_of;  // the last one, by step

 private:
  const std::unique_ptr<exec::Executor> executor_;
};

// A builder that tells the ranks of its steps.
struct RankingBuilder {
  absl::StatusOr<v1::LoadResult> Load(const v1::LoadRequest& request) {
    RecordingObserver observer;
    return builder.Load(request, UserId{1000}, observer, nullptr);
  }

  ChangingEnv env;
  const ScratchDirectory folder;
  const std::unique_ptr<cache::Cache> cache = *cache::Cache::Open(env, {folder / "store", 1 << 30});
  RankingExecutor executor{env, cache->scratch_directory()};
  Builder builder{env, {}, KnownToolchains(), executor, *cache};
};

TEST_F(BuilderTest, EarlierBuildsGoFirstAndThoseOfBatchesLast) {
  RankingBuilder t;
  int edit = 0;
  const auto load = [&](bool is_of_batch = false) {
    v1::LoadRequest request = CppRequest(compiler_, ++edit);
    request.set_batch(is_of_batch);
    EXPECT_THAT(t.Load(request), IsOk());
    EXPECT_EQ(t.executor.ranks.size(), static_cast<size_t>(edit));
    return t.executor.ranks.back();
  };
  const uint64_t first = load();
  const uint64_t of_batch = load(/*is_of_batch=*/true);
  const uint64_t last = load();
  EXPECT_LT(first, last);
  EXPECT_LT(last, of_batch);

  // The answer is the same for both.
  v1::LoadRequest again = CppRequest(compiler_, edit);
  again.set_batch(true);
  const auto hit = t.Load(again);
  ASSERT_THAT(hit, IsOk());
  EXPECT_TRUE(hit->cache_hit());
}

TEST_F(BuilderTest, TheTraceHasTheMemoryOfCommands) {
  TestBuilder t(TestBuilder::On::kInlineExecutor);
  const auto loaded = t.Load(CppRequest(compiler_));
  ASSERT_THAT(loaded, IsOk());
  std::map<std::string, uint64_t> needed;
  const std::optional<v1::BuildTrace> trace = *t.cache->TraceOf(*Digest::FromRaw(loaded->key()));
  for (const v1::TracedStep& step : trace->step()) needed[step.name()] = step.peak_memory_bytes();
  EXPECT_GT(needed.at("compile"), 1u << 20);
  EXPECT_EQ(needed.at("plan"), 0u) << "no command";
}

// Has no memory for the `nth` action.
class ExhaustedExecutor : public exec::Executor {
 public:
  ExhaustedExecutor(exec::Executor& executor, int nth) : executor_(executor), left_(nth) {}
  exec::ActionEnd Run(const exec::Action& action, const exec::AskersPtr& askers, exec::ActionObserver* observer,
                      const CancellationPtr& cancellation) override {
    if (--left_ == 0) throw std::bad_alloc();
    return executor_.Run(action, askers, observer, cancellation);
  }
  exec::ExecutorLoad load() const override { return executor_.load(); }

 private:
  exec::Executor& executor_;
  std::atomic<int> left_;
};

// `load` finds no memory once. Its key must not be stranded.
template <typename Load>
void ExpectOneLoadToFail(const Load& load) {
  const absl::Status status = load().status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(std::string(status.message()), HasSubstr("kernixd could not"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("std::bad_alloc"));
}

TEST_F(BuilderTest, AnExceptionEndsTheLoadAndTheNextOneWorks) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  RecordingObserver observer;
  // Before the build, while it starts, while its steps run, and while its artifact is kept. A step's times are not
  // worth a failure.
  constexpr int kBeforeTheSteps = 6;
  for (int nth = 1; nth <= 2 * kBeforeTheSteps; ++nth) {
    ExhaustedEnv env(nth);
    Builder builder(env, {}, t.toolchains(), *t.executor, *t.cache);
    // As the RPC does.
    const auto load = [&] {
      return CatchExceptions(kLoadNotHandled,
                             [&] { return builder.Load(CppRequest(compiler_, nth), UserId{1000}, observer, nullptr); });
    };
    if (nth <= kBeforeTheSteps) {
      ExpectOneLoadToFail(load);
    } else if (const auto result = load(); !result.ok()) {
      EXPECT_EQ(KindOf(result.status()), v1::ErrorDetail::RESOURCE);
    }
    EXPECT_THAT(load(), IsOk()) << nth;
  }
  for (const int nth : {1, 2}) {
    ExhaustedExecutor executor(*t.executor, nth);
    Builder builder(t.env, {}, t.toolchains(), executor, *t.cache);
    const auto load = [&] { return builder.Load(CppRequest(compiler_, 100 + nth), UserId{1000}, observer, nullptr); };
    ExpectOneLoadToFail(load);
    EXPECT_THAT(load(), IsOk());
  }
}

TEST_F(BuilderTest, AnotherNameOfTheSameKernelIsAnEntryOfItsOwn) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  v1::LoadRequest request = CppRequest(compiler_);
  request.set_name("first");
  ASSERT_THAT(t.Load(request), IsOk());
  request.set_name("second");
  ASSERT_TRUE(t.Load(request)->cache_hit());
  EXPECT_EQ(t.Stats().entries(), 2u);
  EXPECT_EQ(t.cache->Purge({.name = "second"})->tags, 1u);
  EXPECT_TRUE(t.Load(request)->cache_hit()) << "it is still there as \"first\"";
}

// Simulates a file server whose clock is ahead, or an upgrade during the build.
TEST_F(BuilderTest, AHeaderFromTheFutureIsBuiltOnceMoreThenHits) {
  TestBuilder t(TestBuilder::On::kLocalExecutor, {}, TestBuilder::Tools::kOwn);
  t.env.PretendFromTheFuture("/usr/include/locale.h");
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_source(0)->mutable_text()->insert(0, "#include <locale.h>\n");
  ASSERT_THAT(t.Load(request), IsOk());
  EXPECT_FALSE(t.Load(request)->cache_hit()) << "nobody knows what the first build has read";
  EXPECT_TRUE(t.Load(request)->cache_hit()) << "the second one found the content that was known before it began";
  EXPECT_EQ(t.Stats().builds(), 2u);
}

// A header that relies on what XLA's ffi.h used to include, included in both forms.
TEST_F(BuilderTest, HeadersOfTheUserLeanOnThePrologueAsSourcesDo) {
  const std::string text = "#pragma once\ninline std::vector<float> Table() { return {1, 2}; }\n";
  for (const char* directive : {"#include \"my.h\"\n", "#include <my.h>\n", "#define MY <my.h>\n#include MY\n"}) {
    TestBuilder t(TestBuilder::On::kLocalExecutor);
    v1::LoadRequest request = CppRequest(compiler_);
    request.mutable_source(0)->mutable_text()->insert(0, directive);
    AddHeader(request, 0, "my.h", text);
    RecordingObserver observer({text});
    const auto built = t.Load(request, observer);
    ASSERT_THAT(built, IsOk()) << directive;
    const auto hit = t.Load(request);  // without the header's content
    ASSERT_THAT(hit, IsOk());
    EXPECT_TRUE(hit->cache_hit());
  }
}

TEST_F(BuilderTest, HeadersMayLieAboveTheirRoot) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  const std::string x = "#pragma once\n#include \"y.h\"\n#include \"../top.h\"\n";
  const std::string y = "#pragma once\ninline int Y() { return 1; }\n";
  const std::string top = "#pragma once\ninline int Top() { return Y(); }\n";
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_source(0)->set_label("x.h");  // must not replace the header
  request.mutable_source(0)->mutable_text()->insert(0, "#include \"../x.h\"\ninline int z = Top();\n");
  request.mutable_options()->add_quoted_include_root(0);
  AddHeader(request, 0, "../x.h", x);
  AddHeader(request, 0, "../y.h", y);
  AddHeader(request, 0, "../../top.h", top);
  RecordingObserver observer({x, y, top});
  // For a header that lies one folder up, "../top.h" is two folders up.
  EXPECT_THAT(t.Load(request, observer), IsOk());
}

TEST_F(BuilderTest, OnlyQuotedNamesAreLookedUpInAQuotedRoot) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  const std::string mine = "#define MINE 1\n";
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_source(0)->mutable_text()->insert(0,
                                                    "#include <math.h>\n#ifdef MINE\n#error mine\n#endif\n#include "
                                                    "\"math.h\"\n#ifndef MINE\n#error not mine\n#endif\n");
  request.mutable_options()->add_quoted_include_root(0);
  AddHeader(request, 0, "math.h", mine);
  RecordingObserver observer({mine});
  EXPECT_THAT(t.Load(request, observer), IsOk());
}

// Some projects bring a copy of a header along; GCC compares the times of such files.
TEST_F(BuilderTest, PragmaOnceTakesCopiesForOneHeader) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  const std::string text = "#pragma once\nstruct Once {};\n";
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_source(0)->mutable_text()->insert(0, "#include \"a/once.h\"\n#include \"b/once.h\"\n");
  AddHeader(request, 0, "a/once.h", text);
  AddHeader(request, 0, "b/once.h", text);
  RecordingObserver observer({text});
  EXPECT_THAT(t.Load(request, observer), IsOk());
}

TEST_F(BuilderTest, IncludeRootsOfTheSameContentAreSearchedOneAfterTheOther) {
  const std::string text = "#ifndef ONCE\n#define ONCE\n#include_next <twice.h>\n#else\nstruct Twice {};\n#endif\n";
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_source(0)->mutable_text()->insert(0, "#include <twice.h>\nTwice twice;\n");
  AddHeader(request, 0, "twice.h", text);
  AddHeader(request, 1, "twice.h", text);
  RecordingObserver observer({text});
  EXPECT_THAT(t.Load(request, observer), IsOk());
}

TEST_F(BuilderTest, OurKernelHeadersCannotBeShadowed) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  v1::LoadRequest request = CppRequest(compiler_);
  const std::string bad = "#error this is not kernix's\n";
  AddHeader(request, 0, "brainevent/common.h", bad);
  RecordingObserver observer({bad});
  EXPECT_THAT(t.Load(request, observer), IsOk());
}

TEST_F(BuilderTest, AnErrorInAHeaderNamesItsRootAndPath) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_source(0)->mutable_text()->insert(0, "#include \"a/bad.h\"\n");
  const std::string bad = "\nnonsense;\n";
  AddHeader(request, 2, "a/bad.h", bad);
  RecordingObserver observer({bad});
  EXPECT_THAT(GetErrorDetail(t.Load(request, observer).status()).message(), HasSubstr("inc/2/a/bad.h:2:1: error"));
}

TEST_F(BuilderTest, AChangedToolchainHeaderIsAMiss) {
  TestBuilder t(TestBuilder::On::kLocalExecutor, {}, TestBuilder::Tools::kOwn);
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_source(0)->mutable_text()->insert(0, "#include <locale.h>\n");
  const auto first = t.Load(request);
  ASSERT_THAT(first, IsOk());
  ASSERT_TRUE(t.Load(request)->cache_hit());
  t.env.PretendChanged("/usr/include/locale.h");
  const auto changed = t.Load(request);
  ASSERT_THAT(changed, IsOk());
  EXPECT_FALSE(changed->cache_hit());
  EXPECT_EQ(first->key(), changed->key());
  EXPECT_TRUE(t.Load(request)->cache_hit());
  EXPECT_EQ(t.Stats().builds(), 2u);
}

TEST_F(BuilderTest, DebugInformationAndLinkTimeOptimisationGiveTheSameBytesInTwoFolders) {
  TestBuilder one(TestBuilder::On::kLocalExecutor);
  TestBuilder two(TestBuilder::On::kLocalExecutor, {}, TestBuilder::Tools::kOwn);
  for (const char* program : {"g++", "clang++"}) {
    KERNIX_NEED_PROGRAM(compiler, program);
    for (const std::vector<const char*>& flags :
         std::vector<std::vector<const char*>>{{"-g"}, {"-flto"}, {"-g", "-flto"}}) {
      v1::LoadRequest request = CppRequest(compiler);
      for (const char* flag : flags) request.mutable_options()->add_compile_flags(flag);
      const auto a = one.Load(request);
      const auto b = two.Load(request);
      ASSERT_THAT(a, IsOk());
      ASSERT_THAT(b, IsOk());
      EXPECT_EQ(a->artifact_digest(), b->artifact_digest()) << program << flags.back();
      EXPECT_THAT(one.Artifact(*a), Not(HasSubstr(one.folder.path()))) << program << flags.back();
    }
  }
}

TEST_F(BuilderTest, ALookUpCountsWhenItsHitHasArrived) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  const v1::LoadRequest request = CppRequest(compiler_);
  int delivered = 0;
  const auto look_up = [&](const v1::LoadRequest& wanted, bool arrives) {
    return t.builder->LookUp(wanted, UserId{0}, [&](const v1::LoadResult& hit) {
      ++delivered;
      EXPECT_TRUE(hit.cache_hit());
      return arrives;
    });
  };
  EXPECT_FALSE(look_up(request, true));
  EXPECT_FALSE(look_up(v1::LoadRequest(), true));
  EXPECT_EQ(delivered, 0);
  ASSERT_THAT(t.Load(request), IsOk());
  EXPECT_FALSE(look_up(request, false));
  EXPECT_EQ(t.Stats().hits(), 0u);
  EXPECT_TRUE(look_up(request, true));
  EXPECT_EQ(t.Stats().hits(), 1u);
  EXPECT_EQ(delivered, 2);
}

// Compilers take any bytes as letters, and protobuf no text that is not UTF-8.
TEST_F(BuilderTest, ANameThatIsNotUtf8IsLeftOut) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_source(0)->set_text(
      "#ifdef OLD\nvoid f(const BE::Tensor caf\xe9, BE::Tensor y);\n"
      "#endif\n"
      "void f(const BE::Tensor x, BE::Tensor y) {}\n");
  request.mutable_functions()->Clear();
  request.mutable_functions()->add_function()->set_name("f");
  const auto built = t.Load(request);
  ASSERT_THAT(built, IsOk());
  v1::LoadResult read;
  EXPECT_TRUE(read.ParseFromString(built->SerializeAsString()));
  const auto hit = t.Load(request);
  ASSERT_THAT(hit, IsOk());
  EXPECT_TRUE(hit->cache_hit());
}

TEST_F(BuilderTest, ALoadHasSoManyWarningsOfAName) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  v1::LoadRequest request = CppRequest(compiler_);
  std::string text;
  request.mutable_functions()->Clear();
  for (size_t i = 0; i < kMostOfAName + 2; ++i) {
    StrAppend(&text, "void f", i, "(BE::Tensor a, BE::Tensor b) {}\n");
    request.mutable_functions()->add_function()->set_name(StrCat("f", i));
  }
  request.mutable_source(0)->set_text(text);
  const auto built = t.Load(request);
  ASSERT_THAT(built, IsOk());
  ASSERT_EQ(built->warning_size(), static_cast<int>(kMostOfAName));
  EXPECT_THAT(built->warning(kMostOfAName - 1).text(), EndsWith(" (and 2 more like this)"));
}

// A request that was looked up before is not planned again, but everything that is outside of it is looked at.
TEST_F(BuilderTest, ARequestThatIsKnownFindsWhatHasChanged) {
  TestBuilder t(TestBuilder::On::kLocalExecutor, {}, TestBuilder::Tools::kOwn);
  const auto is_hit = [&](const v1::LoadRequest& request) {
    return t.builder->LookUp(request, UserId{0}, [](const v1::LoadResult&) { return true; });
  };
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_source(0)->mutable_text()->insert(0, "#include <locale.h>\n");
  ASSERT_THAT(t.Load(request), IsOk());
  EXPECT_TRUE(is_hit(request));
  EXPECT_TRUE(is_hit(request));
  t.env.PretendChanged("/usr/include/locale.h");
  EXPECT_FALSE(is_hit(request));
  ASSERT_THAT(t.Load(request), IsOk());
  EXPECT_TRUE(is_hit(request));
  t.env.PretendChanged(compiler_);
  EXPECT_FALSE(is_hit(request));
  ASSERT_THAT(t.Load(request), IsOk());
  EXPECT_TRUE(is_hit(request));
  request.set_name("no module's name\n");
  EXPECT_FALSE(is_hit(request));
  request.set_name("another_name");
  EXPECT_TRUE(is_hit(request));
  request.set_force_rebuild(true);
  EXPECT_FALSE(is_hit(request));
}

// Without reading anything, and after one check of each file.
TEST_F(BuilderTest, AKnownHitIsRightAsLongAsNothingHasChanged) {
  TestBuilder t(TestBuilder::On::kLocalExecutor, {}, TestBuilder::Tools::kOwn);
  const auto take = [](const v1::LoadResult&) { return true; };
  const auto is_known = [&](const v1::LoadRequest& request) {
    FileCheck check(t.env);
    return t.builder->LookUpKnown(LookupOf(request), UserId{0}, check, take);
  };
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_source(0)->mutable_text()->insert(0, "#include <locale.h>\n");
  const v1::LoadRequest first = request;
  const auto load = [&] { ASSERT_THAT(t.Load(request), IsOk()); };
  EXPECT_FALSE(is_known(request));
  load();
  const int reads = t.env.Calls(Operation::kReadFile) + t.env.Calls(Operation::kOpenFile);
  const uint64_t hits = t.Stats().hits();
  EXPECT_TRUE(is_known(request));
  EXPECT_EQ(t.env.Calls(Operation::kReadFile) + t.env.Calls(Operation::kOpenFile), reads);
  EXPECT_EQ(t.Stats().hits(), hits + 1);
  t.env.PretendChanged("/usr/include/locale.h");
  EXPECT_FALSE(is_known(request));
  load();
  EXPECT_TRUE(is_known(request));
  t.env.PretendChanged(compiler_);
  EXPECT_FALSE(is_known(request));
  load();
  EXPECT_TRUE(is_known(request));
  ASSERT_THAT(t.cache->Purge({}), IsOk());
  EXPECT_FALSE(is_known(request));
  load();
  request.mutable_source(0)->mutable_text()->append("// another kernel\n");
  load();
  request = first;
  EXPECT_TRUE(is_known(request)) << "the build of another kernel changes nothing for this one";
  request.set_name("another_name");
  EXPECT_TRUE(is_known(request));
  request.set_name("no module's name\n");
  EXPECT_FALSE(is_known(request));
}

TEST_F(BuilderTest, AKnownHitWhoseArtifactIsDamagedIsNone) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  v1::LoadRequest request = CppRequest(compiler_);
  const auto built = t.Load(request);
  ASSERT_THAT(built, IsOk());
  const auto take = [](const v1::LoadResult&) { return true; };
  ASSERT_TRUE(t.builder->LookUp(request, UserId{0}, take));
  FileCheck check(t.env);
  EXPECT_TRUE(t.builder->LookUpKnown(LookupOf(request), UserId{0}, check, take));
  ASSERT_THAT(t.env.WriteFile(built->artifact_path(), "damaged", 0444), IsOk());
  EXPECT_FALSE(t.builder->LookUpKnown(LookupOf(request), UserId{0}, check, take));
}

TEST_F(BuilderTest, AFileOfAFlagThatHasChangedIsNoHit) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  const std::string specs = t.folder / "my.specs";
  ASSERT_THAT(t.env.WriteFile(specs, "*kernix:\n0\n\n", 0644), IsOk());
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_options()->add_compile_flags(StrCat("-specs=", specs));
  const auto is_hit = [&] { return t.builder->LookUp(request, UserId{0}, [](const v1::LoadResult&) { return true; }); };
  ASSERT_THAT(t.Load(request), IsOk());
  EXPECT_TRUE(is_hit());
  EXPECT_TRUE(is_hit());
  ASSERT_THAT(t.env.WriteFile(specs, "*kernix:\n1\n\n", 0644), IsOk());
  EXPECT_FALSE(is_hit());
}

TEST_F(BuilderTest, AToolThatIsReplacedDuringABuildIsNoticed) {
  TestBuilder t(TestBuilder::On::kLocalExecutor, {}, TestBuilder::Tools::kOwn);
  const v1::LoadRequest request = CppRequest(compiler_);
  Fault replace{.operation = Operation::kRunProcess, .match = "unit.cc"};
  replace.before = [&] { t.env.PretendChanged(compiler_); };
  t.env.Inject(replace);
  const absl::Status outdated = t.Load(request).status();
  EXPECT_TRUE(absl::IsAborted(outdated)) << outdated;  // tells the client to load again
  EXPECT_THAT(ToStd(outdated.message()), AllOf(StartsWith(compiler_), HasSubstr("changed while it was being used")));
  EXPECT_EQ(t.Stats().entries(), 0u);
  const auto again = t.Load(request);
  ASSERT_THAT(again, IsOk());
  EXPECT_FALSE(again->cache_hit());
  EXPECT_TRUE(t.Load(request)->cache_hit());
}

// As if the compiler were replaced between the two looks at it.
TEST_F(BuilderTest, AToolThatIsReplacedWhileItIsReadIsNoticed) {
  TestBuilder t(TestBuilder::On::kLocalExecutor, {}, TestBuilder::Tools::kOwn);
  Fault replace{.operation = Operation::kOpenFile, .match = "cc1plus"};
  replace.before = [&] { t.env.PretendChanged(compiler_); };
  t.env.Inject(replace);
  const absl::Status outdated = t.Load(CppRequest(compiler_)).status();
  EXPECT_TRUE(absl::IsAborted(outdated)) << outdated;
  EXPECT_EQ(t.Stats().entries(), 0u);
  EXPECT_THAT(t.Load(CppRequest(compiler_)), IsOk());
}

TEST_F(BuilderTest, AFileOfAFlagThatChangesDuringABuildIsNoticed) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  const std::string specs = t.folder / "my.specs";
  ASSERT_THAT(t.env.WriteFile(specs, "*kernix:\n0\n\n", 0644), IsOk());
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_options()->add_compile_flags(StrCat("-specs=", specs));
  Fault replace{.operation = Operation::kRunProcess, .match = "unit.cc"};
  replace.before = [&] { EXPECT_THAT(Env::Posix().WriteFile(specs, "*kernix:\n1\n\n", 0644), IsOk()); };
  t.env.Inject(replace);
  const absl::Status outdated = t.Load(request).status();
  EXPECT_TRUE(absl::IsAborted(outdated)) << outdated;
  EXPECT_EQ(KindOf(outdated), v1::ErrorDetail::TOOLCHAIN);
  EXPECT_THAT(ToStd(outdated.message()), HasSubstr("my.specs changed while it was being used"));
  EXPECT_EQ(t.Stats().entries(), 0u);
  EXPECT_THAT(t.Load(request), IsOk());
}

TEST_F(BuilderTest, ARemovedArtifactIsBuiltAgain) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  const auto first = t.Load(CppRequest(compiler_));
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(t.env.RemoveFile(first->artifact_path()), IsOk());
  const auto second = t.Load(CppRequest(compiler_));
  ASSERT_THAT(second, IsOk());
  EXPECT_FALSE(second->cache_hit());
  EXPECT_TRUE(t.env.Stat(first->artifact_path(), true).ok());
}

TEST_F(BuilderTest, VerboseLoadsSeeCommandsAndWarnings) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_options()->add_compile_flags("-Wunused-variable");
  request.mutable_source(0)->mutable_text()->append("void g() { int unused_one; }\n");
  request.set_verbose(true);
  RecordingObserver observer;
  ASSERT_THAT(t.Load(request, observer), IsOk());
  EXPECT_THAT(observer.output, AllOf(HasSubstr(" -c "), HasSubstr("unused_one"), HasSubstr("-shared")));
  ASSERT_FALSE(observer.progress.empty());
  EXPECT_EQ(observer.progress.back().steps_done(), 2u);  // compile, link
  EXPECT_EQ(observer.progress.back().steps_total(), 2u);
}

// Those that come with kernixd, whichever compiler and options the kernel has, or those of its flags.
TEST_F(BuilderTest, HandlersFitTheKernelsCompilerAndFlags) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  std::vector<std::string> compilers = {compiler_};
  if (const std::optional<std::string> clang = testing::FindOnPath("clang++")) compilers.push_back(*clang);
  for (const std::string& compiler : compilers) {
    for (const char* flag : {"-O1", "-march=native", "-fopenmp-simd", "-g", "-fno-exceptions", "-fno-rtti", "-flto",
                             "-D_GLIBCXX_USE_CXX11_ABI=0", "-fcf-protection=none", "-static-libstdc++"}) {
      v1::LoadRequest request = CppRequest(compiler);
      request.mutable_options()->add_compile_flags(flag);
      request.set_verbose(true);
      RecordingObserver observer;
      const auto built = t.Load(request, observer);
      ASSERT_THAT(built, IsOk()) << compiler << " " << flag;
      void* library = dlopen(built->artifact_path().c_str(), RTLD_NOW | RTLD_LOCAL);
      ASSERT_NE(library, nullptr) << dlerror();
      EXPECT_NE(dlsym(library, built->function(0).handler_symbol().c_str()), nullptr);
    }
  }
}

TEST_F(BuilderTest, ArtifactsHoldNoPathOfMachineOrUser) {
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_options()->add_compile_flags("-g");
  request.mutable_source(0)->mutable_text()->insert(
      0, "#include <vector>\n#include \"h.h\"\nextern \"C\" const char* where() { return __FILE__; }\n");
  const std::string header = "inline const char* here() { return __FILE__; }\n";
  AddHeader(request, 0, "h.h", header);
  TestBuilder one(TestBuilder::On::kLocalExecutor);
  TestBuilder two(TestBuilder::On::kLocalExecutor, {}, TestBuilder::Tools::kOwn);
  RecordingObserver observer({header});
  const auto a = one.Load(request, observer);
  const auto b = two.Load(request, observer);
  ASSERT_THAT(a, IsOk());
  ASSERT_THAT(b, IsOk());
  EXPECT_EQ(a->artifact_digest(), b->artifact_digest());
  const std::string artifact = one.Artifact(*a);
  EXPECT_THAT(artifact, Not(HasSubstr(one.folder.path())));
  EXPECT_THAT(artifact, Not(HasSubstr("action-")));
  EXPECT_THAT(artifact, Not(HasSubstr("/usr/include/c++")));
}

// The content is known, changes during the build, and changes back.
TEST_F(BuilderTest, AFileThatWasAnotherOneForAWhileIsNoticed) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  const std::string header = t.folder / "mine.h";
  const auto write = [&](int step) {
    EXPECT_THAT(Env::Posix().WriteFile(header, StrCat("inline int Step() { return ", step, "; }\n"), 0644), IsOk());
  };
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_source(0)->mutable_text()->append(
      StrCat("#include \"", header, "\"\nextern \"C\" int step() { return Step(); }\n"));
  write(1);
  const auto first = t.Load(request);
  ASSERT_THAT(first, IsOk());

  Fault compile{.operation = Operation::kRunProcess, .match = "unit.cc"};
  compile.before = [&] { write(2); };
  Fault link{.operation = Operation::kRunProcess, .match = "kernel.so"};
  link.before = [&] { write(1); };
  t.env.Inject(compile);
  t.env.Inject(link);
  request.set_force_rebuild(true);
  const auto second = t.Load(request);
  ASSERT_THAT(second, IsOk());
  EXPECT_NE(second->artifact_digest(), first->artifact_digest());
  request.set_force_rebuild(false);
  const auto third = t.Load(request);
  ASSERT_THAT(third, IsOk());
  EXPECT_FALSE(third->cache_hit());
  EXPECT_EQ(third->artifact_digest(), first->artifact_digest());
}

TEST_F(BuilderTest, AFileOfAFlagThatWasAnotherOneForAWhileIsNoticed) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  const std::string specs = t.folder / "my.specs";
  const auto write = [&](const char* value) {
    EXPECT_THAT(Env::Posix().WriteFile(specs, StrCat("*kernix:\n", value, "\n\n"), 0644), IsOk());
  };
  write("0");
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_options()->add_compile_flags(StrCat("-specs=", specs));
  Fault compile{.operation = Operation::kRunProcess, .match = "unit.cc"};
  compile.before = [&] {
    write("1");
    write("0");
  };
  t.env.Inject(compile);
  const absl::Status outdated = t.Load(request).status();
  EXPECT_TRUE(absl::IsAborted(outdated)) << "nobody knows what the compiler has read: " << outdated;
  EXPECT_THAT(t.Load(request), IsOk());
}

TEST_F(BuilderTest, FlagsOfTheUserWin) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  v1::LoadRequest request = CppRequest(compiler_);
  const std::string text = request.source(0).text();
  request.mutable_source(0)->set_text(
      StrCat(text, "static_assert(__cplusplus == 201703L);\n", "#ifndef __OPTIMIZE__\n#error not optimised\n#endif\n"));
  EXPECT_THAT(t.Load(request), IsOk()) << "unless flags say otherwise";
  request.mutable_source(0)->set_text(
      StrCat(text, "static_assert(__cplusplus == 202002L);\n", "#ifdef __OPTIMIZE__\n#error optimised\n#endif\n"));
  request.mutable_options()->add_compile_flags("-std=c++20");
  request.mutable_options()->add_compile_flags("-O0");
  EXPECT_THAT(t.Load(request), IsOk());
}

// For example, a user's header in a folder before JAX's, which clients name last.
TEST_F(BuilderTest, TheFirstIncludeRootThatHasAHeaderWins) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  const std::string mine = "#define MINE 1\n", theirs = "#error theirs\n", only_theirs = "#define THEIRS 1\n";
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_source(0)->mutable_text()->append(
      "#include \"xla/ffi/api/c_api.h\"\n#include <xla/ffi/api/api.h>\n#if !MINE || !THEIRS\n#error none\n#endif\n");
  AddHeader(request, 0, "xla/ffi/api/c_api.h", mine);
  AddHeader(request, 1, "xla/ffi/api/c_api.h", theirs);
  AddHeader(request, 1, "xla/ffi/api/api.h", only_theirs);
  RecordingObserver observer({mine, theirs, only_theirs});
  EXPECT_THAT(t.Load(request, observer), IsOk());
}

TEST_F(BuilderTest, AnArtifactNamesNoFolderToSearchForLibraries) {
  KERNIX_NEED_PROGRAM(readelf, "readelf");
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  const auto built = t.Load(CppRequest(compiler_));
  ASSERT_THAT(built, IsOk());
  EXPECT_THAT(DynamicSection(readelf, *built), AllOf(HasSubstr("(NEEDED)"), Not(ContainsRegex("R(UN)?PATH"))));
}

// A content with many names is read and checked once, under any of its names.
TEST_F(BuilderTest, AHeaderUnderManyNamesIsOneText) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  v1::LoadRequest request = CppRequest(compiler_);
  const std::string text = "#pragma once\ninline std::vector<int> Numbers() { return {1}; }\n";
  for (int i = 0; i < 100; ++i) AddHeader(request, 0, StrCat("h", i, ".h"), text);
  request.mutable_source(0)->mutable_text()->append("#include \"h7.h\"\n#include \"h99.h\"\n");
  RecordingObserver observer({text});
  EXPECT_THAT(t.Load(request, observer), IsOk());
}

// Threads that load while the test holds a build back.
class HeldBuild : public ::testing::Test {
 protected:
  void SetUp() override {
    KERNIX_NEED_PROGRAM(compiler, "g++");
    compiler_ = compiler;
  }

  // Makes the compiler wait until Release().
  void Hold(TestBuilder& t) {
    t.env.Inject(Slow(Operation::kRunProcess, "unit.cc", [this] {
      reached_.set_value();
      AwaitValue("the release of the build", released_);
    }));
  }
  void Release() { release_.set_value(); }
  void WaitUntilCompiling() { AwaitValue("a compiler that runs", reached_.get_future()); }

  static void WaitUntilJoined(TestBuilder& t, uint64_t joined) {
    Await(StrCat(joined, " joined loads"), [&] { return t.Stats().joined() >= joined; });
  }

  std::string compiler_;
  std::promise<void> reached_, release_;
  std::shared_future<void> released_ = release_.get_future().share();
};

TEST_F(HeldBuild, AnyNumberOfAskersIsOneBuild) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  Hold(t);
  constexpr int kAskers = 12;
  std::vector<std::future<absl::StatusOr<v1::LoadResult>>> loads;
  for (int i = 0; i < kAskers; ++i) {
    loads.push_back(std::async(std::launch::async, [&, i] {
      v1::LoadRequest request = CppRequest(compiler_);
      request.set_name(StrCat("name ", i));
      request.set_force_rebuild(i % 3 == 0);  // forced rebuilds join, too
      return t.Load(request);
    }));
  }
  WaitUntilJoined(t, kAskers - 1);
  Release();
  std::set<std::string> digests;
  int joined = 0;
  for (auto& load : loads) {
    const auto result = AwaitValue("a load", load);
    ASSERT_THAT(result, IsOk());
    digests.insert(result->artifact_digest());
    if (result->joined()) ++joined;
  }
  for (int i = 0; i < kAskers; ++i) EXPECT_EQ(t.cache->Purge({.name = StrCat("name ", i)})->tags, 1u);
  EXPECT_EQ(digests.size(), 1u);
  EXPECT_EQ(joined, kAskers - 1);
  EXPECT_EQ(t.Stats().builds(), 1u);
  EXPECT_EQ(t.Stats().misses(), uint64_t{kAskers});
  EXPECT_EQ(t.Stats().joined(), uint64_t{kAskers} - 1);
}

// Two requests of one key need not have the same warnings.
TEST_F(HeldBuild, EachAskerGetsTheWarningsOfItsOwnRequest) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  Hold(t);
  v1::LoadRequest inferred = CppRequest(compiler_);
  inferred.mutable_source(0)->set_text("void f(BE::Tensor a, BE::Tensor b) {}\n");
  inferred.mutable_functions()->Clear();
  inferred.mutable_functions()->add_function()->set_name("f");
  v1::LoadRequest told = inferred;
  for (const char* token : {"ret", "ret"}) told.mutable_functions()->mutable_function(0)->add_tokens(token);
  auto first = std::async(std::launch::async, [&] { return t.Load(inferred); });
  WaitUntilCompiling();
  auto second = std::async(std::launch::async, [&] { return t.Load(told); });
  WaitUntilJoined(t, 1);
  Release();
  const auto warned = AwaitValue("the load that infers", first);
  const auto silent = AwaitValue("the load that tells", second);
  ASSERT_THAT(warned, IsOk());
  ASSERT_THAT(silent, IsOk());
  EXPECT_EQ(warned->key(), silent->key());
  EXPECT_EQ(warned->warning_size(), 1);
  EXPECT_EQ(silent->warning_size(), 0);
}

TEST_F(HeldBuild, ALoadThatMayNotCompileJoinsABuildThatRuns) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  Hold(t);
  v1::LoadRequest request = CppRequest(compiler_);
  auto first = std::async(std::launch::async, [&] { return t.Load(CppRequest(compiler_)); });
  WaitUntilCompiling();
  request.set_only_cached(true);
  auto second = std::async(std::launch::async, [&] { return t.Load(request); });
  WaitUntilJoined(t, 1);
  Release();
  EXPECT_THAT(AwaitValue("the load that builds", first), IsOk());
  const auto joined = AwaitValue("the load that may not", second);
  ASSERT_THAT(joined, IsOk());
  EXPECT_TRUE(joined->joined());
  EXPECT_EQ(t.Stats().builds(), 1u);
}

// Whoever may compile gets a result, whoever asks for the same and may not.
TEST_F(BuilderTest, LoadsThatMayNotCompileAreInNobodysWay) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  std::vector<std::future<absl::StatusOr<v1::LoadResult>>> loads;
  constexpr int kLoads = 16;
  for (int i = 0; i < kLoads; ++i) {
    loads.push_back(std::async(std::launch::async, [&, i] {
      v1::LoadRequest request = CppRequest(compiler_);
      request.set_only_cached(i % 2 == 0);
      return t.Load(request);
    }));
  }
  for (int i = 0; i < kLoads; ++i) {
    const auto result = AwaitValue("a load", loads[static_cast<size_t>(i)]);
    if (i % 2 != 0 || result.ok()) {
      EXPECT_THAT(result, IsOk());
    } else {
      EXPECT_EQ(KindOf(result.status()), v1::ErrorDetail::NOT_CACHED);
    }
  }
  EXPECT_EQ(t.Stats().builds(), 1u);
}

TEST_F(HeldBuild, AFailureReachesAllWhoWait) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  Hold(t);
  v1::LoadRequest request = CppRequest(compiler_);
  request.mutable_source(0)->mutable_text()->append("nonsense;\n");
  std::vector<std::future<absl::StatusOr<v1::LoadResult>>> loads;
  for (int i = 0; i < 4; ++i) loads.push_back(std::async(std::launch::async, [&] { return t.Load(request); }));
  WaitUntilJoined(t, 3);
  Release();
  for (auto& load : loads) EXPECT_EQ(KindOf(AwaitValue("a load", load).status()), v1::ErrorDetail::COMPILATION);
  EXPECT_EQ(t.Stats().failures(), 1u);
}

TEST_F(HeldBuild, TheLastAskerWhoLeavesEndsTheBuild) {
  BuilderOptions options;
  options.linger = std::chrono::milliseconds(0);
  TestBuilder t(TestBuilder::On::kLocalExecutor, options);
  Hold(t);
  const auto cancellation = std::make_shared<Cancellation>();
  auto load = std::async(std::launch::async, [&] {
    RecordingObserver observer;
    return t.builder->Load(CppRequest(compiler_), UserId{0}, observer, cancellation);
  });
  WaitUntilCompiling();
  cancellation->Cancel();
  EXPECT_EQ(KindOf(AwaitValue("the cancelled load", load).status()), v1::ErrorDetail::CANCELLED);
  Release();
  Await("the end of the build", [&] { return t.Stats().cancelled() > 0; });
  EXPECT_EQ(t.Stats().failures(), 0u);
  EXPECT_EQ(t.Stats().builds(), 0u);
  EXPECT_THAT(t.Load(CppRequest(compiler_)), IsOk());
  EXPECT_EQ(t.Stats().builds(), 1u);
}

TEST_F(HeldBuild, OneWhoLeavesDoesNotDisturbTheOther) {
  BuilderOptions options;
  options.linger = std::chrono::milliseconds(0);
  TestBuilder t(TestBuilder::On::kLocalExecutor, options);
  Hold(t);
  const auto cancellation = std::make_shared<Cancellation>();
  auto leaver = std::async(std::launch::async, [&] {
    RecordingObserver observer;
    return t.builder->Load(CppRequest(compiler_), UserId{0}, observer, cancellation);
  });
  WaitUntilCompiling();
  auto stayer = std::async(std::launch::async, [&] { return t.Load(CppRequest(compiler_)); });
  WaitUntilJoined(t, 1);
  cancellation->Cancel();
  EXPECT_EQ(KindOf(AwaitValue("the cancelled load", leaver).status()), v1::ErrorDetail::CANCELLED);
  Release();
  EXPECT_THAT(AwaitValue("the other load", stayer), IsOk());
  EXPECT_EQ(t.Stats().cancelled(), 0u);
}

TEST_F(HeldBuild, DestructionEndsWhatRuns) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  Hold(t);
  auto load = std::async(std::launch::async, [&] { return t.Load(CppRequest(compiler_)); });
  WaitUntilCompiling();
  auto destroyed = std::async(std::launch::async, [&] { t.builder.reset(); });
  Release();
  AwaitValue("the end of the builder", destroyed);
  const auto result = AwaitValue("the load", load);
  EXPECT_TRUE(result.ok() || KindOf(result.status()) == v1::ErrorDetail::CANCELLED) << result.status();
}

class CudaBuilderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KERNIX_NEED_PROGRAM(compiler, "g++");
    KERNIX_NEED_NVCC(nvcc);
    request_ = CudaRequest(compiler, nvcc);
    toolkit_ = Dirname(Dirname(nvcc));
  }

  // Has kernixd learn, for each pass, what the stand-in of the runtime header lacks that the request's kernel takes.
  // What a kernel could teach is learned when the next one could teach it, too.
  void LearnStandIn(TestBuilder& t) {
    for (const char* comment : {"// first\n", "// second\n"}) {
      v1::LoadRequest request = request_;
      request.mutable_source(0)->mutable_text()->append(comment);
      EXPECT_THAT(t.Load(request), IsOk());
    }
    t.AwaitEndOfLearning();
  }

  v1::LoadRequest request_;
  std::string toolkit_;
};

TEST_F(CudaBuilderTest, HostCodeOfABatchWaitsForDeviceCode) {
  RankingBuilder t;
  for (const bool is_of_batch : {false, true}) {
    request_.set_batch(is_of_batch);
    request_.mutable_source(0)->mutable_text()->append("static const int edit = 0;\n#define edit another_edit\n");
    ASSERT_THAT(t.Load(request_), IsOk());
    const std::map<std::string, uint64_t>& rank_of = t.executor.rank_of;
    ASSERT_TRUE(rank_of.contains("cudafe++ host"));
    EXPECT_EQ(rank_of.at("host compile") > rank_of.at("cudafe++ host"), is_of_batch);
    EXPECT_EQ(rank_of.at("link"), rank_of.at("cudafe++ host"));
  }
}

TEST_F(CudaBuilderTest, InASharedKernixdHostCodeCountsForDeviceCode) {
  // With a macro of the runtime header, the first load reads all of it, as later ones do.
  request_.mutable_options()->add_compile_flags("-DCUDA_ENABLE_DEPRECATED");
  std::string& text = *request_.mutable_source(0)->mutable_text();
  text += "int how_many_blocks(int n) { return n + 1; }\n";
  for (const auto policy : {toolchain::FlagPolicy::kPerUser, toolchain::FlagPolicy::kShared}) {
    TestBuilder t(TestBuilder::On::kLocalExecutor, {.flag_policy = policy});
    ASSERT_THAT(t.Load(request_), IsOk());
    v1::LoadRequest edited = request_;
    *edited.mutable_source(0)->mutable_text() = absl::StrReplaceAll(text, {{"n + 1", "n + 2"}});
    const auto loaded = t.Load(edited);
    ASSERT_THAT(loaded, IsOk());
    const auto trace = t.cache->TraceOf(*Digest::FromRaw(loaded->key()));
    ASSERT_TRUE(trace.ok() && trace->has_value());
    const auto& steps = (*trace)->step();
    const auto cicc = std::find_if(steps.begin(), steps.end(),
                                   [](const v1::TracedStep& step) { return step.name().starts_with("cicc"); });
    ASSERT_TRUE(cicc != steps.end());
    EXPECT_EQ(cicc->how() == v1::TracedStep::RUN, policy == toolchain::FlagPolicy::kShared);
  }
}

TEST_F(CudaBuilderTest, TheSameBytesInTwoFoldersWithoutAPathInThem) {
  request_.mutable_options()->add_architectures("sm_80");
  request_.mutable_source(0)->mutable_text()->append("extern \"C\" const char* where() { return __FILE__; }\n");
  TestBuilder one(TestBuilder::On::kLocalExecutor);
  TestBuilder two(TestBuilder::On::kLocalExecutor, {}, TestBuilder::Tools::kOwn);
  const auto a = one.Load(request_);
  const auto b = two.Load(request_);
  ASSERT_THAT(a, IsOk());
  ASSERT_THAT(b, IsOk());
  EXPECT_EQ(a->artifact_digest(), b->artifact_digest());
  const std::string artifact = one.Artifact(*a);
  EXPECT_THAT(artifact, Not(HasSubstr(one.folder.path())));
  EXPECT_THAT(artifact, Not(HasSubstr("site-packages")));
  EXPECT_THAT(artifact, Not(HasSubstr("action-")));
  const auto hit = one.Load(request_);
  ASSERT_THAT(hit, IsOk());
  EXPECT_TRUE(hit->cache_hit());
}

// cudart is linked in; other libraries appear only by name.
TEST_F(CudaBuilderTest, AnArtifactNeedsNoCudaRuntimeAndNamesNoFolder) {
  KERNIX_NEED_PROGRAM(readelf, "readelf");
  TestBuilder t(TestBuilder::On::kInlineExecutor);
  const auto built = t.Load(request_);
  ASSERT_THAT(built, IsOk());
  EXPECT_THAT(DynamicSection(readelf, *built),
              AllOf(HasSubstr("(NEEDED)"), Not(HasSubstr("libcudart")), Not(ContainsRegex("R(UN)?PATH"))));
}

TEST_F(CudaBuilderTest, AStandardOfTheUserWins) {
  TestBuilder t(TestBuilder::On::kInlineExecutor);
  request_.mutable_source(0)->mutable_text()->append("static_assert(__cplusplus == 202002L);\n");
  request_.mutable_options()->add_compile_flags("-std=c++20");
  EXPECT_THAT(t.Load(request_), IsOk());
}

TEST_F(CudaBuilderTest, HeadersOfTheUserMayUseHalfTypes) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  const auto header = [](const char* name) {
    return StrCat("#pragma once\n__device__ inline float ", name, "(const half* p) { return __half2float(*p); }\n");
  };
  const std::string quoted = header("Quoted"), angled = header("Angled");
  request_.mutable_source(0)->mutable_text()->insert(
      0, "#include \"brainevent/common.h\"\n#include \"quoted.h\"\n#include <angled.h>\n");
  AddHeader(request_, 0, "quoted.h", quoted);
  AddHeader(request_, 1, "angled.h", angled);
  request_.mutable_options()->add_quoted_include_root(0);
  RecordingObserver observer({quoted, angled});
  EXPECT_THAT(t.Load(request_, observer), IsOk());
}

// What each load of a series runs of nvcc's programs.
TEST_F(CudaBuilderTest, AnEditCostsOnlyTheStepsThatItConcerns) {
  TestBuilder t(TestBuilder::On::kLocalExecutor, {}, TestBuilder::Tools::kKnown, TestBuilder::Lessons::kAll);
  request_.mutable_options()->add_architectures("sm_80");
  request_.set_verbose(true);
  const auto commands = [&](const v1::LoadRequest& request) {
    RecordingObserver observer;
    EXPECT_THAT(t.Load(request, observer), IsOk());
    return observer.output;
  };
  LearnStandIn(t);
  v1::LoadRequest request = request_;
  std::string& text = *request.mutable_source(0)->mutable_text();
  text += "// one\n";
  EXPECT_THAT(commands(request), AllOf(HasSubstr("/cicc "), HasSubstr("/cudafe++ ")));

  // Preprocessing leaves nothing of a comment.
  text.replace(text.size() - 4, 3, "two");
  EXPECT_THAT(commands(request), AllOf(HasSubstr("-E "), Not(HasSubstr("/cicc ")), Not(HasSubstr("/cudafe++ ")),
                                       Not(HasSubstr("/ptxas "))));

  v1::LoadRequest more = request;
  more.mutable_options()->add_architectures("sm_86");
  EXPECT_THAT(commands(more), AllOf(HasSubstr("-arch compute_86"), Not(HasSubstr("-arch compute_80")),
                                    Not(HasSubstr("-arch compute_90"))));

  v1::LoadRequest alone = request;
  alone.mutable_options()->clear_architectures();
  alone.mutable_options()->add_architectures("sm_90");
  EXPECT_THAT(commands(alone), AllOf(HasSubstr("fatbinary"), Not(HasSubstr("/cicc "))));

  v1::LoadRequest edited = request;
  edited.mutable_source(0)->mutable_text()->append("__global__ void another(int* p) { *p = 1; }\n");
  EXPECT_THAT(commands(edited), AllOf(HasSubstr("/cicc "), HasSubstr("/cudafe++ ")));

  request.set_force_rebuild(true);
  EXPECT_THAT(commands(request), AllOf(HasSubstr("/nvcc -c "), Not(HasSubstr("/cicc "))));
}

TEST_F(CudaBuilderTest, AKilledPhaseLeavesNothingAndTheNextLoadRunsIt) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  t.env.Inject(KilledChild("/ptxas"));
  EXPECT_EQ(KindOf(t.Load(request_).status()), v1::ErrorDetail::RESOURCE);
  EXPECT_EQ(t.Stats().entries(), 0u);
  const auto left = t.env.ListDirectory(t.cache->scratch_directory());

  request_.set_verbose(true);
  RecordingObserver observer;
  ASSERT_THAT(t.Load(request_, observer), IsOk());
  EXPECT_THAT(observer.output, AllOf(HasSubstr("/ptxas "), Not(HasSubstr("/cicc "))));
  EXPECT_EQ(*left, *t.env.ListDirectory(t.cache->scratch_directory()));
}

// Had the new cicc's result been kept, it would serve the old toolkit, which may come back.
TEST_F(CudaBuilderTest, AToolkitThatIsReplacedBetweenTwoStepsEndsTheBuildAndServesNoOther) {
  TestBuilder t(TestBuilder::On::kLocalExecutor, {}, TestBuilder::Tools::kOwn);
  const std::string cicc = toolkit_ + "/nvvm/bin/cicc";
  ASSERT_TRUE(t.env.Stat(cicc, true).ok());
  Fault replace{.operation = Operation::kRunProcess, .match = "/cicc"};
  replace.before = [&] { t.env.PretendChanged(cicc); };
  t.env.Inject(replace);
  const absl::Status outdated = t.Load(request_).status();
  EXPECT_TRUE(absl::IsAborted(outdated)) << outdated;
  EXPECT_EQ(t.Stats().entries(), 0u);

  t.env.PretendChanged("");
  request_.set_verbose(true);
  RecordingObserver observer;
  ASSERT_THAT(t.Load(request_, observer), IsOk());
  EXPECT_THAT(observer.output, HasSubstr("/cicc "));
}

// The first compile reads all of cuda_runtime.h; then the daemon knows what a stand-in lacks.
TEST_F(CudaBuilderTest, AKernelReadsThePartsOfTheRuntimeHeaderThatItNames) {
  TestBuilder t(TestBuilder::On::kLocalExecutor, {}, TestBuilder::Tools::kKnown, TestBuilder::Lessons::kAll);
  request_.set_verbose(true);
  LearnStandIn(t);
  const auto runs = [&](const std::string& statement) {
    v1::LoadRequest request = request_;
    request.mutable_source(0)->mutable_text()->append(StrCat("__global__ void more(float* y) { ", statement, " }\n"));
    RecordingObserver observer;
    EXPECT_THAT(t.Load(request, observer), IsOk());
    return observer.output;
  };
  EXPECT_THAT(runs("y[0] = 2;"), AllOf(HasSubstr("-Ikernix-slim "), HasSubstr("-D__MATH_FUNCTIONS_H__")));
  // Only the whole header declares this.
  EXPECT_THAT(runs("}\ndouble host(double x) { return std::beta(x, 2.0);"), Not(HasSubstr("-Ikernix-slim ")));
  // What headers of the toolkit take, no guess sees.
  const std::string half = "}\n#include <cuda_fp16.h>\n__device__ __half as_half(float x) { return __float2half(x);";
  EXPECT_THAT(runs(half), Not(HasSubstr("-Ikernix-slim ")));
  // Headers of the request are read.
  const auto with_header = [&](const std::string& text) {
    v1::LoadRequest request = request_;
    request.mutable_source(0)->mutable_text()->append("#include \"own.h\"\n");
    AddHeader(request, 0, "own.h", text);
    RecordingObserver observer({text});
    EXPECT_THAT(t.Load(request, observer), IsOk());
    return observer.output;
  };
  EXPECT_THAT(with_header("__device__ inline float own() { return 1; }\n"),
              AllOf(HasSubstr("-Ikernix-slim "), HasSubstr("-D__MATH_FUNCTIONS_H__")));
  EXPECT_THAT(with_header("#include <cuda_fp16.h>\n"), Not(HasSubstr("-Ikernix-slim ")));
  EXPECT_THAT(with_header("inline double own(double x) { return std::beta(x, 2.0); }\n"),
              Not(HasSubstr("-Ikernix-slim ")));
  // A macro of a flag comes before the header.
  const auto with_flag = [&](const char* flag) {
    v1::LoadRequest request = request_;
    request.mutable_options()->add_compile_flags(flag);
    RecordingObserver observer;
    EXPECT_THAT(t.Load(request, observer), IsOk());
    return observer.output;
  };
  EXPECT_THAT(with_flag("-DBLOCK_SIZE=7"), HasSubstr("-D__MATH_FUNCTIONS_H__"));
  EXPECT_THAT(with_flag("-DNDEBUG"), Not(HasSubstr("-D__MATH_FUNCTIONS_H__")));
  EXPECT_THAT(with_flag("-lineinfo"), Not(HasSubstr("-Ikernix-slim ")));
  // A header of the user in the place of one that the stand-in reads.
  std::string own;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/include/c++")) {
    own = t.env.ReadFile(entry.path().string() + "/initializer_list").value_or("");
  }
  // And in the place of one that only the whole header reads.
  const std::string maths = "#include_next <math.h>\n#define MATHS_OF_THE_USER 1\n";
  for (const auto& [name, text] :
       {std::pair<const char*, const std::string&>("initializer_list", own), {"math.h", maths}}) {
    v1::LoadRequest shadowed = request_;
    AddHeader(shadowed, 0, name, text);
    RecordingObserver observer({text});
    EXPECT_THAT(t.Load(shadowed, observer), IsOk());
    EXPECT_THAT(observer.output, Not(HasSubstr("-D__MATH_FUNCTIONS_H__"))) << name;
  }
  // The guess does not see a name that a macro makes: the preprocessed text shows that the stand-in does not serve.
  const std::string beta = "}\n#define JOIN(a, b) a##b\ndouble host(double x) { return std::JOIN(be, ta)(x, 2.0);";
  request_.mutable_source(0)->set_label("pasted.cu");
  EXPECT_THAT(runs(beta), AllOf(HasSubstr("-Ikernix-slim "), Not(HasSubstr("-D__MATH_FUNCTIONS_H__"))));
  request_.mutable_source(0)->set_label("kernel.cu");
  // Text that says it comes from a header of the system.
  EXPECT_THAT(runs("}\n# 1 \"toolchain/cuda/include/vector_types.h\"\n__device__ float one() { return 1;"),
              Not(HasSubstr("-D__MATH_FUNCTIONS_H__")));
  // An error is that of a whole call of nvcc, which need not run.
  for (const auto& [text, error] : {std::pair("void g() {\n  nonsense();\n}\n", "kernel.cu(18): error: identifier"),
                                    {"#include \"nowhere.h\"\n", "kernel.cu:17:10: fatal error: nowhere.h"},
                                    {"static_assert(1 == 2);\n", "kernel.cu(17): error: static assertion failed"},
                                    {"__global__ void g() { asm(\"nonsense;\"); }\n", "ptxas "}}) {
    v1::LoadRequest wrong = request_;
    wrong.mutable_source(0)->set_label("kernel.cu");
    wrong.mutable_source(0)->mutable_text()->append(text);
    RecordingObserver observer;
    EXPECT_THAT(GetErrorDetail(t.Load(wrong, observer).status()).message(),
                StartsWith(StrCat("compile failed: ", error)));
    EXPECT_THAT(observer.output, Not(HasSubstr("/nvcc -c ")));
  }
}

// Its time stamp lies ahead of the clock: nobody can tell whether it was read as it is now.
// The choice of the parts rests on all of the runtime header.
TEST_F(CudaBuilderTest, AHeaderThatAKernelsStandInLeavesOutCountsForItsArtifact) {
  TestBuilder t(TestBuilder::On::kLocalExecutor, {}, TestBuilder::Tools::kOwn, TestBuilder::Lessons::kAll);
  request_.set_verbose(true);
  LearnStandIn(t);
  request_.mutable_source(0)->mutable_text()->append("// another kernel\n");
  RecordingObserver observer;
  ASSERT_THAT(t.Load(request_, observer), IsOk());
  ASSERT_THAT(observer.output, HasSubstr("-D__MATH_FUNCTIONS_H__"));
  ASSERT_TRUE(t.Load(request_)->cache_hit());
  t.env.PretendChanged(StrCat(toolkit_, "/include/cuda_runtime.h"));
  const auto changed = t.Load(request_);
  ASSERT_THAT(changed, IsOk());
  EXPECT_FALSE(changed->cache_hit());
}

TEST_F(CudaBuilderTest, WhatCannotBeKeptIsNotLearnedAgainAndAgain) {
  TestBuilder t(TestBuilder::On::kLocalExecutor, {}, TestBuilder::Tools::kOwn, TestBuilder::Lessons::kAll);
  t.env.PretendFromTheFuture(toolkit_ + "/include/vector_types.h");
  ASSERT_THAT(t.Load(request_), IsOk());
  t.AwaitEndOfLearning();
}

TEST_F(CudaBuilderTest, HelpersOfSparseKernelsUnlessTheUserHasAHeaderOfThatName) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  v1::LoadRequest request = request_;
  request.mutable_source(0)->mutable_text()->insert(
      0,
      "#include \"cuda_common.h\"\n"
      "__global__ void sum_kernel(const __half* x, __nv_bfloat16* y, float* z) {\n"
      "  const float sum = warp_reduce_sum_f32(IS_ACTIVE_F16(x[0]) ? READ_F16(x[0]) : ZERO_F16);\n"
      "  atomic_add_f32(z, sum);\n  atomic_add_bf16(y, sum);\n}\n"
      "static_assert(BE_WARP_PER_ROW_WPB == 8);\n");
  EXPECT_THAT(t.Load(request), IsOk());

  const std::string own = "#define OWN 1\n";
  request = request_;
  request.mutable_source(0)->mutable_text()->insert(0,
                                                    "#include \"cuda_common.h\"\n#ifndef OWN\n#error ours\n#endif\n");
  AddHeader(request, 0, "cuda_common.h", own);
  RecordingObserver observer({own});
  EXPECT_THAT(t.Load(request, observer), IsOk());
}

TEST_F(CudaBuilderTest, LineTablesGiveTheSameBytesInTwoFolders) {
  TestBuilder one(TestBuilder::On::kLocalExecutor);
  TestBuilder two(TestBuilder::On::kLocalExecutor, {}, TestBuilder::Tools::kOwn);
  for (const char* flag : {"-lineinfo", "-G"}) {
    v1::LoadRequest request = request_;
    request.mutable_options()->add_compile_flags(flag);
    request.mutable_options()->add_compile_flags("-Xcompiler=-g");
    const auto a = one.Load(request);
    const auto b = two.Load(request);
    ASSERT_THAT(a, IsOk());
    ASSERT_THAT(b, IsOk());
    EXPECT_EQ(a->artifact_digest(), b->artifact_digest()) << flag;
    EXPECT_EQ(a->key(), b->key()) << flag;
    EXPECT_THAT(one.Artifact(*a), Not(HasSubstr(one.folder.path()))) << flag;
    EXPECT_THAT(one.Artifact(*a), Not(HasSubstr(toolkit_))) << flag;
  }
}

TEST_F(CudaBuilderTest, RelocatableDeviceCodeGetsADeviceLink) {
  request_.mutable_options()->add_compile_flags("-rdc=true");
  TestBuilder t(TestBuilder::On::kInlineExecutor);
  RecordingObserver observer;
  const auto result = t.Load(request_, observer);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(observer.progress.back().steps_total(), 3u);
}

TEST_F(CudaBuilderTest, ACompileErrorNamesTheUsersLine) {
  request_.mutable_source(0)->mutable_text()->append("void g() {\n  nonsense();\n}\n");
  TestBuilder t(TestBuilder::On::kInlineExecutor);
  const v1::ErrorDetail detail = GetErrorDetail(t.Load(request_).status());
  EXPECT_EQ(detail.kind(), v1::ErrorDetail::COMPILATION);
  EXPECT_THAT(detail.message(), StartsWith("compile failed: kernel.cu(18): error: "));
  EXPECT_THAT(detail.compiler_output(), HasSubstr("nonsense();"));
}

TEST_F(CudaBuilderTest, UnknownArchitectureIsATypedErrorBeforeAnythingRuns) {
  request_.mutable_options()->add_architectures("sm_10");
  TestBuilder t(TestBuilder::On::kInlineExecutor);
  EXPECT_EQ(KindOf(t.Load(request_).status()), v1::ErrorDetail::TOOLCHAIN);
  EXPECT_EQ(t.Stats().misses(), 0u);
}

}  // namespace
}  // namespace kernix::build
