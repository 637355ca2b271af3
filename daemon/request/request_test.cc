// SPDX-License-Identifier: Apache-2.0
#include "daemon/request/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "common/base/error.h"
#include "tests/support/testing_load.h"

namespace kernix::build {
namespace {

using ::testing::HasSubstr;

class RequestTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KERNIX_NEED_PROGRAM(compiler, "g++");
    compiler_ = compiler;
    request_ = CppRequest(compiler_);
    static toolchain::ToolchainRegistry& registry = *new toolchain::ToolchainRegistry(Env::Posix());
    const auto toolchain = registry.Resolve(request_.toolchain(), v1::LANGUAGE_CPP);
    ASSERT_THAT(toolchain, IsOk());
    toolchain_ = *toolchain;
  }

  absl::StatusOr<BuildRequest> Validate(const v1::LoadRequest& request) {
    return ValidateRequest(Env::Posix(), request, toolchain_, policy_, limits_);
  }

  void ExpectRefused(const v1::LoadRequest& request, const std::string& words) {
    const auto result = Validate(request);
    EXPECT_EQ(KindOf(result.status()), v1::ErrorDetail::INVALID_REQUEST) << words;
    EXPECT_THAT(GetErrorDetail(result.status()).message(), HasSubstr(words));
  }

  std::string compiler_;
  v1::LoadRequest request_;
  toolchain::ToolchainPtr toolchain_;
  RequestLimits limits_;
  toolchain::FlagPolicy policy_ = toolchain::FlagPolicy::kPerUser;
};

TEST_F(RequestTest, TakesAGoodOne) {
  AddHeader(request_, 1, "b.h", "b");
  AddHeader(request_, 0, "z/a.h", "a");
  AddHeader(request_, 0, "a.h", "a");
  const auto result = Validate(request_);
  ASSERT_THAT(result, IsOk());
  ASSERT_EQ(result->functions.size(), 1u);
  ASSERT_EQ(result->headers.size(), 3u);
  EXPECT_EQ(result->headers[0].path, "a.h");
  EXPECT_EQ(result->headers[1].path, "z/a.h");
  EXPECT_EQ(result->headers[2].path, "b.h");
}

TEST_F(RequestTest, RefusesAKernelInCppAndSaysWhere) {
  request_.mutable_source(0)->set_text("\n// @BE f\n__global__ void f(float* y) {}\n");
  ExpectRefused(request_, "function 'f' (kernel.cc:3) is a __global__ function, but the source is C++");
}

TEST_F(RequestTest, RefusesHeaderPathsThatCouldLeaveTheirRoot) {
  for (const char* path : {"", ".", "..", "../..", "a/../b.h", "a/../../b.h", "/etc/passwd", "./a.h", "a//b.h", "a/",
                           "../.up/a.h", "../../../../../../../../../../../../../../../../../a.h"}) {
    v1::LoadRequest request = request_;
    AddHeader(request, 0, path, "text");
    ExpectRefused(request, "normalised path");
  }
}

TEST_F(RequestTest, RefusesHeaderPathsThatToolsWouldWriteInTwoWays) {
  for (const char* path : {"a\n.h", "a\\", "a\\ .h", "a.h ", " a.h", "b /a.h", "b/ a.h", "\x7f.h"}) {
    v1::LoadRequest request = request_;
    AddHeader(request, 0, path, "text");
    ExpectRefused(request, "has a part that");
  }
  v1::LoadRequest request = request_;
  AddHeader(request, 0, "a b/c d.h", "text");
  EXPECT_THAT(Validate(request), IsOk());
}

TEST_F(RequestTest, RefusesHeadersThatDoNotFitTogether) {
  v1::LoadRequest twice = request_;
  AddHeader(twice, 0, "a.h", "1");
  AddHeader(twice, 0, "a.h", "2");
  ExpectRefused(twice, "listed twice");

  v1::LoadRequest file_and_folder = request_;
  AddHeader(file_and_folder, 0, "a", "1");
  AddHeader(file_and_folder, 0, "a/b/c.h", "2");
  ExpectRefused(file_and_folder, "also a folder");

  v1::LoadRequest outside = request_;
  AddHeader(outside, 0, "a.h", "1");
  outside.mutable_header(0)->set_include_root(7);
  ExpectRefused(outside, "include root 7 of 1");

  v1::LoadRequest no_digest = request_;
  AddHeader(no_digest, 0, "a.h", "1");
  no_digest.mutable_header(0)->set_digest("short");
  ExpectRefused(no_digest, "SHA-256");
}

TEST_F(RequestTest, RefusesSourcesThatAreEmptyUnnamedOrTooLarge) {
  v1::LoadRequest blank = request_;
  blank.mutable_source(0)->set_text(" \n\t\n");
  ExpectRefused(blank, "the source is empty");
  v1::LoadRequest none = request_;
  none.clear_source();
  ExpectRefused(none, "the source is empty");
  v1::LoadRequest no_label = request_;
  no_label.mutable_source(0)->set_label("");
  ExpectRefused(no_label, "no label");
  v1::LoadRequest folder = request_;
  folder.mutable_source(0)->set_label("/home/me/kernel.cc");
  ExpectRefused(folder, "is a path");
  limits_.max_source_bytes = 10;
  ExpectRefused(request_, "max_request_bytes");
}

TEST_F(RequestTest, RefusesOptionsThatDoNotFitTheLanguage) {
  v1::LoadRequest request = request_;
  request.set_language(v1::LANGUAGE_UNSPECIFIED);
  ExpectRefused(request, "C++ or CUDA");
  request = request_;
  request.mutable_options()->add_architectures("sm_90");
  ExpectRefused(request, "CUDA sources only");
  request = request_;
  request.mutable_options()->set_use_fast_math(true);
  ExpectRefused(request, "-ffast-math");
  request = request_;
  request.mutable_options()->set_optimization_level(4);
  ExpectRefused(request, "optimization_level 4");
  request = request_;
  request.mutable_functions()->add_function()->set_name("f");
  ExpectRefused(request, "not both");
}

TEST_F(RequestTest, RefusesMoreThanTheLimits) {
  limits_.max_headers = 1;
  AddHeader(request_, 0, "a.h", "1");
  AddHeader(request_, 0, "b.h", "2");
  ExpectRefused(request_, "at most 1");
  request_.clear_header();
  limits_.max_functions = 0;
  ExpectRefused(request_, "at most 0");
}

TEST_F(RequestTest, FoldersOfHeadersAreBounded) {
  limits_.max_header_folders = 8;  // "a", "a/b", "a/c", "a/c/d", "..", "../x" and those of the second root
  for (const char* path : {"a/c/d/3.h", "a/b/2.h", "top.h", "a/b/1.h", "../x/4.h"}) AddHeader(request_, 0, path, "1");
  AddHeader(request_, 1, "a/b/1.h", "1");
  EXPECT_THAT(Validate(request_), IsOk());
  AddHeader(request_, 0, "a.b/5.h", "1");
  ExpectRefused(request_, "lie in 9 folders; at most 8");
}

// One function, and `sources` units.
v1::LoadRequest WithSources(v1::LoadRequest request, int sources) {
  while (request.source_size() < sources) {
    v1::Source& source = *request.add_source();
    source.set_label(StrCat(request.source_size(), ".cc"));
    source.set_text("int x;\n");
  }
  request.mutable_options()->set_separate_units(true);
  return request;
}

TEST_F(RequestTest, StepsOfAPlanAreBounded) {
  const auto with_cuda = std::make_shared<toolchain::Toolchain>(*toolchain_);
  with_cuda->cuda.emplace().architectures = {80, 86, 90};
  toolchain_ = with_cuda;
  limits_.max_steps = 100;
  v1::LoadRequest request = request_;
  request.set_language(v1::LANGUAGE_CUDA);
  for (const char* name : {"sm_80", "8.6", "90a", "sm_86"}) request.mutable_options()->add_architectures(name);
  request.mutable_options()->set_keep(true);
  EXPECT_THAT(Validate(WithSources(request, 10)), IsOk());  // each one compile step and three for each of three
  ExpectRefused(WithSources(request, 11), "110 steps for its 11 separate sources and 3 architectures; at most 100");
  v1::LoadRequest mixed = WithSources(request, 11);
  mixed.mutable_source(10)->set_language(v1::LANGUAGE_CPP);
  ExpectRefused(mixed, "101 steps");
  request.mutable_options()->set_keep(false);
  EXPECT_THAT(Validate(WithSources(request, 100)), IsOk());
  ExpectRefused(WithSources(request, 101), "101 steps");
}

TEST_F(RequestTest, WordsThatEveryStepHasAreBounded) {
  limits_.max_command_bytes = 10'000;
  const auto with = [&](const std::string& flag, int count) {
    v1::LoadRequest request = WithSources(request_, 10);
    for (int i = 0; i < count; ++i) request.mutable_options()->add_compile_flags(flag);
    return request;
  };
  EXPECT_THAT(Validate(with("-Wall", 20)), IsOk());
  ExpectRefused(with("-Wall", 30), "in the commands of its 10 steps; at most 10000");
  ExpectRefused(with("-DX", 30), "in the commands");
  ExpectRefused(with("-DX=" + std::string(1'000, 'x'), 1), "in the commands");
  v1::LoadRequest roots = with("-Wall", 1);
  roots.mutable_options()->set_include_root_count(20);
  for (v1::Source& source : *roots.mutable_source()) {
    for (uint32_t root = 0; root < 20; ++root) source.add_include_root(root);
  }
  ExpectRefused(roots, "in the commands");
}

TEST_F(RequestTest, RefusesPathsThatNoFileSystemTakes) {
  const auto with_header = [&](const std::string& path) {
    v1::LoadRequest request = request_;
    AddHeader(request, 0, path, "text");
    return request;
  };
  std::string deep = "a.h", long_path = "a.h";
  for (int i = 0; i < 64; ++i) deep.insert(0, "d/");
  for (int i = 0; i < 5; ++i) long_path.insert(0, std::string(250, 'x') + "/");
  ExpectRefused(with_header(deep), "65 parts");
  ExpectRefused(with_header(long_path), "1258 bytes");
  ExpectRefused(with_header(std::string(256, 'x')), "a part of 256 bytes");
  EXPECT_THAT(Validate(with_header(deep.substr(2))), IsOk());
  v1::LoadRequest label = request_;
  label.mutable_source(0)->set_label(std::string(1025, 'x'));
  ExpectRefused(label, "source label");
  label.set_name(std::string(200, 'x'));
  label.mutable_source(0)->set_label(
      StrCat(label.name(), "[17]"));  // the label that clients give to a module's sources
  EXPECT_THAT(Validate(label), IsOk());
}

TEST_F(RequestTest, RefusesNamesThatNobodyCanRead) {
  for (const std::string& name : {std::string(), std::string("two\nlines"), std::string("a/b"), std::string(".."),
                                  std::string("caf\xe9"), std::string(201, 'n')}) {
    request_.set_name(name);
    ExpectRefused(request_, "cannot name a module: use 1 to 200 bytes of UTF-8");
  }
  request_.set_name(std::string(200, 'n'));
  EXPECT_THAT(Validate(request_), IsOk());
}

TEST_F(RequestTest, AFileAndAFolderOfOneNameAreFoundAmongNeighbours) {
  for (const char* path : {"a!", "a-b", "a.h", "a0", "b"}) AddHeader(request_, 0, path, "text");
  AddHeader(request_, 1, "a/x.h", "text");
  AddHeader(request_, 0, "a", "text");
  EXPECT_THAT(Validate(request_), IsOk());
  AddHeader(request_, 0, "a/x.h", "text");
  ExpectRefused(request_, "\"a\" is also a folder");
}

TEST_F(RequestTest, CudaWithoutNvccIsAToolchainError) {
  request_.set_language(v1::LANGUAGE_CUDA);
  EXPECT_EQ(KindOf(Validate(request_).status()), v1::ErrorDetail::TOOLCHAIN);
}

TEST_F(RequestTest, LabelsAreNames) {
  for (const char* label : {"../../../etc/passwd", "/etc/passwd", "src/k.cc", "..", ".", "a\\", "a ", " a", "a\tb"}) {
    v1::LoadRequest request = request_;
    request.mutable_source(0)->set_label(label);
    ExpectRefused(request, "source label");
  }
  for (const char* label : {"kernel.cc", "module[2]", "k..cc~2", "a b"}) {
    v1::LoadRequest request = request_;
    request.mutable_source(0)->set_label(label);
    EXPECT_THAT(Validate(request), IsOk()) << label;
  }
}

}  // namespace
}  // namespace kernix::build
