// SPDX-License-Identifier: Apache-2.0
//
// Addresses in an action cache for what is no result of a command: the action behind one describes none that could be
// run. Internal to the room.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/digest.h"
#include "daemon/remote/upstream.h"

namespace kernix::remote {

// Engines may ask for the blobs that an action names.
struct ResultAddress {
  exec::BlobDigest action;
  std::vector<Blob> blobs;  // the action, its command and its empty input root
};

// `what` and `salt` make the address.
ResultAddress MakeAddress(std::string_view what, const Digest& salt);

Blob BlobOf(std::string bytes);

}  // namespace kernix::remote
