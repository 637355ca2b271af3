// SPDX-License-Identifier: Apache-2.0
//
// Compilers of this host: where they are, what they are (by content), and what they may be asked to do.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/base/digest.h"
#include "daemon/base/env.h"
#include "daemon/base/mutex.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::toolchain {

enum class HostCompilerKind { kGcc, kClang };

struct HostCompiler {
  HostCompilerKind kind = HostCompilerKind::kGcc;
  std::string path;     // absolute, links resolved
  int major_version = 0;
  std::string version;  // "12.2.0", for people
  Digest identity;      // content of driver, cc1plus, as, ld (collect2), specs, crt files, libgcc, libstdc++
  std::vector<std::string> system_include_directories;  // what `-v` prints: no header under these is the user's
};

struct CudaToolkit {
  std::string nvcc;     // absolute, links resolved
  std::string root;     // the folder above bin/
  int major_version = 0, minor_version = 0;
  std::string version;  // "13.0"
  Digest identity;      // content of nvcc, cudafe++, cicc, ptxas, fatbinary, nvlink, nvcc.profile, libdevice, cudart
  std::vector<std::string> include_directories;  // of the toolkit and beside it (pip layouts)
  std::vector<std::string> library_directories;
  std::vector<int> architectures;  // that this nvcc can compile for: 75, 80, ..., 120
};

struct Toolchain {
  HostCompiler host;
  std::optional<CudaToolkit> cuda;
  Digest identity;  // of all of it
  // What a compile action gets as PATH and so on. Nothing of a client's environment.
  std::map<std::string, std::string> environment;
};

using ToolchainPtr = std::shared_ptr<const Toolchain>;

// Finds out what the tools at the given paths are. Results are kept as long as no file that took part has changed (by
// stat), so that a warm load costs some stat calls. Thread-safe.
class ToolchainRegistry {
 public:
  explicit ToolchainRegistry(Env& env);

  // TOOLCHAIN errors: no such program, does not run, not a GCC or Clang, an nvcc without its parts, a host compiler that this nvcc
  // refuses (naming the newest that it takes). `language` decides whether nvcc is needed.
  absl::StatusOr<ToolchainPtr> Resolve(const v1::ToolchainPaths& paths, v1::Language language);

 private:
  struct Entry;
  absl::StatusOr<ToolchainPtr> Probe(const v1::ToolchainPaths& paths, v1::Language language);

  Env& env_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::toolchain
