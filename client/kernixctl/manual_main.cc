// SPDX-License-Identifier: Apache-2.0
//
// Prints kernixctl's manual page, for the build.
#include <iostream>

#include "client/kernixctl/manual.h"

int main() {
  kernix::ctl::GlobalOptions options;
  std::cout << kernix::ctl::Manual(kernix::ctl::RootCommand(options));
}
