// SPDX-License-Identifier: Apache-2.0
// PTX inside of device code.
// @BE run
__global__ void run(const float* x, float* y) {
  unsigned lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  float sum;
  asm("add.rz.f32 %0, %1, %2;" : "=f"(sum) : "f"(x[threadIdx.x]), "f"(static_cast<float>(lane)));
  y[threadIdx.x] = sum;
}
