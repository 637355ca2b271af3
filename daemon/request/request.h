// SPDX-License-Identifier: Apache-2.0
//
// A load request after validation: everything that can affect the artifact, and nothing else.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "daemon/language/spec/function_spec.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/language/write/translation_unit.h"
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

// A folder of headers, by its index, with the way in which one unit searches it.
struct SearchedRoot {
  uint32_t root = 0;
  bool only_quoted = false;  // searched only for `#include "..."`
};

// Sources that are compiled together to one object.
struct Unit {
  v1::Language language = v1::LANGUAGE_CPP;  // may be C++ in a CUDA module, too
  std::vector<language::SourceText> sources;
  std::vector<language::FunctionSpec> functions;  // the functions that it exports
  std::vector<SearchedRoot> roots;                // in search order
};

struct BuildRequest {
  v1::Language language = v1::LANGUAGE_CPP;       // of the module: the language of its functions
  std::vector<Unit> units;                        // at least one
  std::vector<language::FunctionSpec> functions;  // of all units
  std::vector<std::string> host_flags;            // for the host compiler when it compiles
  std::vector<std::string> nvcc_flags;            // CUDA: for nvcc itself
  std::vector<std::string> definitions;  // -D and -U as preprocessor lines, placed before everything else in every unit
  std::vector<std::string> link_flags;
  std::vector<std::string> architectures;
  int optimization_level = 3;
  bool use_fast_math = false;
  bool allow_cuda_graph = true;
  bool keep = false;                     // CUDA: the artifact includes the compiler's intermediate results
  std::string disassembler;              // for `keep`: nvdisasm, which is also among `flag_files`; empty: not available
  bool relocatable_device_code = false;  // CUDA: the device code is linked in a step of its own
  std::vector<toolchain::FlagFile> flag_files;  // libraries and similar files that flags name; their content is input
  uint32_t include_root_count = 0;
  std::vector<HeaderRef> headers;  // sorted by root, then in the order of a walk of the tree
  std::vector<int> root_climbs;    // for each include root: how many folders above it `headers` lie
  toolchain::ToolchainPtr toolchain;
  // Not OK: the functions could not be read, so that there are none here. The compiler is asked about the sources
  // alone. If it has no error, this is the load's.
  absl::Status refusal;
};

struct RequestLimits {
  uint64_t max_source_bytes = 64 << 20;
  size_t max_units = 1024;
  size_t max_functions = 4096;
  size_t max_headers = 100000;
  // Limit for the folders that hold these headers. Large projects have a few thousand.
  size_t max_header_folders = 32768;
  // Limits for the plan of a request, which kernixd makes for a lookup too: how many steps, and how much room their
  // commands take. Every compile step has the flags, the macros and the include paths again.
  size_t max_steps = 4096;
  uint64_t max_command_bytes = 64 << 20;
  // Limit for all headers as files and folders; a content with several names counts several times.
  uint64_t max_staged_header_bytes = 1ull << 30;
};

// The disk space of a small file or a folder, besides its content.
inline constexpr uint64_t kBlockBytes = 4096;

// The number of folders on the way to `path` that are not also on the way to `previous`. If the paths come in the order
// of a walk of the tree, these numbers add up to the number of folders.
size_t NewFolders(std::string_view path, std::string_view previous);

// The number of folders that hold these headers. They must be in the order of BuildRequest::headers.
size_t CountFolders(const std::vector<HeaderRef>& headers);

// Checks everything about `request` that does not require running a compiler. INVALID_REQUEST and TOOLCHAIN errors. An
// error in finding the functions in the sources is the result's `refusal`.
absl::StatusOr<BuildRequest> ValidateRequest(Env& env, const v1::LoadRequest& request,
                                             toolchain::ToolchainPtr toolchain, toolchain::FlagPolicy policy,
                                             const RequestLimits& limits);

// The text to compile for a unit of `request`.
language::TranslationUnit UnitText(const BuildRequest& request, const Unit& unit);

// The most warnings of one name. The last one says how many more there are.
inline constexpr size_t kMostOfAName = 20;

// What is doubtful about a request that can be built. The same for a build and a hit, because it is read from the
// sources.
std::vector<v1::LoadWarning> LoadWarnings(const BuildRequest& request);

}  // namespace kernix::build
