// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/kept_preambles.h"

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
    "#define restrict __restrict__\n"
    "#pragma push_macro(\"restrict\")\n"
    "#undef restrict\n"
    "#pragma pop_macro(\"restrict\")\n"
    "#define POPPED 1\n"
    "#pragma push_macro(\"POPPED\")\n"
    "#undef POPPED\n"
    "#define POPPED 2\n"
    "static const char* const text = R\"(\n#define FROM_TEXT 32\n#undef TWICE\n)\";\n"
    "static const int counted = __COUNTER__;\n"
    "#define NEXT __COUNTER__\n"
    "#undef __GNUC_GNU_INLINE__\n";
constexpr char kList[] = "ITEM(4)\nITEM(5)\n";

class KeptPreamblesTest : public ::testing::Test {
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
    answer.with_kept_preamble = answer.output.find("-include kernix-preamble/") != std::string::npos;
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
  TestBuilder builder_{TestBuilder::On::kLocalExecutor, {}, TestBuilder::Tools::kKnown, TestBuilder::Lessons::kAll};
  int edits_ = 1000;
};

TEST_F(KeptPreamblesTest, AKeptPreambleChangesNothing) {
  // One that counts teaches nothing, and spoils nothing.
  for (int load = 0; load < 3; ++load) {
    const int offset = ++edits_;
    EXPECT_EQ(Load(Request(StrCat("__COUNTER__ - counted + ", offset))).value, offset + 1);
  }

  // Only comments differ, so the first one with a kept preamble finds what the last one without has made of the text.
  Answer answer;
  Await("a compile with a kept preamble", [&] {
    answer = Load(Request(StrCat("TWICE(item5) + static_cast<int>(INT8_MAX) /* ", ++edits_, " */")));
    EXPECT_EQ(answer.value, 137);
    return answer.with_kept_preamble;
  });
  EXPECT_THAT(answer.output, AllOf(Not(HasSubstr("/cicc ")), Not(HasSubstr("/cudafe++ "))));
  const auto value = [&](const std::string& expression) {
    const Answer loaded = Load(Request(expression));
    EXPECT_TRUE(loaded.with_kept_preamble) << expression;
    return loaded.value;
  };
  EXPECT_EQ(value("TWICE(FROM_FLAG) + item4"), 18);
  EXPECT_EQ(value("0; }\n#ifdef FROM_TEXT\nint none[-1];\n#endif\nextern \"C\" int size(int* restrict) { return 0"), 0);

  // What follows depends on more than text and macros.
  EXPECT_EQ(Load(Request("__COUNTER__ - counted")).value, 1);
  EXPECT_EQ(value("NEXT - counted"), 1);
  EXPECT_EQ(Load(Request("3; }\n#pragma pop_macro(\"POPPED\")\nextern \"C\" int popped() { return POPPED")).value, 3);
  EXPECT_EQ(value("POPPED"), 2);
  const std::string again =
      "0; }\n#undef ITEM\n#define ITEM(x) + x\nextern \"C\" int sum() { return 0\n#include <list.h>\n";
  EXPECT_EQ(value(again), 0);
  EXPECT_FALSE(Load(Request(again + "+ 1")).with_kept_preamble);  // not tried again
  const Answer warns = Load(Request("3; }\n#warning seen\nvoid unused() {"));
  EXPECT_TRUE(warns.with_kept_preamble);
  EXPECT_THAT(warns.output, HasSubstr("warning: #warning seen"));

  // Lines keep their names.
  EXPECT_EQ(value("__LINE__"), 19);
  RecordingObserver observer({config_, kList});
  const v1::ErrorDetail detail = GetErrorDetail(builder_.Load(Request("nonsense"), observer).status());
  EXPECT_THAT(detail.message(), StartsWith("compile failed: kernel.cu(19): error: "));

  // An edited header makes another preamble.
  config_ += "#define ADDED 30\n";
  const Answer with_edit = Load(Request("ADDED"));
  EXPECT_EQ(with_edit.value, 30);
  EXPECT_FALSE(with_edit.with_kept_preamble);
}

TEST_F(KeptPreamblesTest, OnePreambleServesAllValuesOfAMacroThatItDoesNotUse) {
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
  const Answer same = Load(Request("FROM_FLAG", "-DFROM_FLAG=9"));
  EXPECT_EQ(same.value, 9);
  EXPECT_TRUE(same.with_kept_preamble);
  EXPECT_EQ(Load(Request("FROM_FLAG", "-DFROM_FLAG=8")).value, 8);
}

// Loads count from the first one on, though the names of the runtime header are learned after the second.
TEST_F(KeptPreamblesTest, LoadsBeforeTheNamesAreKnownCount) {
  request_.mutable_source(0)->mutable_text()->insert(0, "#include <cuda_fp16.h>\n");
  const auto load = [&](const std::string& value) {
    const Answer answer = Load(Request(value));
    builder_.AwaitEndOfLearning();
    return answer.with_kept_preamble;
  };
  for (const char* value : {"1", "2", "3"}) EXPECT_FALSE(load(value));
  EXPECT_TRUE(load("4"));
}

// A header that forbids a name forbids it to every kernel, and one whose last words belong to what follows is not
// parted from it.
TEST_F(KeptPreamblesTest, WhatCannotBeKeptIsReadEachTime) {
  config_ += "#pragma GCC poison gets\nextern \"C\"\n";
  std::string& text = *request_.mutable_source(0)->mutable_text();
  text = "#include <config.h>\nint linked();\n" + text.substr(text.find("#include <cuda_runtime.h>"));
  for (int load = 0; load < 4; ++load) {
    const Answer answer = Load(Request(std::to_string(++edits_)));
    EXPECT_EQ(answer.value, edits_);
    EXPECT_FALSE(answer.with_kept_preamble);
  }
}

}  // namespace
}  // namespace kernix::build
