// SPDX-License-Identifier: Apache-2.0
// constexpr code that is evaluated while compiling, and static_assert.
constexpr int Fibonacci(int n) { return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2); }
static_assert(Fibonacci(10) == 55, "wrong");

template <int kN>
struct Table {
  float values[kN] = {};
  constexpr Table() {
    for (int i = 0; i < kN; ++i) values[i] = static_cast<float>(Fibonacci(i));
  }
};

// @BE run
__global__ void run(const float* x, float* y) {
  constexpr Table<8> kTable;
  if constexpr (sizeof(kTable) == 32) y[threadIdx.x] = x[threadIdx.x] + kTable.values[threadIdx.x % 8];
}
