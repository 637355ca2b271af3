// SPDX-License-Identifier: Apache-2.0
//
// A statement says which files are the result of a key. Nodes share results by statements, and a bundle has one for
// each kernel.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/wire/signature.h"

namespace kernix {

// A header of the toolchain by its portable name, with its content.
struct StatedHeader {
  std::string name;
  Digest digest;
  bool operator==(const StatedHeader&) const = default;
};

struct StatedFile {
  std::string name;
  Digest digest;
  uint64_t size = 0;
};

struct Statement {
  Digest key;
  std::vector<StatedHeader> headers;  // that the build has read, sorted by name
  std::vector<StatedFile> files;
  std::string detail;  // for the reader; not looked into
};

// Equal statements have equal bytes. `signs_with`: null for a statement without a signature.
std::string EncodeStatement(const Statement& statement, const SigningKey* signs_with);

// DATA_LOSS if `bytes` are no statement. PERMISSION_DENIED if there are `trusted` keys, and none has signed it.
absl::StatusOr<Statement> DecodeStatement(std::string_view bytes, const TrustedKeys& trusted);

}  // namespace kernix
