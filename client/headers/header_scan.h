// SPDX-License-Identifier: Apache-2.0
//
// Finds the headers that a load must send: those that its sources can reach and that belong to neither the toolchain
// nor kernix.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "client/headers/header_table.h"
#include "common/base/digest.h"
#include "common/os/env.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

struct SourceToScan {
  std::string_view text;  // must outlive the scan
  std::string label;      // for errors
  std::string folder;     // absolute; `#include "x.h"` looks here first. Empty for text that is not a file.
};

struct HeaderScanRequest {
  std::vector<SourceToScan> sources;
  std::vector<std::string> include_paths;      // absolute, in search order; missing ones are skipped, as compilers do
  std::vector<std::string> toolchain_folders;  // include paths that the compiler searches anyway: never roots
  size_t max_guessed_headers = 4096;           // see below
};

struct HeaderScan {
  uint32_t include_root_count = 0;
  std::vector<uint32_t> quoted_roots;  // roots that only `#include "..."` searches, ascending
  std::vector<v1::Header> headers;     // by root, then path
  // Empty files in folders that have no header but that includes pass through, as "a/../b.h" does.
  std::vector<v1::Header> folders;
  // Headers that are included by their absolute path, and the headers beside them that these include. They are not
  // sent.
  std::vector<std::string> absolute_headers;
  // Absolute folders of the include roots, by index. Only for messages; never sent.
  std::vector<std::string> roots;
  // Absolute folders that were searched for a header; they need not exist. A header that appears later, and that would
  // change what was found, appears in one of these or makes one of them.
  std::set<std::string> searched;
  // The files with the content, by digest.
  absl::flat_hash_map<Digest, std::string> files;

  // The content for a digest of `headers`. Returns kAborted if the file has changed since the scan.
  absl::StatusOr<std::string> Read(Env& env, const Digest& digest) const;

  // Merges the scan of another unit of the same load; headers that both contain appear once. Returns the index in this
  // scan of each of `other`'s include roots. Does not change `quoted_roots`, because each unit has its own.
  std::vector<uint32_t> Merge(const HeaderScan& other);
};

// Follows #include and __has_include in all branches of all conditionals. The roots are the sources' folders, which
// only "quoted" names search, and then the include paths. A name that no root contains belongs to the toolchain;
// "brainevent/..." belongs to kernix. An #include of a macro reaches every definition of the macro in the text that was
// read. If there is no definition, it reaches every header-like file under the roots.
//
// Finds a header beside or above its root ("../x.h") like any compiler.
//
// Returns INVALID_REQUEST errors, with the line: for two headers of one name that the build could not tell apart, and
// for more than `max_guessed_headers` headers under an #include of a macro.
absl::StatusOr<HeaderScan> ScanHeaders(Env& env, HeaderFiles& files, HeaderTable& table,
                                       const HeaderScanRequest& request);

}  // namespace kernix
