// SPDX-License-Identifier: Apache-2.0
//
// Remembers the real compilers of this machine.
#include "daemon/toolchain/remembered_toolchains.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/base/paths.h"
#include "daemon/toolchain/description.h"
#include "tests/support/find_tools.h"
#include "tests/support/temp_folder.h"

namespace kernix::toolchain {
namespace {

using testing::TempFolder;

class RememberedToolchainsTest : public ::testing::Test {
 protected:
  ToolchainPtr Here(const std::string& nvcc = "") {
    v1::ToolchainPaths paths;
    paths.set_host_compiler("/usr/bin/g++");
    paths.set_nvcc(nvcc);
    auto found = registry_.Resolve(paths, nvcc.empty() ? v1::LANGUAGE_CPP : v1::LANGUAGE_CUDA);
    EXPECT_TRUE(found.ok()) << found.status();
    return *found;
  }

  // As a later daemon sees it, where nobody names a tool.
  absl::StatusOr<ToolchainPtr> Later(v1::Language language = v1::LANGUAGE_CPP) {
    ToolchainRegistry later(Env::Posix());
    later.RememberIn({folder()});
    return later.Resolve({}, language);
  }

  std::string folder() const { return folder_.File("toolchains"); }

  // Makes the description of `toolchain` older than all others.
  void Age(const Toolchain& toolchain) const {
    const timespec old[2] = {{1, 0}, {1, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, JoinPath(folder(), toolchain.identity.Hex()).c_str(), old, 0), 0);
  }

  TempFolder folder_;
  ToolchainRegistry registry_{Env::Posix()};
};

TEST_F(RememberedToolchainsTest, TheLastOneThatFilledTheStoreServes) {
  const ToolchainPtr host = Here();
  registry_.RememberIn({folder()});
  EXPECT_TRUE(absl::IsUnimplemented(Later().status())) << "nothing has filled it";
  registry_.Remember(*host);
  const auto later = Later();
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ((*later)->identity, host->identity);
  EXPECT_EQ((*later)->host.path, host->host.path);
  EXPECT_TRUE((*later)->described->of_store);
  EXPECT_TRUE(absl::IsUnimplemented(Later(v1::LANGUAGE_CUDA).status())) << "it has no nvcc";
}

TEST_F(RememberedToolchainsTest, EachLanguageGetsTheLastThatServesIt) {
  KERNIX_NEED_NVCC(nvcc);
  const ToolchainPtr host = Here();
  const ToolchainPtr cuda = Here(nvcc);
  registry_.RememberIn({folder()});
  registry_.Remember(*cuda);
  EXPECT_EQ((*Later(v1::LANGUAGE_CUDA))->identity, cuda->identity);
  EXPECT_EQ((*Later())->identity, host->identity) << "the host compiler alone";
  registry_.Remember(*host);
  Age(*cuda);
  EXPECT_EQ((*Later(v1::LANGUAGE_CUDA))->identity, cuda->identity);
}

TEST_F(RememberedToolchainsTest, AStoreThatIsOnlyReadHasItsOwn) {
  const ToolchainPtr host = Here();
  registry_.RememberIn({folder()});
  registry_.Remember(*host);
  ToolchainRegistry later(Env::Posix());
  later.RememberIn({folder_.File("written"), folder()});
  const auto found = later.Resolve({}, v1::LANGUAGE_CPP);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->identity, host->identity);
}

TEST_F(RememberedToolchainsTest, WhatIsNoDescriptionIsPassedOver) {
  const ToolchainPtr host = Here();
  registry_.RememberIn({folder()});
  registry_.Remember(*host);
  Age(*host);
  ASSERT_TRUE(Env::Posix().WriteFile(JoinPath(folder(), "cut off"), "\x08\x01", 0600).ok());
  const auto later = Later();
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ((*later)->identity, host->identity);
}

TEST_F(RememberedToolchainsTest, WhatIsRememberedIsNotRememberedAgain) {
  registry_.RememberIn({folder()});
  registry_.Remember(*Here());
  const ToolchainPtr later = *Later();
  ToolchainRegistry other(Env::Posix());
  other.RememberIn({folder_.File("other")});
  other.Remember(*later);
  EXPECT_FALSE(Env::Posix().Stat(folder_.File("other")).ok());
}

}  // namespace
}  // namespace kernix::toolchain
