// SPDX-License-Identifier: Apache-2.0
//
// For tests: entries and artifacts that are told apart by a number.
#pragma once

#include <string>

#include "daemon/base/strings.h"
#include "daemon/cache/cache.h"

namespace kernix::cache {

inline Digest TestKey(int i) { return DigestOf(StrCat("key ", i)); }

// `size` bytes that hold `i`.
inline std::string TestArtifact(int i, size_t size = 1000) {
  std::string artifact = StrCat("artifact ", i, " ");
  while (artifact.size() < size) artifact += static_cast<char>('a' + artifact.size() * 7 % 26);
  artifact.resize(size);
  return artifact;
}

inline Entry TestEntry(int i, const std::string& name = "module") {
  Entry entry;
  entry.key = TestKey(i);
  entry.label = {name, 1000};
  entry.language = v1::LANGUAGE_CUDA;
  entry.architectures = {"sm_80", "sm_90"};
  v1::ResolvedFunction function;
  function.set_name(StrCat("function_", i));
  function.add_tokens("arg");
  function.add_tokens("ret");
  function.set_handler_symbol(StrCat("kernix_handler_function_", i));
  entry.functions = {function};
  entry.required_symbol_versions = {"GLIBC_2.34"};
  entry.toolchain_headers = {{"/usr/include/math.h", DigestOf("math")},
                             {"kernix-cuda/include/cuda.h", DigestOf("cuda")}};
  return entry;
}

}  // namespace kernix::cache
