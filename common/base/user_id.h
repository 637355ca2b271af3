// SPDX-License-Identifier: Apache-2.0
//
// A number that stands for a user, in limits, queues and ownership.
#pragma once

#include <cstdint>

namespace kernix {

// A local user's is the uid. Stores and the wire keep it as a number.
enum class UserId : uint32_t {};

constexpr uint32_t ToNumber(UserId user) { return static_cast<uint32_t>(user); }

}  // namespace kernix
