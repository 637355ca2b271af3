// SPDX-License-Identifier: Apache-2.0
//
// The processor that this build is for, as others call it. Compilers on it make code for it, too.
#pragma once

#include <elf.h>

namespace kernix {

#if defined(__x86_64__) && defined(__LP64__)
inline constexpr char kProcessor[] = "x86-64";
inline constexpr Elf64_Half kElfMachine = EM_X86_64;
inline constexpr char kCudaTarget[] = "targets/x86_64-linux";  // a folder of a CUDA toolkit
inline constexpr char kClangProcessor[] = "x86_64";
#elif defined(__aarch64__) && defined(__LP64__) && defined(__AARCH64EL__)
inline constexpr char kProcessor[] = "aarch64";
inline constexpr Elf64_Half kElfMachine = EM_AARCH64;
inline constexpr char kCudaTarget[] = "targets/sbsa-linux";
inline constexpr char kClangProcessor[] = "aarch64";
#else
#error "kernix is for x86-64 and little-endian aarch64 with 64-bit pointers. Another one also needs a trampoline."
#endif

}  // namespace kernix
