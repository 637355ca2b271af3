// SPDX-License-Identifier: Apache-2.0
// A range-based loop over an array and over a type of its own.
struct Range {
  int first, last;
  struct Iterator {
    int at;
    __device__ int operator*() const { return at; }
    __device__ void operator++() { ++at; }
    __device__ bool operator!=(Iterator other) const { return at != other.at; }
  };
  __device__ Iterator begin() const { return {first}; }
  __device__ Iterator end() const { return {last}; }
};

// @BE run
__global__ void run(const float* x, float* y) {
  float sum = 0;
  const float weights[3] = {1, 2, 3};
  for (const float weight : weights) sum += weight;
  for (const int i : Range{0, 4}) sum += x[(threadIdx.x + i) % 256];
  y[threadIdx.x] = sum;
}
