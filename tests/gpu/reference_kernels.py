# SPDX-License-Identifier: Apache-2.0
"""The kernels of the reference's own pages, unchanged. tests/python compiles them, too, without a GPU."""

VECTOR_ADD = """
#include <cuda_runtime.h>
#include "brainevent/common.h"
__global__ void add_kernel(const float* a, const float* b, float* out, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n) out[idx] = a[idx] + b[idx];
}
// @BE vector_add arg arg ret stream
void vector_add(const BE::Tensor a, const BE::Tensor b, BE::Tensor out, int64_t stream) {
    int n = a.numel();
    add_kernel<<<(n + 255) / 256, 256, 0, (cudaStream_t)stream>>>(
        static_cast<const float*>(a.data_ptr()), static_cast<const float*>(b.data_ptr()),
        static_cast<float*>(out.data_ptr()), n);
    BE_CHECK_KERNEL_LAUNCH();
}
"""

SCALE_BY = """
#include <cuda_runtime.h>
#include "brainevent/common.h"
__global__ void scale_kernel(const float* x, float* out, float scale_factor, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n) out[idx] = x[idx] * scale_factor;
}
// @BE scale_by arg ret attr.scale_factor:float32 stream
void scale_by(const BE::Tensor x, BE::Tensor out, float scale_factor, int64_t stream) {
    int n = x.numel();
    scale_kernel<<<(n + 255) / 256, 256, 0, (cudaStream_t)stream>>>(
        static_cast<const float*>(x.data_ptr()), static_cast<float*>(out.data_ptr()), scale_factor, n);
    BE_CHECK_KERNEL_LAUNCH();
}
"""

ADD_BY_REFERENCE = """
#include <cuda_runtime.h>
#include "brainevent/common.h"
__global__ void add_kernel(const float* a, const float* b, float* out, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n) out[idx] = a[idx] + b[idx];
}
// @BE add_by_reference
void add_by_reference(const BE::Tensor& input, const BE::Tensor& other, BE::Tensor& output, cudaStream_t stream) {
    int n = input.numel();
    add_kernel<<<(n + 255) / 256, 256, 0, stream>>>(
        static_cast<const float*>(input.data_ptr()), static_cast<const float*>(other.data_ptr()),
        static_cast<float*>(output.data_ptr()), n);
    BE_CHECK_KERNEL_LAUNCH();
}
"""
