[[gnu::noinline]] auto f [[x]] (const BE::Tensor a [[maybe_unused]], BE::Tensor& __restrict__ o, std::int64_t const stream) __attribute__((cold)) -> void {}
__global__ void f(float* p);
__device__ void f(int);
