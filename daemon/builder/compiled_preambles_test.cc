// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/compiled_preambles.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/base/strings.h"
#include "tests/support/await.h"
#include "tests/support/testing_load.h"

namespace kernix::build {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CompiledPreamblesTest : public ::testing::TestWithParam<v1::Language> {
 protected:
  explicit CompiledPreamblesTest(TestBuilder::Tools tools = TestBuilder::Tools::kKnown)
      : builder_(TestBuilder::On::kLocalExecutor, {}, tools, TestBuilder::Lessons::kAll) {}

  void SetUp() override {
    KERNIX_NEED_PROGRAM(compiler, "g++");
    if (GetParam() == v1::LANGUAGE_CUDA) {
      KERNIX_NEED_NVCC(nvcc);
      request_ = CudaRequest(compiler, nvcc);
    } else {
      request_ = CppRequest(compiler);
    }
    request_.set_verbose(true);
    request_.mutable_source(0)->mutable_text()->insert(0, "#include <config.h>\n");
  }

  // A kernel with a function that returns a value.
  v1::LoadRequest Request(const std::string& value) const {
    v1::LoadRequest request = request_;
    request.mutable_source(0)->mutable_text()->append("extern \"C\" int answer() { return " + value + "; }\n");
    AddHeader(request, 0, "config.h", config_);
    return request;
  }

  struct Answer {
    int value = -1;
    bool with_compiled_preamble = false;
    std::string output;
  };

  Answer Load(const v1::LoadRequest& request) {
    RecordingObserver observer({config_});
    const auto built = builder_.Load(request, observer);
    EXPECT_THAT(built, IsOk());
    Answer answer{.output = observer.output};
    answer.with_compiled_preamble = answer.output.find("-include kernix-compiled/") != std::string::npos;
    void* library = built.ok() ? dlopen(built->artifact_path().c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (library != nullptr) {
      if (auto* function = reinterpret_cast<int (*)()>(dlsym(library, "answer"))) answer.value = function();
      dlclose(library);
    }
    return answer;
  }

  // Loads edited kernels until one is compiled so.
  void AwaitCompiledPreamble() {
    Await("a compile with a compiled preamble", [&] {
      const int value = ++edits_;
      const Answer answer = Load(Request(std::to_string(value)));
      EXPECT_EQ(answer.value, value);
      return answer.with_compiled_preamble;
    });
  }

  v1::LoadRequest request_;
  std::string config_ =
      "#pragma once\nstruct Item { char name; int size; };\ninline int twice(int x) { return 2 * x; }\n";
  TestBuilder builder_;
  int edits_ = 1000;
};

TEST_P(CompiledPreamblesTest, ACompiledPreambleChangesNothing) {
  AwaitCompiledPreamble();
  const Answer another = Load(Request("twice(sizeof(Item))"));
  EXPECT_TRUE(another.with_compiled_preamble);
  EXPECT_EQ(another.value, 16);

  // What the compile prints is what it prints without one.
  const Answer warns =
      Load(Request("0; }\n__attribute__((deprecated)) static int old() { return 0; }\nint caller() { return old()"));
  EXPECT_THAT(warns.output, AllOf(HasSubstr("kernel.c"), HasSubstr("is deprecated"), Not(HasSubstr("preamble.h:"))));

  // An edited header makes another one.
  config_ += "inline int thrice(int x) { return 3 * x; }\n";
  const Answer edited = Load(Request("thrice(5)"));
  EXPECT_FALSE(edited.with_compiled_preamble);
  EXPECT_EQ(edited.value, 15);
  AwaitCompiledPreamble();
}

class CompiledCppPreamblesTest : public CompiledPreamblesTest {
 protected:
  CompiledCppPreamblesTest() : CompiledPreamblesTest(TestBuilder::Tools::kOwn) {}
};

TEST_P(CompiledCppPreamblesTest, AnotherHeaderOfTheSystemMakesAnotherOne) {
  // The request does not have it.
  const ScratchDirectory folder;
  const std::string header = folder / "elsewhere.h";
  const auto write = [&](int value) {
    ASSERT_THAT(Env::Posix().WriteFile(header, StrCat("inline int elsewhere() { return ", value, "; }\n"), 0644),
                IsOk());
  };
  write(1);
  request_.mutable_source(0)->mutable_text()->insert(0, StrCat("#include \"", header, "\"\n"));
  AwaitCompiledPreamble();
  write(22);
  const Answer edited = Load(Request("elsewhere()"));
  EXPECT_EQ(edited.value, 22);
  EXPECT_FALSE(edited.with_compiled_preamble);
  AwaitCompiledPreamble();
  const Answer again = Load(Request("elsewhere() + 1"));
  EXPECT_EQ(again.value, 23);
  EXPECT_TRUE(again.with_compiled_preamble);
}

TEST_P(CompiledCppPreamblesTest, TheSecondUnitTeaches) {
  const auto load = [&](const std::string& value) {
    const Answer answer = Load(Request(value));
    builder_.AwaitEndOfLearning();
    return answer.with_compiled_preamble;
  };
  EXPECT_FALSE(load("1"));
  EXPECT_FALSE(load("2"));
  EXPECT_TRUE(load("3"));
}

TEST_P(CompiledCppPreamblesTest, TheUnitKeepsItsName) {
  config_ += "inline const char* base() { return __BASE_FILE__; }\n";
  AwaitCompiledPreamble();
  EXPECT_EQ(Load(Request("__builtin_strcmp(base(), __BASE_FILE__)")).value, 0);
}

TEST_P(CompiledCppPreamblesTest, AMacroOfTheCompilerStaysUndefined) {
  config_ += "#undef __SSE2__\n";
  for (int load = 0; load < 6; ++load) EXPECT_FALSE(Load(Request(std::to_string(++edits_))).with_compiled_preamble);
  EXPECT_EQ(Load(Request("\n#ifdef __SSE2__\n1\n#else\n2\n#endif\n")).value, 2);
}

// A precompiled header would lose the state of this pragma.
TEST_P(CompiledPreamblesTest, APragmaThatChangesWhatFollowsKeepsItsHeadersWithTheRest) {
  config_ += "#pragma pack(1)\n";
  for (int load = 0; load < 6; ++load) EXPECT_FALSE(Load(Request(std::to_string(++edits_))).with_compiled_preamble);
  EXPECT_EQ(Load(Request("[] { struct Packed { char name; int size; }; return sizeof(Packed); }()")).value, 5);
}

INSTANTIATE_TEST_SUITE_P(Languages, CompiledPreamblesTest, ::testing::Values(v1::LANGUAGE_CPP, v1::LANGUAGE_CUDA),
                         [](const auto& of) { return of.param == v1::LANGUAGE_CPP ? "Cpp" : "Cuda"; });

INSTANTIATE_TEST_SUITE_P(Languages, CompiledCppPreamblesTest, ::testing::Values(v1::LANGUAGE_CPP));

}  // namespace
}  // namespace kernix::build
