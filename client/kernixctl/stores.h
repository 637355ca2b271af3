// SPDX-License-Identifier: Apache-2.0
//
// The stores of this user's own kernixd besides the one that it writes.
#pragma once

#include <string>
#include <vector>

#include "kernix/client.h"

namespace kernix::ctl {

struct OtherStores {
  std::vector<std::string> read;  // in the order in which kernixd searches them
  // Why kernixd does not write the store that the user has named, and what to do; empty: it does.
  std::string lack;

  // "/opt/kernix, /site/kernix"
  std::string Text() const;
};

// Those that `options` and the environment name. Nothing for a kernixd that is not this user's own.
OtherStores OtherStoresOf(const ClientOptions& options, const DaemonInfo& info);

}  // namespace kernix::ctl
