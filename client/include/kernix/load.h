// SPDX-License-Identifier: Apache-2.0
//
// Compiles kernels from a C++ program: the parameters of a load, and its result.
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

// One source text. Diagnostics show `label`. If the text comes from a file, `path` is its path; errors name it, and
// `#include "x.h"` searches its folder first.
struct Source {
  std::string text;
  std::string label;
  std::string path;
};

// A function to export, with its arg_spec tokens in the order of its C++ parameters, or without tokens to infer them
// from the signature.
struct Function {
  std::string name;
  std::vector<std::string> tokens;
};

// Events of a load in progress. Called from the loading thread.
struct LoadCallbacks {
  // Commands and compiler output as they arrive (only with LoadOptions::verbose).
  std::function<void(std::string_view)> output;
  // The state of the load: "queued (3 ahead)", "compile (1/2)". Called at most once per change.
  std::function<void(std::string_view)> progress;
  // A message for the user that is not an error.
  std::function<void(std::string_view)> warning;
  // Called every 50 ms. If it returns true, the load is cancelled and returns kCancelled.
  std::function<bool()> cancelled;
  // The load's inputs besides its sources, as absolute paths: headers, objects, libraries, and the folders searched for
  // them, which need not exist. Called before the build, also of a load that fails. With this callback, a load always
  // asks the daemon.
  using Inputs = std::function<void(const std::vector<std::string>&)>;
  Inputs inputs;
};

// What to do if the cache does not have a load's result.
enum class LoadPolicy {
  kBuild,   // it compiles
  kCached,  // it fails with kNotCached, and says what the nearest entry differs in
};

struct LoadOptions {
  // If set, each source becomes a separate object; the sources are compiled in parallel and linked once. Otherwise,
  // they form one translation unit, in order. With `separate`, a file's suffix determines its language (.cu; .cpp, .cc,
  // .cxx), and nvcc's host compiler compiles the C++ files of a CUDA module.
  bool separate = false;
  // For a debugger, a profiler or a sanitizer: -g (and -G for device code), frame pointers, optimization_level 0.
  bool debug = false;
  // CUDA only: Module::texts() has PTX, machine code and resource usage. Takes about as long as another build.
  bool keep = false;
  // Functions to export. nullopt: every `// @BE name [tokens]` line of the sources.
  std::optional<std::vector<Function>> functions;
  std::vector<std::string> compile_flags;
  std::vector<std::string> link_flags;
  std::vector<std::string> include_paths;       // searched before all others
  std::vector<std::string> last_include_paths;  // searched after all others, e.g. jax.ffi.include_dir()
  // CUDA only: "sm_86", "8.6", or a comma-separated list. Empty: the architecture of this process's first GPU.
  std::string compute_capability;
  int optimization_level = 3;  // 0 with `debug`
  bool use_fast_math = false;
  bool allow_cuda_graph = true;
  bool force_rebuild = false;  // compiles without shortcuts, even if the cache has the result; `begin_anew`
  // Gives the module its own static variables, with their initial values. Otherwise, loads of equal code with an equal
  // `instance` share them, with the values that earlier calls left there.
  bool begin_anew = false;
  std::string instance;  // empty: the module's name
  // Folders with kernels that were compiled elsewhere (`kernixctl bundle make`), asked in this order, and before those
  // of $KERNIX_BUNDLES and the one beside the first source file, "<name>.kernix". Those that do not exist are skipped.
  std::vector<std::string> bundles;
  // nullopt: $KERNIX_POLICY ("build" or "cached"), or kBuild if that is not set. kCached and force_rebuild contradict
  // each other.
  std::optional<LoadPolicy> policy;
  // The program has loaded what it needs, and expects no build any more. Changes no result: kernixd counts the loads
  // that need one (kernix_builds_after_freeze_total), and kNotCached says that the process is frozen.
  bool frozen = false;
  bool verbose = false;
  uint32_t max_parallel_jobs = 0;  // for this load; 0: the daemon's limit
  bool in_history = true;          // counts as one of its program's loads (ClientOptions::program)
  bool batch = false;              // one of many for which somebody waits: this user's other loads go first
  // The environment ("NAME=value") with the paths of tools and headers. nullopt: the process's own environment, which
  // no other thread may change during the load. If threads of your program may change it, pass a copy.
  std::optional<std::vector<std::string>> environment;
  LoadCallbacks callbacks;
};

// Compiles C++ (or finds the artifact in the cache) and opens the result. `name` is the tag of the cache entry and
// appears in diagnostics.
//
// Repeating a load in this process returns the same module without asking a daemon, unless one of its inputs has
// changed (an argument, the environment, the working folder, a file that it read), or this process has purged a cache.
// LoadOptions::force_rebuild, `begin_anew` and `verbose` always ask the daemon, as LoadCallbacks::inputs does. The same
// holds for all loads below.
absl::StatusOr<std::shared_ptr<Module>> LoadCppInline(Client& client, const std::string& name,
                                                      const std::vector<std::string>& sources,
                                                      const LoadOptions& options = {});
absl::StatusOr<std::shared_ptr<Module>> LoadCppFile(Client& client, const std::string& path,
                                                    const LoadOptions& options = {});

// Compiles the files of a folder, combined as LoadOptions::separate says. The module has the folder's name.
// `file_patterns` are shell patterns such as "*.cc" and "more/*.cc"; "**" stands for the folder and all folders below
// it, except through links. The files of the first pattern come first, those of each pattern sorted.
absl::StatusOr<std::shared_ptr<Module>> LoadCppDir(Client& client, const std::string& directory,
                                                   const LoadOptions& options = {},
                                                   const std::vector<std::string>& file_patterns = {"*.cpp", "*.cc",
                                                                                                    "*.cxx"});

// The same for CUDA.
absl::StatusOr<std::shared_ptr<Module>> LoadCudaInline(Client& client, const std::string& name,
                                                       const std::vector<std::string>& sources,
                                                       const LoadOptions& options = {});
absl::StatusOr<std::shared_ptr<Module>> LoadCudaFile(Client& client, const std::string& path,
                                                     const LoadOptions& options = {});
absl::StatusOr<std::shared_ptr<Module>> LoadCudaDir(Client& client, const std::string& directory,
                                                    const LoadOptions& options = {},
                                                    const std::vector<std::string>& file_patterns = {"*.cu"});

// Compiles several files, combined as LoadOptions::separate says.
absl::StatusOr<std::shared_ptr<Module>> LoadFiles(Client& client, Language language, const std::string& name,
                                                  const std::vector<std::string>& paths,
                                                  const LoadOptions& options = {});

// Opens a library that `kernixctl compile -o` or WriteBuildDirectory() has written, without a daemon. The module has
// the name that it was compiled under. Of the options, `instance`, `begin_anew` and `environment` count. LOAD errors:
// it is another library, or this process cannot open it.
absl::StatusOr<std::shared_ptr<Module>> LoadLibrary(Client& client, const std::string& path,
                                                    const LoadOptions& options = {});

// All of the above but LoadLibrary() call this function. `language` is the language of the module.
absl::StatusOr<std::shared_ptr<Module>> Load(Client& client, Language language, const std::string& name,
                                             const std::vector<Source>& sources, const LoadOptions& options);

}  // namespace kernix
