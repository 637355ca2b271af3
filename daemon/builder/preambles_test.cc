// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/preambles.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "tests/support/await.h"
#include "tests/support/testing_load.h"

namespace kernix::build {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kConfig[] =
    "#pragma once\n#include <stdint.h>\n"
    "#ifndef FROM_FLAG\n"
    "#define FROM_FLAG 7\n"
    "#endif\n"
    "#define TWICE(x) (2 * (x))\n"
    "#define ITEM(x) static const int item##x = x;\n"
    "static const int counted = __COUNTER__;\n"
    "#undef __GNUC_GNU_INLINE__\n";
constexpr char kList[] = "ITEM(4)\nITEM(5)\n";

class PreamblesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KERNIX_NEED_PROGRAM(compiler, "g++");
    KERNIX_NEED_NVCC(nvcc);
    request_ = CudaRequest(compiler, nvcc);
    request_.set_verbose(true);
    request_.mutable_source(0)->mutable_text()->insert(0, "#include <config.h>\n#include <list.h>\n");
  }

  // Kernels that begin alike, with a function that returns a value.
  v1::LoadRequest Request(const std::string& value, const std::string& flag = "") const {
    v1::LoadRequest request = request_;
    request.mutable_source(0)->mutable_text()->append("extern \"C\" int answer() { return " + value + "; }\n");
    AddHeader(request, 0, "config.h", config_);
    AddHeader(request, 0, "list.h", kList);
    if (!flag.empty()) request.mutable_options()->add_compile_flags(flag);
    return request;
  }

  struct Answer {
    int value = -1;
    bool with_kept_preamble = false;
    std::string output;
  };

  Answer Load(const v1::LoadRequest& request) {
    RecordingObserver observer({config_, kList});
    const auto built = builder_.Load(request, observer);
    EXPECT_THAT(built, IsOk());
    Answer answer{.output = observer.output};
    answer.with_kept_preamble = answer.output.find("-imacros kernix-preamble/") != std::string::npos;
    void* library = built.ok() ? dlopen(built->artifact_path().c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (library != nullptr) {
      if (auto* function = reinterpret_cast<int (*)()>(dlsym(library, "answer"))) answer.value = function();
      dlclose(library);
    }
    return answer;
  }

  // Loads edited kernels until a preamble is kept.
  void AwaitPreamble(const std::string& flag = "") {
    Await("a compile with a kept preamble", [&] {
      const int value = ++edits_;
      const Answer answer = Load(Request(std::to_string(value), flag));
      EXPECT_EQ(answer.value, value);
      return answer.with_kept_preamble;
    });
  }

  v1::LoadRequest request_;
  std::string config_ = kConfig;
  TestBuilder builder_{TestBuilder::On::kLocalExecutor};
  int edits_ = 1000;
};

TEST_F(PreamblesTest, AKeptPreambleChangesNothing) {
  // Only comments differ, so the first one with a kept preamble finds what the last one without has made of the text.
  Answer answer;
  Await("a compile with a kept preamble", [&] {
    answer = Load(Request(StrCat("TWICE(item5) + static_cast<int>(INT8_MAX) /* ", ++edits_, " */")));
    EXPECT_EQ(answer.value, 137);
    return answer.with_kept_preamble;
  });
  EXPECT_THAT(answer.output, AllOf(Not(HasSubstr("/cicc ")), Not(HasSubstr("/cudafe++ "))));
  EXPECT_EQ(Load(Request("TWICE(FROM_FLAG) + item4")).value, 18);

  // What follows depends on more than text and macros.
  EXPECT_EQ(Load(Request("__COUNTER__ - counted")).value, 1);
  const std::string again =
      "0; }\n#undef ITEM\n#define ITEM(x) + x\nextern \"C\" int sum() { return 0\n#include <list.h>\n";
  EXPECT_EQ(Load(Request(again)).value, 0);
  EXPECT_THAT(Load(Request("3; }\n#warning seen\nvoid unused() {")).output, HasSubstr("warning: #warning seen"));

  // Lines keep their names.
  EXPECT_EQ(Load(Request("__LINE__")).value, 19);
  RecordingObserver observer({config_, kList});
  const v1::ErrorDetail detail = GetErrorDetail(builder_.Load(Request("nonsense"), observer).status());
  EXPECT_THAT(detail.message(), StartsWith("compile failed: kernel.cu(19): error: "));

  // An edited header makes another preamble.
  config_ += "#define ADDED 30\n";
  const Answer with_edit = Load(Request("ADDED"));
  EXPECT_EQ(with_edit.value, 30);
  EXPECT_FALSE(with_edit.with_kept_preamble);
}

TEST_F(PreamblesTest, OnePreambleServesAllValuesOfAMacroThatItDoesNotUse) {
  AwaitPreamble("-DSIZE=1");
  const Answer another = Load(Request("SIZE", "-DSIZE=2"));
  EXPECT_EQ(another.value, 2);
  EXPECT_TRUE(another.with_kept_preamble);

  // The preamble uses this one: each value has one of its own, if it comes again.
  for (const int value : {1, 2, 3}) {
    const Answer answer = Load(Request("FROM_FLAG", "-DFROM_FLAG=" + std::to_string(value)));
    EXPECT_EQ(answer.value, value);
    EXPECT_FALSE(answer.with_kept_preamble);
  }
  AwaitPreamble("-DFROM_FLAG=9");
  EXPECT_EQ(Load(Request("FROM_FLAG", "-DFROM_FLAG=9")).value, 9);
  EXPECT_EQ(Load(Request("FROM_FLAG", "-DFROM_FLAG=8")).value, 8);
}

}  // namespace
}  // namespace kernix::build
