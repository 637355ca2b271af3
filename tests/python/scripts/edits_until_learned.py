# SPDX-License-Identifier: Apache-2.0
"""Load edits of a kernel until kernixd has learned all that it will, and print what it has counted."""

import subprocess
import time

import kernix
from kernix import _environment

KERNEL = """
__device__ float twice(float x) { return 2 * x + ADDED; }
__global__ void scale_kernel(float* x) { x[threadIdx.x] = twice(x[threadIdx.x]); }
// @BE scale
void scale(BE::Out<float> x, cudaStream_t stream) {
  const int block = 32 * BLOCKS;
  scale_kernel<<<1, block, 0, stream>>>(x.data());
}
"""


def load(added, blocks):
    source = KERNEL.replace("ADDED", f"{added}.f").replace("BLOCKS", str(blocks))
    kernix.load_cuda_inline("scale", source, compute_capability="9.0", auto_register=False, replace=True)


for added in range(5):
    load(added, 1)
    load(added, 2)
    text = ""
    while "\nkernix_lessons 0\n" not in text:
        time.sleep(0.1)
        text = subprocess.run(
            [_environment.program("kernixctl"), "metrics"], check=True, capture_output=True, text=True
        ).stdout
print(text)
