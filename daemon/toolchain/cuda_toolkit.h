// SPDX-License-Identifier: Apache-2.0
//
// The parts of a CUDA toolkit, found through its nvcc, in any of the known layouts:
//   toolkit       ROOT/{bin,nvvm,include,lib64}, with include and lib64 links into targets/x86_64-linux (on aarch64
//                 sbsa-linux)
//   conda         ROOT/{bin,nvvm,targets/x86_64-linux/{include,lib}}
//   distribution  /usr/bin/nvcc, a script that starts /usr/lib/nvidia-cuda-toolkit/bin/nvcc, with cicc beside it; the
//                 other programs are in /usr/bin, headers and libraries where the host compiler has its own
//   pip, CUDA 13  site-packages/nvidia/cu13/{bin,nvvm,include,lib}
//   pip, CUDA 12  site-packages/nvidia/cuda_nvcc, with headers and libraries in its siblings cuda_runtime, cuda_cccl,
//                 ...
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/os/env.h"
#include "daemon/toolchain/file_digests.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::toolchain {

// Queries the nvcc of `paths` for use with `host`. Adds to `files` every file that the answer depends on, in its state
// before the query. TOOLCHAIN errors as in ToolchainRegistry::Resolve().
absl::StatusOr<CudaToolkit> ProbeCudaToolkit(Env& env, FileDigests& digests, const v1::ToolchainPaths& paths,
                                             const HostCompiler& host, std::vector<WatchedFile>& files);

// Advice if there is none.
inline constexpr char kHowToGetNvcc[] =
    "install a CUDA toolkit and set CUDA_HOME, or put nvcc on PATH, or install its wheels from PyPI (pip install "
    "nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm nvidia-cuda-runtime nvidia-cuda-cccl)";

// A program of the toolkit that shows machine code as text. Not part of its identity, since only `keep` needs it.
inline constexpr char kDisassembler[] = "nvdisasm";

// The folders in which nvcc finds the toolkit's programs: its own folder, and PATH, which has most programs of a
// distribution.
std::vector<std::string> ProgramFolders(const CudaToolkit& cuda, const HostCompiler& host);

// The newest major versions that a toolkit accepts as its host compiler. 0: unknown.
struct HostLimits {
  int newest_gcc = 0;
  int newest_clang = 0;
};

// Reads the limits from the text of the toolkit's crt/host_config.h.
HostLimits ParseHostLimits(const std::string& host_config);

}  // namespace kernix::toolchain
