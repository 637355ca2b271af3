// SPDX-License-Identifier: Apache-2.0
// Integer intrinsics, some of which are macros or builtins.
// @BE run
__global__ void run(const float* x, float* y) {
  const unsigned v = __float_as_uint(x[threadIdx.x]) ^ threadIdx.x;
  const unsigned mixed = __brev(v) + __clz(static_cast<int>(v)) + __byte_perm(v, ~v, 0x3715) + __umulhi(v, v) +
                         __funnelshift_l(v, v, 5) + __dp4a(static_cast<int>(v), 0x01020304, 7) + __vadd4(v, 0x01010101);
  y[threadIdx.x] = static_cast<float>(mixed & 0xffff);
}
