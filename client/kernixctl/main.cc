// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "client/kernixctl/command.h"
#include "common/base/strings.h"

namespace kernix::ctl {
namespace {

// Output that a full disk has not taken must not pass for success. Who closes a pipe has read enough.
bool HasWrittenAll() {
  if (!std::cout.good()) putchar('\n');  // the next error says why
  errno = 0;
  const bool is_flushed = fflush(stdout) == 0;  // std::cout writes through stdout
  if ((is_flushed && std::cout.good()) || errno == EPIPE) return true;
  std::cerr << "kernixctl: cannot write the output" << (errno == 0 ? "" : StrCat(": ", strerror(errno))) << "\n";
  return false;
}

}  // namespace
}  // namespace kernix::ctl

int main(int argc, char** argv) {
  const int code = kernix::ctl::Main(argc, argv);
  return kernix::ctl::HasWrittenAll() || code != kernix::ctl::kOk ? code : kernix::ctl::kFailure;
}
