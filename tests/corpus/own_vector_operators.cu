// SPDX-License-Identifier: Apache-2.0
// Operators of its own on built-in vectors.
__host__ __device__ inline float3 operator+(float3 a, float3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
__host__ __device__ inline float3 operator*(float s, float3 a) { return {s * a.x, s * a.y, s * a.z}; }
__host__ __device__ inline float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

// @BE run
__global__ void run(const float* x, float* y) {
  const float3 v = {x[threadIdx.x], 1, 2};
  y[threadIdx.x] = dot(v + 2 * v, v);
}
