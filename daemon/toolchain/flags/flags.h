// SPDX-License-Identifier: Apache-2.0
//
// Which flags may pass to the compilers.
//
// -D and -U become lines of the source. Refused under both policies: what the build's own mechanics rely on (-o, -c,
// -E, -M*, --keep, ...); what makes the artifact depend on something that the key cannot see (-I, -include, -B,
// -wrapper, --sysroot, ..., and @file wherever a tool may read it); what a shell would read, since nvcc uses one
// (shell_words.h); what puts somebody's path into the artifact (-Wl,-rpath, -frecord-gcc-switches); what another field
// of the request says (-arch, -ccbin). The shared policy then lets pass only flags that the tables let everybody use
// (common/flags/tables.h); the per-user policy all else that names no file.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/os/env.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::toolchain {

enum class FlagPolicy {
  kPerUser,  // the daemon runs as the user
  kShared,   // also refused: what runs code or reads files outside the request (-fplugin, -specs, -L, objects, ...)
};

// A file outside the request that the flags name, or that a library's name stands for. Its content is part of the key;
// its path is not.
struct FlagFile {
  // Where the link step needs it, relative to the action's root: stage `path` there, checking that it still has
  // `digest`. Empty: nothing to stage, the tools find it themselves.
  std::string staged;
  std::string path;  // on this host, absolute
  Digest digest;
};

// What passed. Everything here is part of the key, except FlagFile::path.
struct CheckedFlags {
  // For the host compiler when it compiles, with -march=native and the like replaced by what they stand for. CUDA: what
  // -Xcompiler holds.
  std::vector<std::string> host;
  // CUDA: for nvcc itself.
  std::vector<std::string> nvcc;
  // What -D and -U among the compile flags say, in order, as lines for the top of the source: "#define X 1". They are
  // no words of a command.
  std::vector<std::string> definitions;
  // For the host compiler, which links: nvcc's spelling is translated (-Xlinker a,b; -Xcompiler -fopenmp). Objects and
  // libraries of the user go by their `staged` names: "flag-files/0/libx.a"; "-Lflag-files/0 -lx".
  std::vector<std::string> link;
  std::vector<FlagFile> files;
  // CUDA, -rdc=true: the object needs a device link (nvcc -dlink) before the link, and -lcudadevrt.
  bool relocatable_device_code = false;
  // CUDA, --threads=N: taken out of `nvcc`, since it changes no byte and the plan decides how many there are, up to
  // this. 0: no bound.
  int nvcc_threads = 0;
};

// INVALID_REQUEST that names the flag, why, and what to use instead. TOOLCHAIN for a host compiler that nvcc refuses
// (CudaToolkit::host_refusal), unless the flags hold -allow-unsupported-compiler.
absl::StatusOr<CheckedFlags> CheckFlags(Env& env, const Toolchain& toolchain, v1::Language language, FlagPolicy policy,
                                        const std::vector<std::string>& compile_flags,
                                        const std::vector<std::string>& link_flags);

// "sm_86", "8.6", "86", "compute_86" -> "sm_86"; "sm_90a" and "sm_100f" keep their letter. Sorted by number, no
// doubles. INVALID_REQUEST when unreadable or none; TOOLCHAIN when this toolkit cannot compile for one (naming what it
// can).
absl::StatusOr<std::vector<std::string>> CheckArchitectures(const CudaToolkit& cuda,
                                                            const std::vector<std::string>& architectures);

}  // namespace kernix::toolchain
