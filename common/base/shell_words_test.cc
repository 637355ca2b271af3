// SPDX-License-Identifier: Apache-2.0
#include "common/base/shell_words.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "common/os/env.h"

namespace kernix {
namespace {

TEST(ShellWordsTest, WordsOfEverydayAreHarmless) {
  for (const char* word :
       {"-O3", "-std=c++20", "-gencode", "arch=compute_90,code=sm_90", "-Xptxas=-v,-O3", "/opt/a-b_c", "x86_64", "%",
        "a@b", "a~", "=", "-ffile-prefix-map=/a=b", "\xc3\xa9t\xc3\xa9"}) {
    EXPECT_TRUE(IsHarmlessWord(word)) << word;
  }
}

TEST(ShellWordsTest, WhatAShellWouldReadIsNot) {
  EXPECT_FALSE(IsHarmlessWord(""));
  EXPECT_FALSE(IsHarmlessWord("@file"));
  EXPECT_FALSE(IsHarmlessWord("~user"));
  for (int c = 0; c < 0x80; ++c) {
    if (std::string_view("_.,=+:/%@~-").find(static_cast<char>(c)) != std::string_view::npos) continue;
    const bool alphanumeric = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    EXPECT_EQ(IsHarmlessWord(std::string("x") + static_cast<char>(c)), alphanumeric) << c;
  }
}

// Tests the rule against this machine's shell.
TEST(ShellWordsTest, AShellLeavesHarmlessWordsAsTheyAre) {
  std::string word = "x_.,=+:/%@~-";
  for (int c = 0x80; c < 0x100; ++c) word += static_cast<char>(c);
  ASSERT_TRUE(IsHarmlessWord(word));
  const std::string quoted = "a b'(c)*;&|<>#!";
  ASSERT_TRUE(IsHarmlessQuoted(quoted));
  const auto result = Env::Posix().RunProcess({.argv = {"/bin/sh", "-c", "printf %s " + word + " \"" + quoted + "\""},
                                               .environment = {},
                                               .working_directory = "/"},
                                              nullptr, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output, word + quoted);
}

TEST(ShellWordsTest, QuotesDoNotKeepEverythingFromAShell) {
  for (const char* text : {"$HOME", "`x`", "a\"b", "a\\", "a\nb"}) EXPECT_FALSE(IsHarmlessQuoted(text)) << text;
}

TEST(ShellCommandTest, QuotesForTheShell) {
  EXPECT_EQ(ShellCommand({"/usr/bin/g++", "-DA=1", "-DNAME=\"a b\"", "it's", "$HOME", ""}),
            "/usr/bin/g++ -DA=1 '-DNAME=\"a b\"' 'it'\\''s' '$HOME' ''");
}

}  // namespace

}  // namespace kernix
