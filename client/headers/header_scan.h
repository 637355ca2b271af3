// SPDX-License-Identifier: Apache-2.0
//
// The headers that a load has to send along: those that its sources can reach and that neither the toolchain nor kernix
// has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "client/headers/header_files.h"
#include "common/base/digest.h"
#include "common/os/env.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

struct SourceToScan {
  std::string text;
  std::string label;   // for errors
  std::string folder;  // absolute; what `#include "x.h"` looks at first. Empty for text that is no file.
};

struct HeaderScanRequest {
  std::vector<SourceToScan> sources;
  std::vector<std::string> include_paths;      // absolute, in search order; missing ones are skipped, as compilers do
  std::vector<std::string> toolchain_folders;  // include paths that the compiler searches anyway: never roots
  size_t max_guessed_headers = 4096;           // see below
};

struct HeaderScan {
  uint32_t include_root_count = 0;
  std::vector<uint32_t> quoted_roots;  // those in which only `#include "..."` looks, ascending
  std::vector<v1::Header> headers;     // by root, then path
  // Empty files in folders without a header that includes lead through, as "a/../b.h" does.
  std::vector<v1::Header> folders;
  // Headers that are included by their absolute path, and what these include beside them. They are not sent.
  std::vector<std::string> absolute_headers;
  // Absolute folders of the include roots, by index: for people, and never sent.
  std::vector<std::string> roots;
  // Where the content is, by digest.
  absl::flat_hash_map<Digest, std::string> files;

  // The content for a digest of `headers`. kAborted when the file has changed since.
  absl::StatusOr<std::string> Read(Env& env, const Digest& digest) const;

  // Takes in the scan of another unit of the same load: what both have is there once. Returns where each of its include
  // roots is among ours. `quoted_roots` are left alone, since they are each unit's own.
  std::vector<uint32_t> Merge(const HeaderScan& other);
};

// Follows #include and __has_include in all branches of all conditions. The roots are the sources' folders, in which
// only "quoted" names are looked up, then the include paths. Names that are in none of them are the toolchain's;
// "brainevent/..." is kernix's own. An #include of a macro reaches what the macro is defined as anywhere in what was
// read; where that is not seen, every header-like file under the roots.
//
// A header beside or above its root ("../x.h") is found as by any compiler.
//
// INVALID_REQUEST errors, with the line: two headers of one name that the build could not tell apart; more than
// `max_guessed_headers` under an #include of a macro.
absl::StatusOr<HeaderScan> ScanHeaders(Env& env, HeaderFiles& files, HeaderTable& table,
                                       const HeaderScanRequest& request);

}  // namespace kernix
