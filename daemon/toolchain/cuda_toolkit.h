// SPDX-License-Identifier: Apache-2.0
//
// What an nvcc is: its parts, wherever the layout at hand has them. Known layouts:
//   toolkit       ROOT/{bin,nvvm,include,lib64}, with include and lib64 links into targets/x86_64-linux
//   conda         ROOT/{bin,nvvm,targets/x86_64-linux/{include,lib}}
//   distribution  /usr/bin/nvcc, a script that starts /usr/lib/nvidia-cuda-toolkit/bin/nvcc; cicc lies beside that one,
//   the
//                 other programs in /usr/bin, headers and libraries where the host compiler has its own
//   pip, CUDA 13  site-packages/nvidia/cu13/{bin,nvvm,include,lib}
//   pip, CUDA 12  site-packages/nvidia/cuda_nvcc, with headers and libraries in its sisters cuda_runtime, cuda_cccl,
//   ...
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/os/env.h"
#include "daemon/toolchain/file_digests.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::toolchain {

// Asks the nvcc of `paths`, which is used together with `host`. `files` receives every file that the answer depends on,
// as it was before. TOOLCHAIN errors as ToolchainRegistry::Resolve() has them.
absl::StatusOr<CudaToolkit> ProbeCudaToolkit(Env& env, FileDigests& digests, const v1::ToolchainPaths& paths,
                                             const HostCompiler& host, std::vector<WatchedFile>& files);

// Where programs of the toolkit are, as nvcc finds them: beside itself; most of a distribution's are on PATH.
std::vector<std::string> ProgramFolders(const CudaToolkit& cuda, const HostCompiler& host);

// The newest major versions that a toolkit takes as its host compiler. 0: not known.
struct HostLimits {
  int newest_gcc = 0;
  int newest_clang = 0;
};

// Reads them from the text of the toolkit's crt/host_config.h.
HostLimits ParseHostLimits(const std::string& host_config);

}  // namespace kernix::toolchain
