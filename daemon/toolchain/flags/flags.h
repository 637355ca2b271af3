// SPDX-License-Identifier: Apache-2.0
//
// Decides which flags may be passed to the compilers.
//
// -D and -U become lines of the source. Both policies refuse: flags that the build itself relies on (-o, -c, -E, -M*,
// --keep, ...); flags that make the artifact depend on something that the key does not cover (-I, -include, -B,
// -wrapper, --sysroot, ..., and @file wherever a tool may read it); text that a shell would interpret, since nvcc uses
// one (shell_words.h); flags that put a user's path into the artifact (-Wl,-rpath, -frecord-gcc-switches); flags for
// which the request has a field (-arch, -ccbin). The shared policy also refuses flags that make kernixd itself read a
// file, or a link use other jobs' processors (common/flags/flag_table.h). Every other flag goes to the tool, which sees
// the request and the toolchain only (daemon/spawn), unless it names a file by its path.
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
  kShared,   // also refuses flags that kernixd reads files for (-fplugin, -specs, -L, objects), and -flto=N
};

// A file outside the request that a flag names, or that a library's name resolves to. The key covers its content but
// not its path.
struct FlagFile {
  // Where the link step needs the file, relative to the action's root: the plan stages `path` there after checking that
  // it still has `digest`. Empty: nothing is staged, because the tools find the file themselves.
  std::string staged;
  std::string path;  // on this host, absolute
  Digest digest;
};

// The accepted flags. The key covers everything here except FlagFile::path.
struct CheckedFlags {
  // For the host compiler when it compiles, with -march=native and similar flags replaced by their meaning. CUDA: the
  // words in -Xcompiler.
  std::vector<std::string> host;
  // CUDA: for nvcc itself.
  std::vector<std::string> nvcc;
  // The -D and -U among the compile flags, in order, as lines for the top of the source: "#define X 1". No command
  // contains them.
  std::vector<std::string> definitions;
  // For the host compiler when it links, with nvcc's spelling translated (-Xlinker a,b; -Xcompiler -fopenmp). The
  // user's objects and libraries appear under their `staged` names: "flag-files/0/libx.a"; "-Lflag-files/0 -lx".
  std::vector<std::string> link;
  // The files that flags name, and the parts of the host compiler that only these flags need.
  std::vector<FlagFile> files;
  // CUDA, -rdc=true: the object needs a device link (nvcc -dlink) before the link, and -lcudadevrt.
  bool relocatable_device_code = false;
};

// INVALID_REQUEST with the flag, the reason and an alternative. TOOLCHAIN for a host compiler that nvcc refuses
// (CudaToolkit::host_refusal), unless the flags contain -allow-unsupported-compiler.
absl::StatusOr<CheckedFlags> CheckFlags(Env& env, const Toolchain& toolchain, v1::Language language, FlagPolicy policy,
                                        const std::vector<std::string>& compile_flags,
                                        const std::vector<std::string>& link_flags);

// Whether a link takes part in link-time optimization, by the words of CheckedFlags for the host compiler.
bool LinksWithLto(const std::vector<std::string>& host, const std::vector<std::string>& link);

// "sm_86", "8.6", "86", "compute_86" -> "sm_86"; "sm_90a" and "sm_100f" keep their letter. "all" and "all-major" are
// what they are to nvcc. `of_gpu`: "sm_90" is a GPU, and becomes the most specific target that the toolkit has for it,
// which alone has all of its instructions. Sorted by number, without duplicates. INVALID_REQUEST if one is unreadable
// or none is given; TOOLCHAIN if this toolkit cannot compile for one (the error lists the supported ones).
absl::StatusOr<std::vector<std::string>> CheckArchitectures(const CudaToolkit& cuda,
                                                            const std::vector<std::string>& architectures,
                                                            bool of_gpu = false);

}  // namespace kernix::toolchain
