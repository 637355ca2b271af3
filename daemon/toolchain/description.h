// SPDX-License-Identifier: Apache-2.0
//
// A toolchain as a file, for nodes that do not have it. With the file, kernixd makes the keys that it would make with
// the tools, and knows the headers by digest. So it can take what other nodes have built, but build nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/os/env.h"
#include "daemon/toolchain/file_digests.h"
#include "daemon/toolchain/toolchain.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::toolchain {

// Digests of the files that loads read of a toolchain, by their paths on the node that has it.
struct DescribedFiles {
  std::string file;  // the description
  absl::flat_hash_map<std::string, Digest> digests;
  bool of_store = false;  // of a RememberedToolchains: without digests, and good for what this store holds
};

// The description of a toolchain of this machine: reads all of its headers. RESOURCE if a folder or file cannot be
// read.
absl::StatusOr<std::string> DescribeToolchain(Env& env, FileDigests& digests, const Toolchain& toolchain);

// The same without headers: a toolchain's identity, but not the headers that loads read.
std::string DescribeWithoutFiles(const Toolchain& toolchain);

// The toolchain that `text` describes, as ToolchainRegistry completes it; `file` is for messages. Without its CUDA
// toolkit for C++. TOOLCHAIN if `text` is no description, or describes no toolkit and `language` is CUDA.
absl::StatusOr<Toolchain> ReadDescription(const std::string& file, std::string_view text, v1::Language language);

// Whether `toolchain` is on another node, and its description has a file of that path.
bool IsDescribed(const Toolchain& toolchain, const std::string& path);

// The content of a file of `toolchain`, wherever that is. One that is here is also added to `watched` (may be null).
// Errors are those of FileDigests::Get(), and kNotFound for a file that is not described.
absl::StatusOr<Digest> DigestOfPart(const Toolchain& toolchain, FileDigests& digests, const std::string& path,
                                    std::vector<WatchedFile>* watched = nullptr);

// FindFile() among the files of `toolchain`, wherever that is.
std::optional<std::string> FindPart(Env& env, const Toolchain& toolchain, const std::vector<std::string>& folders,
                                    const std::string& name);

}  // namespace kernix::toolchain
