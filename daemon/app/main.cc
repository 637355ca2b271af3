// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/server.h"

int main(int argc, char** argv) { return kernix::server::Main(argc, argv); }
