// SPDX-License-Identifier: Apache-2.0
//
// Each flag is an element of its list. Code that was written for a shell has several in one string, and a compiler
// would take the second one for a part of the first one's value, perhaps in silence: "-DA=8 -DB=9".
#pragma once

#include "absl/status/status.h"
#include "common/flags/flag_table.h"

namespace kernix::flags {

// INVALID_REQUEST if one of the flag's words holds another flag, or the flag's value, behind a blank outside quotes and
// parentheses. A value that is a list of another tool's flags may hold several.
absl::Status CheckIsOneFlag(const Table& table, const Flag& flag);

}  // namespace kernix::flags
