// SPDX-License-Identifier: Apache-2.0
// Virtual functions of objects that device code makes.
struct Shape {
  __device__ virtual float area(float v) const = 0;
};
struct Square : Shape {
  __device__ float area(float v) const override { return v * v; }
};
struct Circle : Shape {
  __device__ float area(float v) const override { return 3 * v * v; }
};

// @BE run
__global__ void run(const float* x, float* y) {
  Square square;
  Circle circle;
  const Shape* shape = threadIdx.x % 2 == 0 ? static_cast<const Shape*>(&square) : &circle;
  y[threadIdx.x] = shape->area(x[threadIdx.x]);
}
