// SPDX-License-Identifier: Apache-2.0
//
// Prints kernixd's manual page, for the build.
#include <iostream>

#include "daemon/app/options.h"

int main() { std::cout << kernix::server::Manual(); }
