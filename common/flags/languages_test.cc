// SPDX-License-Identifier: Apache-2.0
#include "common/flags/languages.h"

#include <gtest/gtest.h>

namespace kernix {
namespace {

TEST(LanguagesTest, IsThatOfTheSuffix) {
  EXPECT_EQ(LanguageOfFile("a/b.cu"), v1::LANGUAGE_CUDA);
  for (const char* path : {"a.cpp", "a.cc", "/x.y/a.cxx", "a.c++", "a.C"}) {
    EXPECT_EQ(LanguageOfFile(path), v1::LANGUAGE_CPP) << path;
  }
  for (const char* path : {"", "a", "a.c", "a.CU", "a.cuh", "cu", "a.cc.txt"}) {
    EXPECT_EQ(LanguageOfFile(path), v1::LANGUAGE_UNSPECIFIED) << path;
  }
}

}  // namespace

}  // namespace kernix
