// SPDX-License-Identifier: Apache-2.0
#include "client/load/diagnostics.h"

#include <gtest/gtest.h>

namespace kernix {
namespace {

class PathNamesTest : public ::testing::Test {
 protected:
  PathNamesTest() {
    names_.AddSource("k.cu", "/home/me/kernels/k.cu");
    names_.SetIncludeRoots({"/home/me/kernels", "/opt/include"});
  }
  PathNames names_;
};

TEST_F(PathNamesTest, RestoresPlacesInDiagnostics) {
  EXPECT_EQ(names_.Restore("k.cu:3:5: error: no\n    3 | x\n      | ^\nk.cu(4): warning\nk.cu: In function 'f':\n"),
            "/home/me/kernels/k.cu:3:5: error: no\n    3 | x\n      | ^\n/home/me/kernels/k.cu(4): "
            "warning\n/home/me/kernels/k.cu: In function 'f':\n");
  EXPECT_EQ(names_.Restore("compile failed: k.cu:3:5: error"), "compile failed: /home/me/kernels/k.cu:3:5: error");
}

TEST_F(PathNamesTest, RestoresHeaders) {
  EXPECT_EQ(names_.Restore("In file included from inc/1/a/b.h:2,\n                 from k.cu:1:\ninc/0/x.h:1:1: error"),
            "In file included from /opt/include/a/b.h:2,\n                 from "
            "/home/me/kernels/k.cu:1:\n/home/me/kernels/x.h:1:1: error");
}

TEST_F(PathNamesTest, RestoresHeadersAboveTheirRoot) {
  EXPECT_EQ(names_.Restore("inc/0/.up/.up/../../x.h:1:1: error"), "/home/me/kernels/../../x.h:1:1: error");
  EXPECT_EQ(names_.Restore("inc/1/.up/x.h:1:1: error"), "/opt/include/x.h:1:1: error");
}

TEST_F(PathNamesTest, LeavesOtherTextAlone) {
  for (const char* text :
       {"mock.cu:3: x", "k.cu", "k.cufft:3", "inc/7/x.h:1", "inc/x/y.h", "inc/", "inc/1", "linc/1/x.h", ""}) {
    EXPECT_EQ(names_.Restore(text), text);
  }
}

}  // namespace

}  // namespace kernix
