// SPDX-License-Identifier: Apache-2.0
//
// Bytes that several actions can share.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace kernix::exec {

// They may lie in memory or on a disk (builder/held_outputs.h), and exist as long as a copy of the pointer.
using Content = std::shared_ptr<const std::string_view>;

// In memory.
inline Content MakeContent(std::string bytes) {
  struct Owner {
    explicit Owner(std::string b) : bytes(std::move(b)), view(bytes) {}
    const std::string bytes;
    const std::string_view view;
  };
  const auto owner = std::make_shared<const Owner>(std::move(bytes));
  return {owner, &owner->view};
}

}  // namespace kernix::exec
