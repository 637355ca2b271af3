// SPDX-License-Identifier: Apache-2.0
//
// Macros for the features of the current compiler. Every kernel header includes this header first; it includes nothing.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#if __cplusplus < 201402L
#error "kernix needs C++14 or newer: choose another -std"
#endif

// Marks functions that host and device code may both call.
#if defined(__CUDACC__)
#define KERNIX_HD __host__ __device__
#else
#define KERNIX_HD
#endif

// Device code has no exceptions, and neither does host code compiled with -fno-exceptions.
#if !defined(__CUDA_ARCH__) && (defined(__cpp_exceptions) || defined(__EXCEPTIONS))
#define KERNIX_HAS_EXCEPTIONS 1
#else
#define KERNIX_HAS_EXCEPTIONS 0
#endif

// debug=True has BE::In and BE::Out check their indices. On the host, a failure throws.
#if defined(KERNIX_CHECK_INDICES)
#define KERNIX_NOEXCEPT_INDEX
#else
#define KERNIX_NOEXCEPT_INDEX noexcept
#endif

// For code that runs rarely: emitted once and small, which also compiles fastest.
#define KERNIX_COLD __attribute__((cold, noinline))

// The same for code with a single caller.
#define KERNIX_SMALL __attribute__((cold))

// For functions that handler_runtime.h defines. They are the artifact's own.
#define KERNIX_RUNTIME __attribute__((cold, visibility("hidden")))
