// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/option_words.h"

#include <gtest/gtest.h>

namespace kernix::ctl {
namespace {

TEST(OptionWordsTest, AnErrorThatNamesAnOptionOfPythonGetsKernixctlsWord) {
  EXPECT_EQ(WithOwnWords("pass compute_capability=\"sm_90\""),
            "pass compute_capability=\"sm_90\"\nIn kernixctl, compute_capability is --arch.");
  EXPECT_EQ(WithOwnWords("in extra_cflags (extra_cuda_cflags for CUDA)"),
            "in extra_cflags (extra_cuda_cflags for CUDA)\n"
            "In kernixctl, extra_cflags is --flag, extra_cuda_cflags is --flag.");
  EXPECT_EQ(WithOwnWords("or pass 'functions'"), "or pass 'functions'\nIn kernixctl, 'functions' is --function.");
  EXPECT_EQ(WithOwnWords("k.cpp does not compile"), "k.cpp does not compile");
}

}  // namespace
}  // namespace kernix::ctl
