// SPDX-License-Identifier: Apache-2.0
// Functions that are found through the namespace of their argument.
namespace mine {
struct Value {
  float value;
};
__device__ float abs(Value v) { return v.value + 100; }
__device__ Value min(Value a, Value b) { return a.value < b.value ? b : a; }
}  // namespace mine

// @BE run
__global__ void run(const float* x, float* y) {
  const int i = threadIdx.x;
  y[i] = abs(min(mine::Value{x[i]}, mine::Value{x[255 - i]}));
}
