// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/backend.h"

#include <string>

#include "common/base/strings.h"

namespace kernix::server {

bool LeaveLostStore(Backend& backend) {
  const std::string lost = backend.cache.FirstLost();
  if (lost.empty()) return false;
  backend.gate.Close();
  backend.request_stop(StrCat(lost, " was removed or exchanged"), Duration{0});
  return true;
}

}  // namespace kernix::server
