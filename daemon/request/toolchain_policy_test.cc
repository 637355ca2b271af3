// SPDX-License-Identifier: Apache-2.0
#include "daemon/request/toolchain_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>

#include "common/base/error.h"
#include "tests/support/mem_env.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;

v1::ToolchainPaths Paths(const std::string& host_compiler, const std::string& nvcc = "") {
  v1::ToolchainPaths paths;
  paths.set_host_compiler(host_compiler);
  paths.set_nvcc(nvcc);
  return paths;
}

class ToolchainPolicyTest : public testing::Test {
 protected:
  ToolchainPolicyTest() {
    for (const char* folder : {"/usr", "/opt", "/home"}) EXPECT_THAT(env_.CreateDirectories(folder, 0755), IsOk());
    Write("/usr/g++", "gcc 12");
    Write("/opt/nvcc", "nvcc 13");
    Write("/opt/g++", "gcc 14");
  }

  void Write(const std::string& path, std::string_view content) {
    ASSERT_THAT(env_.WriteFile(path, content, 0755), IsOk());
  }

  ToolchainPolicy Shared() {
    return ToolchainPolicy(
        env_, /*shared=*/true,
        {{.name = "plain", .paths = Paths("/usr/g++")}, {.name = "cuda", .paths = Paths("/opt/g++", "/opt/nvcc")}});
  }

  MemEnv env_;
};

TEST_F(ToolchainPolicyTest, AnOwnDaemonTakesWhatIsAsked) {
  ToolchainPolicy policy(env_, /*shared=*/false, {});
  EXPECT_EQ(policy.Choose(Paths("/home/g++", "/home/nvcc"), v1::LANGUAGE_CUDA)->nvcc(), "/home/nvcc");
}

TEST_F(ToolchainPolicyTest, ASharedOneTakesItsOwnToolOfTheSameContent) {
  Write("/home/my-g++", "gcc 12");
  ToolchainPolicy policy = Shared();
  EXPECT_EQ(policy.Choose(Paths("/usr/g++"), v1::LANGUAGE_CPP)->host_compiler(), "/usr/g++");
  EXPECT_EQ(policy.Choose(Paths("/home/my-g++"), v1::LANGUAGE_CPP)->host_compiler(), "/usr/g++");
}

TEST_F(ToolchainPolicyTest, ASharedOneTakesNoVariables) {
  ToolchainPolicy policy = Shared();
  v1::ToolchainPaths asked = Paths("/opt/g++", "/opt/nvcc");
  asked.add_variable("LD_LIBRARY_PATH=/home/me");
  EXPECT_EQ(policy.Choose(asked, v1::LANGUAGE_CUDA)->variable_size(), 0);
  asked.set_host_compiler("/usr/g++");
  EXPECT_EQ(policy.ChooseByName(asked, v1::LANGUAGE_CPP)->variable_size(), 0);
  ToolchainPolicy own(env_, /*shared=*/false, {});
  EXPECT_EQ(own.Choose(asked, v1::LANGUAGE_CPP)->variable_size(), 1);
}

TEST_F(ToolchainPolicyTest, ADescribedToolchainIsForWhoNamesNoTools) {
  ToolchainPolicy described(env_, /*shared=*/true, {}, /*has_description=*/true);
  for (const v1::Language language : {v1::LANGUAGE_CPP, v1::LANGUAGE_CUDA}) {
    EXPECT_EQ(described.Choose({}, language)->host_compiler(), "");
    EXPECT_TRUE(described.ChooseByName({}, language).has_value());
  }
  EXPECT_THAT(described.Choose(Paths("/usr/g++"), v1::LANGUAGE_CUDA), IsOk()) << "it has no nvcc";
  const auto other = described.Choose(Paths("/usr/g++"), v1::LANGUAGE_CPP);
  EXPECT_EQ(KindOf(other.status()), v1::ErrorDetail::NOT_REGISTERED_TOOLCHAIN);
  EXPECT_THAT(other.status().message(), HasSubstr("registered none, and a description for clients without compilers"));
  EXPECT_FALSE(described.ChooseByName(Paths("/usr/g++"), v1::LANGUAGE_CPP).has_value());
}

TEST_F(ToolchainPolicyTest, ARegisteredToolchainComesBeforeTheDescribedOne) {
  ToolchainPolicy both(env_, /*shared=*/true, {{.name = "plain", .paths = Paths("/usr/g++")}},
                       /*has_description=*/true);
  EXPECT_EQ(both.Choose({}, v1::LANGUAGE_CPP)->host_compiler(), "/usr/g++");
  EXPECT_EQ(both.ChooseByName({}, v1::LANGUAGE_CPP)->host_compiler(), "/usr/g++");
  EXPECT_EQ(both.Choose({}, v1::LANGUAGE_CUDA)->host_compiler(), "");
}

// Where it says something, it says what Choose() says.
TEST_F(ToolchainPolicyTest, ANameAloneMayDecide) {
  ToolchainPolicy own(env_, /*shared=*/false, {});
  EXPECT_EQ(own.ChooseByName(Paths("/home/g++"), v1::LANGUAGE_CPP)->host_compiler(), "/home/g++");
  ToolchainPolicy shared = Shared();
  EXPECT_EQ(shared.ChooseByName(Paths("/usr/g++"), v1::LANGUAGE_CPP)->host_compiler(), "/usr/g++");
  EXPECT_EQ(shared.ChooseByName(Paths(""), v1::LANGUAGE_CPP)->host_compiler(), "/usr/g++");
  EXPECT_FALSE(shared.ChooseByName(Paths("/opt/g++"), v1::LANGUAGE_CPP)) << "the first may have the same content";
  EXPECT_FALSE(shared.ChooseByName(Paths("/usr/g++", "/opt/nvcc"), v1::LANGUAGE_CUDA)) << "the first has no nvcc";
  EXPECT_FALSE(ToolchainPolicy(env_, /*shared=*/true, {}).ChooseByName(Paths("/usr/g++"), v1::LANGUAGE_CPP));
}

TEST_F(ToolchainPolicyTest, ForCudaBothToolsMustBeTheSame) {
  Write("/home/nvcc", "nvcc 13");
  ToolchainPolicy policy = Shared();
  EXPECT_EQ(policy.Choose(Paths("/opt/g++", "/home/nvcc"), v1::LANGUAGE_CUDA)->nvcc(), "/opt/nvcc");
  EXPECT_EQ(KindOf(policy.Choose(Paths("/usr/g++", "/home/nvcc"), v1::LANGUAGE_CUDA).status()),
            v1::ErrorDetail::NOT_REGISTERED_TOOLCHAIN);
}

TEST_F(ToolchainPolicyTest, RefusesOtherContentAndNamesWhatThereIs) {
  Write("/home/g++", "gcc 99");  // same length
  ToolchainPolicy policy = Shared();
  const auto chosen = policy.Choose(Paths("/home/g++"), v1::LANGUAGE_CPP);
  EXPECT_EQ(KindOf(chosen.status()), v1::ErrorDetail::NOT_REGISTERED_TOOLCHAIN);
  EXPECT_THAT(chosen, HasError(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("/home/g++"), HasSubstr("plain (/usr/g++)"),
                                     HasSubstr("cuda (/opt/g++ and /opt/nvcc)"))));
  EXPECT_FALSE(policy.Choose(Paths("/nowhere/g++"), v1::LANGUAGE_CPP).ok());
  EXPECT_FALSE(policy.Choose(Paths("/home"), v1::LANGUAGE_CPP).ok());
}

TEST_F(ToolchainPolicyTest, WhatIsLeftOpenMayBeAny) {
  ToolchainPolicy policy = Shared();
  EXPECT_EQ(policy.Choose(Paths(""), v1::LANGUAGE_CPP)->host_compiler(), "/usr/g++");
  EXPECT_EQ(policy.Choose(Paths(""), v1::LANGUAGE_CUDA)->nvcc(), "/opt/nvcc");
}

// Whoever names a file can exchange it at any time: the file that is open is the one to look at. And it may grow.
class GrowingFile : public ReadableFile {
 public:
  GrowingFile(uint64_t size, uint64_t& read) : size_(size), read_(read) {}
  absl::StatusOr<FileInfo> Stat() override { return FileInfo{.type = FileType::kRegular, .size = size_, .inode = 99}; }
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<char> buffer) override {
    if (offset > 100) return absl::InternalError("read without end");
    std::fill(buffer.begin(), buffer.end(), 'x');
    read_ += buffer.size();
    return buffer.size();
  }

 private:
  const uint64_t size_;
  uint64_t& read_;
};

class ExchangingEnv : public MemEnv {
 public:
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(const std::string& path) override {
    if (path == "/home/g++") return std::make_unique<GrowingFile>(size, read);
    return MemEnv::OpenFile(path);
  }
  absl::StatusOr<std::string> ReadFile(const std::string& path) override {
    ++whole_files;
    return MemEnv::ReadFile(path);
  }

  uint64_t size = 6;
  uint64_t read = 0;
  int whole_files = 0;
};

TEST(ToolchainPolicyOfExchangedFilesTest, ReadsNoMoreThanTheRegisteredToolHas) {
  ExchangingEnv env;
  for (const char* folder : {"/usr", "/home"}) ASSERT_THAT(env.CreateDirectories(folder, 0755), IsOk());
  for (const char* path : {"/usr/g++", "/home/g++"}) ASSERT_THAT(env.WriteFile(path, "gcc 12", 0755), IsOk());
  ToolchainPolicy policy(env, /*shared=*/true, {{.name = "plain", .paths = Paths("/usr/g++")}});
  EXPECT_EQ(KindOf(policy.Choose(Paths("/home/g++"), v1::LANGUAGE_CPP).status()),
            v1::ErrorDetail::NOT_REGISTERED_TOOLCHAIN);
  EXPECT_EQ(env.read, 6);
  env.size = uint64_t{8} << 40;
  EXPECT_FALSE(policy.Choose(Paths("/home/g++"), v1::LANGUAGE_CPP).ok());
  EXPECT_EQ(env.read, 6);
  EXPECT_EQ(env.whole_files, 0);
}

TEST_F(ToolchainPolicyTest, AnotherNameOfTheSameFileIsTheSame) {
  ASSERT_THAT(env_.CreateSymlink("/usr/g++", "/home/link"), IsOk());
  ToolchainPolicy policy = Shared();
  for (const char* name : {"/usr/./g++", "/usr//g++", "/home/../usr/g++", "/home/link"}) {
    const auto chosen = policy.Choose(Paths(name), v1::LANGUAGE_CPP);
    ASSERT_THAT(chosen, IsOk()) << name;
    EXPECT_EQ(chosen->host_compiler(), "/usr/g++");
  }
}

TEST_F(ToolchainPolicyTest, RunsNothing) {
  Write("/home/g++", "gcc 12");
  ToolchainPolicy policy = Shared();
  EXPECT_THAT(policy.Choose(Paths("/home/g++"), v1::LANGUAGE_CPP), IsOk());
  EXPECT_TRUE(env_.Processes().empty());
}

}  // namespace
}  // namespace kernix::server
