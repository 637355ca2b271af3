// SPDX-License-Identifier: Apache-2.0
//
// Compiling kernels from a C++ program: what to build, and what comes back.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernix/module.h"

namespace kernix {

class Client;

// One source text. `label` is shown in diagnostics; `path`, when the text came from a file, is what errors name and
// where `#include "x.h"` looks first.
struct Source {
  std::string text;
  std::string label;
  std::string path;
};

// A function to export: its arg_spec tokens in the order of its C++ parameters, or none to infer them from the
// signature.
struct Function {
  std::string name;
  std::vector<std::string> tokens;
};

// What happens while a load waits. Called from the loading thread.
struct LoadCallbacks {
  // Commands and compiler output as they come (only with LoadOptions::verbose).
  std::function<void(std::string_view)> output;
  // Where the load stands: "queued (3 ahead)", "compile (1/2)". At most once a change.
  std::function<void(std::string_view)> progress;
  // A message for the user that is no error.
  std::function<void(std::string_view)> warning;
  // Asked every 50 ms; true cancels the load (it then returns kCancelled).
  std::function<bool()> cancelled;
};

struct LoadOptions {
  // Each source becomes an object of its own: they are compiled side by side and linked once. Else they are one
  // translation unit, in order. A file's suffix says its language then (.cu; .cpp, .cc, .cxx); a C++ file of a CUDA
  // module is compiled by nvcc's host compiler.
  bool separate = false;
  // For a debugger, a profiler or a sanitizer: -g (and -G for device code), frame pointers, optimization_level 0.
  bool debug = false;
  // CUDA only: Module::kept() has PTX, machine code and resource usage. Takes about as long as another build.
  bool keep = false;
  // Functions to export. nullopt: every `// @BE name [tokens]` line of the sources.
  std::optional<std::vector<Function>> functions;
  std::vector<std::string> compile_flags;
  std::vector<std::string> link_flags;
  std::vector<std::string> include_paths;       // searched before everything else
  std::vector<std::string> last_include_paths;  // searched after everything else, e.g. jax.ffi.include_dir()
  // CUDA only: "sm_86", "8.6", or a comma list. Empty: the architecture of this process's first GPU.
  std::string compute_capability;
  int optimization_level = 3;  // 0 with `debug`
  bool use_fast_math = false;
  bool allow_cuda_graph = true;
  bool force_rebuild = false;
  bool verbose = false;
  uint32_t max_parallel_jobs = 0;  // of this load; 0: the daemon's limit
  // The environment ("NAME=value") that says where tools and headers are. nullopt: the process' own, which no other
  // thread may change meanwhile; a program where one may gives a copy.
  std::optional<std::vector<std::string>> environment;
  LoadCallbacks callbacks;
};

// Compiles C++ (or finds it in the cache) and opens the result. `name` labels the cache entry and diagnostics.
//
// A load that this process has done before gives the same module and asks no daemon, unless something that it depends
// on has changed since (an argument, the environment, the working folder, a file that it read), or this process has
// purged a cache. LoadOptions::force_rebuild and `verbose` ask in any case. The same holds for all loads below.
absl::StatusOr<std::shared_ptr<Module>> LoadCppInline(Client& client, const std::string& name,
                                                      const std::vector<std::string>& sources,
                                                      const LoadOptions& options = {});
absl::StatusOr<std::shared_ptr<Module>> LoadCppFile(Client& client, const std::string& path,
                                                    const LoadOptions& options = {});

// The same for CUDA.
absl::StatusOr<std::shared_ptr<Module>> LoadCudaInline(Client& client, const std::string& name,
                                                       const std::vector<std::string>& sources,
                                                       const LoadOptions& options = {});
absl::StatusOr<std::shared_ptr<Module>> LoadCudaFile(Client& client, const std::string& path,
                                                     const LoadOptions& options = {});

// The CUDA files of a folder together, as LoadOptions::separate says; the module has the folder's name. Those that
// match the first of `file_patterns` (a shell's, of names in that folder) come first, each sorted by name.
absl::StatusOr<std::shared_ptr<Module>> LoadCudaDir(Client& client, const std::string& directory,
                                                    const LoadOptions& options = {},
                                                    const std::vector<std::string>& file_patterns = {"*.cu"});

// Files together, as LoadOptions::separate says.
absl::StatusOr<std::shared_ptr<Module>> LoadFiles(Client& client, Language language, const std::string& name,
                                                  const std::vector<std::string>& paths,
                                                  const LoadOptions& options = {});

// What all of the above come to. `language` is what the functions are for.
absl::StatusOr<std::shared_ptr<Module>> Load(Client& client, Language language, const std::string& name,
                                             const std::vector<Source>& sources, const LoadOptions& options);

}  // namespace kernix
