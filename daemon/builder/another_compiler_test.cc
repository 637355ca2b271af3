// SPDX-License-Identifier: Apache-2.0
//
// A third language: a row of traits and a compiler are all that it takes.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/base/load_warning.h"
#include "common/flags/languages.h"
#include "common/os/elf_file.h"
#include "common/wire/artifact_texts.h"
#include "daemon/plan/plan_parts.h"
#include "tests/support/testing_load.h"

namespace kernix::build {
namespace {

using ::testing::HasSubstr;

constexpr auto kToy = static_cast<v1::Language>(77);
constexpr char kRuntime[] = "kernix-unit/toy_runtime.cc";
constexpr char kRuntimeObject[] = "kernix-unit/toy_runtime.o";

// g++ does not know what a .toy is. Each module is linked with a runtime, which is compiled for it.
class ToyCompiler : public Compiler {
 public:
  Step Compile(const PlanInputs& inputs, const PlannedUnit& unit) const override {
    return AsCpp(HostCompiler().Compile(inputs, unit));
  }

  Step CheckSyntax(const PlanInputs& inputs, const PlannedUnit& unit) const override {
    return AsCpp(HostCompiler().CheckSyntax(inputs, unit));
  }

  ModuleParts More(const PlanInputs& inputs) const override {
    Step step = NewStep(inputs, "runtime", 256 << 20);
    step.action.argv = {inputs.tools.host_compiler, "-c", "-fPIC", "-o", kRuntimeObject, kRuntime};
    step.action.inputs = {
        exec::MakeInput(kRuntime, "#include <cmath>\nint Toy(double x) { return std::lround(x); }\n")};
    step.action.outputs = {kRuntimeObject};
    return {.steps = {std::move(step)}, .objects = {kRuntimeObject}, .libraries = {"-lm"}};
  }

 private:
  static Step AsCpp(Step step) {
    step.kind = StepKind::kOther;
    step.action.argv.insert(step.action.argv.end() - 1, {"-DTOY=40", "-x", "c++"});
    return step;
  }
};

v1::GeneratedUnit UnitOf(const v1::LoadResult& result) {
  const auto file = ElfFile::Open(result.artifact_path());
  EXPECT_THAT(file, IsOk());
  return ReadTexts(file->image()).value().unit(0);
}

class AnotherCompilerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    LanguageTraits toy = TraitsOf(v1::LANGUAGE_CPP);
    toy.language = kToy;
    toy.id = "toy";
    toy.name = "Toy";
    toy.suffixes = {".toy"};
    toy.unit = "unit.toy";
    toy.runs_on_gpu = true;
    Languages().push_back(std::move(toy));
    Compilers()[kToy] = new ToyCompiler;
  }

  static void TearDownTestSuite() {
    Languages().pop_back();
    delete Compilers().at(kToy);
    Compilers().erase(kToy);
  }

  void SetUp() override {
    KERNIX_NEED_PROGRAM(compiler, "g++");
    request_ = CppRequest(compiler);
    request_.set_language(kToy);
    request_.mutable_source(0)->set_text(
        "#include \"brainevent/common.h\"\n"
        "int Toy(double x);\n"
        "extern \"C\" int answer() { return TOY + Toy(1.6); }\n"
        "// @BE f ret\n"
        "void f(BE::Tensor y) {}\n");
  }

  v1::LoadRequest request_;
};

TEST_F(AnotherCompilerTest, BuildsWhatOpens) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  const auto built = t.Load(request_);
  ASSERT_THAT(built, IsOk());
  void* library = dlopen(built->artifact_path().c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_EQ(reinterpret_cast<int (*)()>(dlsym(library, "answer"))(), 42);
  EXPECT_NE(dlsym(library, built->function(0).handler_symbol().c_str()), nullptr);
  dlclose(library);

  const auto listed = t.cache->List({});
  ASSERT_THAT(listed, IsOk());
  EXPECT_EQ(listed->front().entry.detail.language(), kToy);
  EXPECT_EQ(UnitOf(*built).language(), kToy);
  const auto hit = t.Load(request_);
  ASSERT_THAT(hit, IsOk());
  EXPECT_TRUE(hit->cache_hit());
}

TEST_F(AnotherCompilerTest, MayHaveUnitsOfCpp) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  v1::Source& second = *request_.add_source();
  second.set_label("second.cc");
  second.set_language(v1::LANGUAGE_CPP);
  second.set_text("int second = 1;\n");
  request_.mutable_options()->set_separate_units(true);
  EXPECT_THAT(t.Load(request_), IsOk());
  request_.mutable_source(1)->set_language(v1::LANGUAGE_CUDA);
  EXPECT_THAT(GetErrorDetail(t.Load(request_).status()).message(),
              HasSubstr("second.cc is CUDA, but this load is Toy"));
  request_.mutable_source(1)->set_language(static_cast<v1::Language>(78));
  EXPECT_THAT(GetErrorDetail(t.Load(request_).status()).message(), HasSubstr("does not know"));
}

TEST_F(AnotherCompilerTest, RunsOnTheGpu) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  const auto without = t.Load(request_);
  ASSERT_THAT(without, IsOk());
  ASSERT_EQ(without->warning_size(), 1);
  EXPECT_EQ(without->warning(0).name(), warning::kCudaWithoutStream);
  request_.mutable_source(0)->set_text(
      "#include \"brainevent/common.h\"\n// @BE f ret stream\nvoid f(BE::Tensor y, int64_t stream) {}\n");
  const auto with = t.Load(request_);
  ASSERT_THAT(with, IsOk());
  EXPECT_EQ(with->warning_size(), 0);
  EXPECT_THAT(UnitOf(*with).text(), HasSubstr("kRequiredStream"));
}

// The functions cannot be read, and so the compiler is asked.
TEST_F(AnotherCompilerTest, SaysWhatIsWrong) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  request_.mutable_source(0)->set_text("// @BE f ret\nint x = TOY + nothing;\nvoid f(BE::Tensor y {}\n");
  const absl::Status error = t.Load(request_).status();
  EXPECT_EQ(KindOf(error), v1::ErrorDetail::COMPILATION);
  EXPECT_THAT(GetErrorDetail(error).compiler_output(), HasSubstr("kernel.cc:2"));
}

TEST_F(AnotherCompilerTest, TakesNoArchitectures) {
  TestBuilder t(TestBuilder::On::kLocalExecutor);
  request_.mutable_options()->add_architectures("sm_90");
  EXPECT_EQ(KindOf(t.Load(request_).status()), v1::ErrorDetail::INVALID_REQUEST);
}

TEST(LanguagesTest, EachHasACompiler) {
  for (const LanguageTraits& traits : Languages()) {
    EXPECT_TRUE(Compilers().contains(traits.language)) << traits.name;
    EXPECT_EQ(LanguageOfFile(std::string("a").append(traits.suffixes.front())), traits.language);
  }
}

}  // namespace
}  // namespace kernix::build
