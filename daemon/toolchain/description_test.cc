// SPDX-License-Identifier: Apache-2.0
//
// Describes the real compilers of this machine, and compilers that there are not.
#include "daemon/toolchain/description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "daemon/toolchain/flags/flags.h"
#include "tests/support/find_tools.h"
#include "tests/support/temp_folder.h"

namespace kernix::toolchain {
namespace {

using ::testing::HasSubstr;
using testing::TempFolder;

class DescriptionTest : public ::testing::Test {
 protected:
  ToolchainPtr Here(const std::string& nvcc = "") {
    v1::ToolchainPaths paths;
    paths.set_host_compiler("/usr/bin/g++");
    paths.set_nvcc(nvcc);
    auto found = here_.Resolve(paths, nvcc.empty() ? v1::LANGUAGE_CPP : v1::LANGUAGE_CUDA);
    EXPECT_TRUE(found.ok()) << found.status();
    return *found;
  }

  void Describe(const Toolchain& toolchain) {
    const auto text = DescribeToolchain(Env::Posix(), here_.digests(), toolchain);
    ASSERT_TRUE(text.ok()) << text.status();
    Write(*text);
  }

  void Write(const std::string& text) { ASSERT_TRUE(Env::Posix().WriteFileDurably(file(), text, 0644).ok()); }
  std::string Read() const { return Env::Posix().ReadFile(file()).value(); }
  std::string file() const { return folder_.File("toolchain"); }

  absl::StatusOr<ToolchainPtr> There(v1::Language language = v1::LANGUAGE_CPP) { return there_.Resolve({}, language); }

  std::string ErrorOf(v1::Language language = v1::LANGUAGE_CPP) {
    const auto found = There(language);
    EXPECT_EQ(KindOf(found.status()), v1::ErrorDetail::TOOLCHAIN);
    return std::string(found.status().message());
  }

  // What CheckFlags() makes of compile and link flags with the described toolchain.
  absl::StatusOr<CheckedFlags> Check(const std::vector<std::string>& compile, const std::vector<std::string>& link) {
    return CheckFlags(Env::Posix(), **There(), v1::LANGUAGE_CPP, FlagPolicy::kPerUser, compile, link);
  }

  TempFolder folder_;
  ToolchainRegistry here_{Env::Posix()};
  ToolchainRegistry there_{Env::Posix(), "CXX", folder_.File("toolchain")};
};

TEST_F(DescriptionTest, ADescribedToolchainIsTheSame) {
  const ToolchainPtr here = Here();
  Describe(*here);
  const auto there = There();
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_EQ((*there)->identity, here->identity);
  EXPECT_EQ((*there)->environment, here->environment);
  EXPECT_EQ((*there)->host.kind, here->host.kind);
  EXPECT_EQ((*there)->host.path, here->host.path);
  EXPECT_EQ((*there)->host.version, here->host.version);
  EXPECT_EQ((*there)->host.major_version, here->host.major_version);
  EXPECT_EQ((*there)->host.system_include_directories, here->host.system_include_directories);
  EXPECT_EQ((*there)->host.library_directories, here->host.library_directories);
  EXPECT_EQ((*there)->host.lto_programs, here->host.lto_programs);
  EXPECT_EQ((*there)->host.sanitizer_files, here->host.sanitizer_files);
  EXPECT_EQ(DescribeTools(**there), DescribeTools(*here) + " (described by " + file() + ")");
}

TEST_F(DescriptionTest, ADescribedToolkitServesBothLanguages) {
  KERNIX_NEED_NVCC(nvcc);
  const ToolchainPtr here = Here(nvcc);
  Toolchain distribution = *here;
  distribution.cuda->programs_beside_host_compiler = true;
  Describe(distribution);
  const auto cuda = There(v1::LANGUAGE_CUDA);
  ASSERT_TRUE(cuda.ok()) << cuda.status();
  EXPECT_EQ((*cuda)->identity, here->identity);
  EXPECT_EQ((*cuda)->cuda->nvcc, here->cuda->nvcc);
  EXPECT_EQ((*cuda)->cuda->root, here->cuda->root);
  EXPECT_EQ((*cuda)->cuda->version, here->cuda->version);
  EXPECT_EQ((*cuda)->cuda->major_version, here->cuda->major_version);
  EXPECT_EQ((*cuda)->cuda->minor_version, here->cuda->minor_version);
  EXPECT_EQ((*cuda)->cuda->include_directories, here->cuda->include_directories);
  EXPECT_EQ((*cuda)->cuda->library_directories, here->cuda->library_directories);
  EXPECT_EQ((*cuda)->cuda->architectures, here->cuda->architectures);
  EXPECT_EQ((*cuda)->cuda->host_refusal, here->cuda->host_refusal);
  EXPECT_TRUE((*cuda)->cuda->programs_beside_host_compiler);
  const auto cpp = There();
  ASSERT_TRUE(cpp.ok()) << cpp.status();
  EXPECT_EQ((*cpp)->identity, Here()->identity);
  EXPECT_FALSE((*cpp)->cuda.has_value());
}

TEST_F(DescriptionTest, ItHasTheDigestsOfHeaders) {
  Describe(*Here());
  const auto there = There();
  ASSERT_TRUE(there.ok()) << there.status();
  FileDigests none(Env::Posix());
  const auto digest = DigestOfPart(**there, none, "/usr/include/locale.h");
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(*digest, here_.digests().Get("/usr/include/locale.h").value());
  EXPECT_TRUE(absl::IsNotFound(DigestOfPart(**there, none, file()).status())) << "though that file is here";
}

// As in CUDA's include folder, part of which is a link; and a link back up, which must not make an endless list.
TEST_F(DescriptionTest, LinksAmongHeadersAreFollowed) {
  Env& env = Env::Posix();
  ASSERT_TRUE(env.CreateDirectories(folder_.File("include/real")).ok());
  ASSERT_TRUE(env.WriteFile(folder_.File("include/real/x.h"), "int x;\n", 0644).ok());
  ASSERT_TRUE(env.CreateSymlink("real", folder_.File("include/alias")).ok());
  ASSERT_TRUE(env.CreateSymlink("nowhere", folder_.File("include/broken.h")).ok());
  Toolchain toolchain = *Here();
  toolchain.host.system_include_directories = {folder_.File("include"), folder_.File("include/real"),
                                               folder_.File("none")};
  Describe(toolchain);
  const auto there = There();
  ASSERT_TRUE(there.ok()) << there.status();
  FileDigests none(env);
  EXPECT_EQ(DigestOfPart(**there, none, folder_.File("include/real/x.h")).value(), DigestOf("int x;\n"));
  EXPECT_EQ(DigestOfPart(**there, none, folder_.File("include/alias/x.h")).value(), DigestOf("int x;\n"));
  ASSERT_TRUE(env.CreateSymlink("..", folder_.File("include/real/up")).ok());
  const auto text = DescribeToolchain(env, here_.digests(), toolchain);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_LT(text->size(), 1u << 20);
}

TEST_F(DescriptionTest, AReplacedDescriptionIsReadAgain) {
  const ToolchainPtr here = Here();
  Toolchain other = *here;
  other.host.identity = DigestOf("another compiler");
  other.host.system_include_directories.clear();
  Describe(other);
  EXPECT_NE((*There())->identity, here->identity);
  Describe(*here);
  EXPECT_EQ((*There())->identity, here->identity);
}

TEST_F(DescriptionTest, WhatIsNoDescriptionIsNamed) {
  EXPECT_THAT(ErrorOf(), HasSubstr("toolchain_description: cannot read the file"));
  Write("int main() {}\n");
  EXPECT_THAT(ErrorOf(), HasSubstr(file() + " is not a whole description of a toolchain: make it again"));
  Describe(*Here());
  EXPECT_THAT(ErrorOf(v1::LANGUAGE_CUDA), HasSubstr(file() + " describes no nvcc"));
  const std::string whole = Read();
  for (const size_t missing : {size_t{1}, size_t{2}, whole.size() / 2, whole.size()}) {
    Write(whole.substr(0, whole.size() - missing));
    EXPECT_THAT(ErrorOf(), HasSubstr("is not a whole description")) << missing;
  }
}

TEST_F(DescriptionTest, WhoNamesACompilerGetsThatOne) {
  Toolchain other = *Here();
  other.host.identity = DigestOf("another compiler");
  Describe(other);
  v1::ToolchainPaths paths;
  paths.set_host_compiler("/usr/bin/g++");
  const auto found = there_.Resolve(paths, v1::LANGUAGE_CPP);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->identity, Here()->identity);
  EXPECT_EQ((*found)->described, nullptr);
}

TEST_F(DescriptionTest, WithoutOneTheLackOfToolsIsAnErrorOfItsOwn) {
  const auto nothing = here_.Resolve({}, v1::LANGUAGE_CPP);
  EXPECT_EQ(KindOf(nothing.status()), v1::ErrorDetail::TOOLCHAIN);
  EXPECT_TRUE(absl::IsUnimplemented(nothing.status()));
  EXPECT_THAT(nothing.status().message(), HasSubstr("there is no C++ compiler"));
  v1::ToolchainPaths paths;
  paths.set_host_compiler("/usr/bin/g++");
  const auto no_nvcc = here_.Resolve(paths, v1::LANGUAGE_CUDA);
  EXPECT_TRUE(absl::IsUnimplemented(no_nvcc.status()));
  EXPECT_THAT(no_nvcc.status().message(), HasSubstr("there is no nvcc"));
}

TEST_F(DescriptionTest, WhatOnlyFlagsNeedIsDescribed) {
  const ToolchainPtr here = Here();
  Describe(*here);
  const auto there = Check({"-flto", "-fsanitize=address"}, {});
  ASSERT_TRUE(there.ok()) << there.status();
  const auto flags =
      CheckFlags(Env::Posix(), *here, v1::LANGUAGE_CPP, FlagPolicy::kPerUser, {"-flto", "-fsanitize=address"}, {});
  ASSERT_TRUE(flags.ok()) << flags.status();
  ASSERT_FALSE(flags->files.empty());
  ASSERT_EQ(there->files.size(), flags->files.size());
  for (size_t i = 0; i < flags->files.size(); ++i) EXPECT_EQ(there->files[i].digest, flags->files[i].digest);
}

TEST_F(DescriptionTest, FlagsThatNeedTheCompilerAreRefused) {
  Describe(*Here());
  EXPECT_THAT(Check({"-march=native"}, {}).status().message(),
              HasSubstr("\"-march=native\" is not allowed: only a compiler knows its meaning"));
  EXPECT_TRUE(Check({"-march=x86-64-v3"}, {}).ok());
  EXPECT_THAT(
      Check({}, {"-lnowhere"}).status().message(),
      HasSubstr("\"-lnowhere\" is not allowed: the key covers its content, and this node, which has no compiler"));
}

}  // namespace
}  // namespace kernix::toolchain
