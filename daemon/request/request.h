// SPDX-License-Identifier: Apache-2.0
//
// A load request after validation: all that can change the artifact, and nothing else.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "daemon/language/spec/function_spec.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/toolchain/flags/flags.h"
#include "daemon/toolchain/toolchain.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::build {

struct HeaderRef {
  uint32_t include_root = 0;
  std::string path;  // may begin with "..", up to kMaxClimb times
  Digest digest;
  uint64_t size = 0;  // in bytes
};

// A folder of headers, by its index, as one unit searches it.
struct SearchedRoot {
  uint32_t root = 0;
  bool only_quoted = false;  // only `#include "..."` looks in it
};

// What is compiled at once, to an object of its own.
struct Unit {
  v1::Language language = v1::LANGUAGE_CPP;  // C++ also in a CUDA module
  std::vector<language::SourceText> sources;
  std::vector<language::FunctionSpec> functions;  // that it exports
  std::vector<SearchedRoot> roots;                // in search order
};

struct BuildRequest {
  v1::Language language = v1::LANGUAGE_CPP;       // of the module: what its functions are for
  std::vector<Unit> units;                        // at least one
  std::vector<language::FunctionSpec> functions;  // of all units
  std::vector<std::string> host_flags;            // for the host compiler when it compiles
  std::vector<std::string> nvcc_flags;            // CUDA: for nvcc itself
  std::vector<std::string> definitions;  // what -D and -U say, as preprocessor lines before all else in every unit
  std::vector<std::string> link_flags;
  std::vector<std::string> architectures;
  int optimization_level = 3;
  bool use_fast_math = false;
  bool allow_cuda_graph = true;
  // The assembler has to tell what it reads, whichever it is: a shared daemon's.
  bool assembler_must_tell = false;
  bool keep = false;                     // CUDA: what the compiler made on the way becomes part of the artifact
  std::string disassembler;              // for `keep`: nvdisasm, among `flag_files`, too. Empty: there is none
  bool relocatable_device_code = false;  // CUDA: the device code is linked in a step of its own
  int nvcc_threads = 0;                  // CUDA: as many at most, says a flag; 0: it says nothing. No part of the key
  std::vector<toolchain::FlagFile> flag_files;  // libraries and the like that flags name; their content is input
  uint32_t include_root_count = 0;
  std::vector<HeaderRef> headers;  // sorted: by root, then as a walk of the tree meets them
  std::vector<int> root_climbs;    // of each include root: how many folders above it `headers` lie
  toolchain::ToolchainPtr toolchain;
};

struct RequestLimits {
  uint64_t max_source_bytes = 64 << 20;
  size_t max_units = 1024;
  size_t max_functions = 4096;
  size_t max_headers = 100000;
  // Of all headers as files, however often one content is among them.
  uint64_t max_staged_header_bytes = 1ull << 30;
};

// Checks everything about `request` that can be checked without a compiler. INVALID_REQUEST and TOOLCHAIN errors.
absl::StatusOr<BuildRequest> ValidateRequest(Env& env, const v1::LoadRequest& request,
                                             toolchain::ToolchainPtr toolchain, toolchain::FlagPolicy policy,
                                             const RequestLimits& limits);

// What is compiled for a unit of `request`.
std::string TranslationUnit(const BuildRequest& request, const Unit& unit);

}  // namespace kernix::build
