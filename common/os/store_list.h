// SPDX-License-Identifier: Apache-2.0
//
// The stores of a kernixd as users name them: "/scratch/kernix:/image/kernix".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kernix {

struct StoreList {
  std::string written;
  std::vector<std::string> read;  // where else to look, in this order

  // As users name them.
  std::string Text() const;
};

// kInvalidArgument unless all paths are absolute. `origin`: where the text stands, for the message.
absl::StatusOr<StoreList> ParseStoreList(std::string_view origin, std::string_view text);

}  // namespace kernix
