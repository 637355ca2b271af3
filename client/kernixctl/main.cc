// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/command.h"

int main(int argc, char** argv) { return kernix::ctl::Main(argc, argv); }
