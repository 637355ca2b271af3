// SPDX-License-Identifier: Apache-2.0
//
// For tests: flags for a compiler and a toolkit that have a few libraries, and for a user who has some.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "daemon/toolchain/flags/flags.h"
#include "tests/support/mem_env.h"

namespace kernix::toolchain {

// Splits flags that are written as one text, separated by '|'.
inline std::vector<std::string> Split(const std::string& text) { return absl::StrSplit(text, '|', absl::SkipEmpty()); }

class FlagsTest : public ::testing::Test {
 protected:
  FlagsTest() {
    toolchain_.host.path = "/usr/bin/g++";
    toolchain_.host.library_directories = {"/usr/lib"};
    toolchain_.cuda.emplace();
    toolchain_.cuda->root = "/cuda";
    toolchain_.cuda->library_directories = {"/cuda/lib"};
    Write("/usr/lib/libm.so", "libm");
    Write("/cuda/lib/libcublas.so.13", "cublas");
    Write("/home/u/lib/libx.so", "x shared");
    Write("/home/u/lib/libx.a", "x static");
    Write("/home/u/lib/liby.a", "y");
    Write("/home/u/other/liby.a", "other y");
    Write("/home/u/o.o", "object");
    Write("/home/u/plugin.so", "plugin");
    env_.SetProgram("/usr/bin/g++", [](const ProcessSpec& spec, Cancellation*) {
      return absl::StatusOr<ProcessResult>(ProcessResult{.output = Answer(spec.argv.at(1))});
    });
  }

  // The answer of g++ to -###.
  static std::string Answer(const std::string& flag) {
    const std::string tune = flag.starts_with("-mtune") ? " \"-march=x86-64\"" : " \"-march=znver3\" -mavx2 -mno-sgx";
    return "Using built-in specs.\n /usr/lib/gcc/cc1plus -E -quiet /dev/null" + tune +
           " --param \"l1-cache-size=32\" \"-mtune=znver3\" -dumpbase null\n";
  }

  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(env_.CreateDirectories(Dirname(path), 0755).ok());
    ASSERT_TRUE(env_.WriteFile(path, text, 0644).ok());
  }

  absl::StatusOr<CheckedFlags> Check(v1::Language language, FlagPolicy policy, const std::string& compile,
                                     const std::string& link) {
    return CheckFlags(env_, toolchain_, language, policy, Split(compile), Split(link));
  }

  CheckedFlags MustPass(v1::Language language, FlagPolicy policy, const std::string& compile, const std::string& link) {
    absl::StatusOr<CheckedFlags> checked = Check(language, policy, compile, link);
    EXPECT_TRUE(checked.ok()) << compile << " " << link << ": " << checked.status();
    return checked.ok() ? *checked : CheckedFlags();
  }

  void ExpectRefused(v1::Language language, FlagPolicy policy, const std::string& compile, const std::string& link,
                     const std::string& words) {
    const absl::StatusOr<CheckedFlags> checked = Check(language, policy, compile, link);
    ASSERT_FALSE(checked.ok()) << compile << " " << link;
    EXPECT_EQ(KindOf(checked.status()), v1::ErrorDetail::INVALID_REQUEST);
    const std::string flag = Split(compile.empty() ? link : compile).front();
    EXPECT_THAT(std::string(checked.status().message()), ::testing::HasSubstr("flag \"" + flag));
    EXPECT_THAT(std::string(checked.status().message()), ::testing::HasSubstr(words)) << flag;
  }

  void ExpectRefusedLink(const std::string& flags) {
    const absl::StatusOr<CheckedFlags> checked = Check(v1::LANGUAGE_CPP, FlagPolicy::kPerUser, "", flags);
    ASSERT_FALSE(checked.ok()) << flags;
    EXPECT_EQ(KindOf(checked.status()), v1::ErrorDetail::INVALID_REQUEST) << flags;
  }

  MemEnv env_;
  Toolchain toolchain_;
};

constexpr FlagPolicy kBoth[] = {FlagPolicy::kPerUser, FlagPolicy::kShared};

struct Refusal {
  const char* flags;
  const char* words;
};

}  // namespace kernix::toolchain
