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
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "daemon/toolchain/file_digests.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::toolchain {

class FileDigests;
class HostFacts;

enum class HostCompilerKind { kGcc, kClang };

struct HostCompiler {
  HostCompilerKind kind = HostCompilerKind::kGcc;
  // Absolute, the links of its folder resolved. Its own name stays: it may be what tells the program to be clang++, or
  // g++ behind ccache.
  std::string path;
  int major_version = 0;
  std::string version;  // "12.2.0", for people
  // Content of driver, cc1plus, as, ld, collect2 and the libraries that these are linked with; of specs, crt files,
  // libgcc, libstdc++, libc.
  Digest identity;
  std::vector<std::string> system_include_directories;  // what `-v` prints: no header under these is the user's
  std::vector<std::string> library_directories;         // where it looks for -lfoo, in order
};

struct CudaToolkit {
  std::string nvcc;  // absolute: the program itself, behind links and wrapper scripts
  std::string root;  // the folder above bin/, links resolved
  int major_version = 0, minor_version = 0;
  std::string version;  // "13.0"
  // Content of nvcc, cudafe++, cicc, ptxas, fatbinary, nvlink, nvcc.profile, link stubs, libdevice, static cudart and
  // cudadevrt.
  Digest identity;
  std::vector<std::string> include_directories;  // of the toolkit and beside it (pip layouts), absolute
  std::vector<std::string> library_directories;  // the one with libcudart_static.a first
  std::vector<int> architectures;                // that this nvcc can compile for: 75, 80, ..., 120
  // Why this nvcc does not take the host compiler, with what to do; empty when it does. CheckFlags() makes it an error.
  std::string host_refusal;
};

struct Toolchain {
  HostCompiler host;
  std::optional<CudaToolkit> cuda;
  Digest identity;  // of all of it: the same tools in another place have the same
  // What the identity was made from, as it was before it was read: while all are Unchanged(), it holds.
  std::vector<WatchedFile> files;
  // The whole environment of a compile or link action; nothing of a client's. It has PWD=/proc/self/cwd, so that
  // compilers which note the folder they run in write the same whatever that is.
  std::map<std::string, std::string> environment;
  // What CheckFlags() has found out about this host, remembered. May be null: then it is found out each time.
  std::shared_ptr<HostFacts> facts;
};

using ToolchainPtr = std::shared_ptr<const Toolchain>;

// Finds out what the tools at the given paths are. Results are kept as long as no file that took part has changed (by
// stat), so that a warm load costs some stat calls. Thread-safe; askers of different toolchains do not wait for each
// other.
class ToolchainRegistry {
 public:
  explicit ToolchainRegistry(Env& env);

  // TOOLCHAIN errors: no such program, does not run, not a GCC or Clang, an nvcc without its parts. `language` decides
  // whether nvcc is needed; a host compiler that nvcc refuses is told by CheckFlags(). Errors are not kept.
  absl::StatusOr<ToolchainPtr> Resolve(const v1::ToolchainPaths& paths, v1::Language language);

  // Of all files that make a toolchain what it is, headers too.
  FileDigests& digests();

 private:
  struct Entry;
  absl::StatusOr<ToolchainPtr> Probe(const v1::ToolchainPaths& paths, v1::Language language);

  Env& env_;
  const std::shared_ptr<HostFacts> facts_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::toolchain
