// SPDX-License-Identifier: Apache-2.0
//
// For tests: entries and artifacts that are distinguished by a number.
#pragma once

#include <memory>
#include <string>
#include <tuple>

#include "common/base/strings.h"
#include "daemon/cache/cache.h"
#include "daemon/cache/index_schema.h"

namespace kernix::cache {

inline Digest TestKey(int i) { return DigestOf(StrCat("key ", i)); }

// `size` bytes that contain `i`.
inline std::string TestArtifact(int i, size_t size = 1000) {
  std::string artifact = StrCat("artifact ", i, " ");
  while (artifact.size() < size) artifact += static_cast<char>('a' + artifact.size() * 7 % 26);
  artifact.resize(size);
  return artifact;
}

inline absl::StatusOr<std::string> ReadAll(ReadableFile& file) {
  const absl::StatusOr<FileInfo> info = file.Stat();
  if (!info.ok()) return info.status();
  std::string content(info->size, '\0');
  const absl::StatusOr<size_t> count = file.ReadAt(0, content);
  if (!count.ok()) return count.status();
  content.resize(*count);
  return content;
}

inline absl::StatusOr<std::string> ReadBlob(Cache& cache, const Digest& digest) {
  const absl::StatusOr<std::unique_ptr<ReadableFile>> file = cache.OpenBlob(digest);
  if (!file.ok()) return file.status();
  return ReadAll(**file);
}

inline Tag TestTag(const std::string& name = "module") { return {name, UserId{1000}}; }

inline Entry TestEntry(int i) {
  Entry entry;
  entry.key = TestKey(i);
  entry.detail.set_language(v1::LANGUAGE_CUDA);
  for (const char* architecture : {"sm_80", "sm_90"}) entry.detail.add_architecture(architecture);
  v1::ResolvedFunction& function = *entry.detail.add_function();
  function.set_name(StrCat("function_", i));
  for (const char* token : {"arg", "ret"}) function.add_tokens(token);
  function.set_handler_symbol(StrCat("kernix_handler_function_", i));
  function.add_parameter()->set_name("x");
  function.set_is_global(true);
  entry.detail.add_required_symbol_version("GLIBC_2.34");
  entry.toolchain_headers = {{"/usr/include/math.h", DigestOf("math")},
                             {"kernix-cuda/include/cuda.h", DigestOf("cuda")}};
  return entry;
}

// Of what Find() returns.
inline bool operator==(const Entry& one, const Entry& other) {
  return std::tie(one.key, one.artifact, one.size, one.created_unix_ms) ==
             std::tie(other.key, other.artifact, other.size, other.created_unix_ms) &&
         one.detail.SerializeAsString() == other.detail.SerializeAsString() &&
         EncodeHeaders(one) == EncodeHeaders(other);
}

}  // namespace kernix::cache
