// SPDX-License-Identifier: Apache-2.0
//
// One of many client processes: prints the process id of the daemon that it got.
#include <cstdio>

#include "kernix/client.h"

int main() {
  kernix::ClientOptions options;
  options.start_timeout = std::chrono::minutes(2);
  const auto client = kernix::Client::Create(std::move(options));
  if (!client.ok()) return 1;
  const auto info = (*client)->Info();
  if (!info.ok()) {
    fprintf(stderr, "%s\n", info.status().ToString().c_str());
    return 2;
  }
  printf("%lld", static_cast<long long>(info->pid));
  return 0;
}
