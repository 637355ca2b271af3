// SPDX-License-Identifier: Apache-2.0
//
// The data in a cache: the answers to keys, and the tags under which users have loaded them.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/identity.h"
#include "common/wire/statement.h"
#include "daemon/cache/rows.pb.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::cache {

// The index stores these numbers for a build's inputs.
enum class InputKind {
  kSource = 1,
  kHeader = 2,
  kFlagFile = 3,
  kDefinition = 4,
  kFlag = 5,
  kArchitecture = 6,
  kFunction = 7,
  kTool = 8,
  kIncludePaths = 9,
  kKernix = 10
};

// One of the inputs of a build, all of which its key covers. Builds are compared by these, for people.
struct BuildInput {
  InputKind kind = InputKind::kSource;
  std::string name;   // for people: "vector_add.cu", "-O2", "g++ 12.2.0"
  std::string value;  // what another value makes a change of this input: a digest, or empty
  auto operator<=>(const BuildInput&) const = default;
};

// The name under which a user has loaded an entry (a tag).
struct Tag {
  std::string name;
  UserId owner{};
  auto operator<=>(const Tag&) const = default;
};

// What the index keeps of an entry, as it is: functions, flags, compilers.
using EntryDetail = internal::EntryDetail;

// The answer to a key.
struct Entry {
  Digest key;
  Digest artifact;
  uint64_t size = 0;                            // of the artifact, in bytes
  EntryDetail detail;                           // what no query looks into
  std::vector<StatedHeader> toolchain_headers;  // that the build has read
  // Neither Find() nor List() reads them: see Index::Recent().
  std::vector<BuildInput> inputs = {};
  // The bytes of a v1::BuildTrace; none if another node has built it. Neither Find() nor List() reads them: see
  // Index::TraceOf().
  std::string trace = {};
  int64_t created_unix_ms = 0;
};

struct SizedArtifact {
  Digest digest;
  uint64_t size = 0;
};

// The inputs of the build that made the entry of `key`.
struct BuiltFrom {
  Digest key;
  std::vector<BuildInput> inputs;
  bool operator==(const BuiltFrom&) const = default;
};

// The things that a change removed from a cache.
struct Dropped {
  std::vector<Digest> keys;
  uint64_t tags = 0;
  uint64_t bytes = 0;             // of `artifacts`
  std::vector<Digest> artifacts;  // artifacts that no entry names any more
};

}  // namespace kernix::cache
