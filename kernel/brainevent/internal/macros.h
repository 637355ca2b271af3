// SPDX-License-Identifier: Apache-2.0
//
// What the compiler at hand offers. Included first by every kernel header; includes nothing.
#pragma once

// Marks what host and device code may both call.
#if defined(__CUDACC__)
#define KERNIX_HD __host__ __device__
#else
#define KERNIX_HD
#endif

// Device code has no exceptions, and host code compiled with -fno-exceptions has none either.
#if !defined(__CUDA_ARCH__) && (defined(__cpp_exceptions) || defined(__EXCEPTIONS))
#define KERNIX_HAS_EXCEPTIONS 1
#else
#define KERNIX_HAS_EXCEPTIONS 0
#endif

// For what runs seldom: emitted once and small, which is also what compiles fastest.
#define KERNIX_COLD __attribute__((cold, noinline))

// The same for what has one caller.
#define KERNIX_SMALL __attribute__((cold))
