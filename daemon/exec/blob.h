// SPDX-License-Identifier: Apache-2.0
//
// A blob: bytes, and how the Remote Execution API identifies them. And the inputs of an action, which are files of
// blobs and links.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/digest.h"

namespace kernix::exec {

// By hash and size.
struct BlobDigest {
  Digest hash;        // SHA-256 of the bytes
  uint64_t size = 0;  // in bytes

  auto operator<=>(const BlobDigest&) const = default;
};

inline BlobDigest BlobDigestOf(std::string_view bytes) { return {DigestOf(bytes), bytes.size()}; }

// Bytes that several actions can share. They may lie in memory or on a disk (builder/held_outputs.h), and exist as long
// as a copy of the pointer.
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

struct InputFile {
  std::string path;  // relative to the action's root
  BlobDigest digest;
  Content content = nullptr;  // null until needed
  bool executable = false;
};

inline InputFile MakeInput(std::string path, Content content) {
  const BlobDigest digest = BlobDigestOf(*content);
  return {std::move(path), digest, std::move(content)};
}

inline InputFile MakeInput(std::string path, std::string_view text) {
  return MakeInput(std::move(path), MakeContent(std::string(text)));
}

// A link in an action's root to a file or folder of the machine.
struct InputLink {
  std::string path;    // relative to the root
  std::string target;  // absolute
};

}  // namespace kernix::exec
