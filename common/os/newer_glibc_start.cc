// SPDX-License-Identifier: Apache-2.0
//
// From glibc 2.34 on, the C library runs a program's constructors. Before, the program told it how, and programs that
// are linked today do not (cmake/KernixStaticPrograms.cmake). Newer ones still ask the program first.
#include <cstddef>

extern "C" {

using Constructor = void (*)(int, char**, char**);
extern const Constructor __preinit_array_start[], __preinit_array_end[], __init_array_start[], __init_array_end[];
void _init();

static void RunConstructors(int argc, char** argv, char** environment) {
  for (const Constructor* one = __preinit_array_start; one != __preinit_array_end; ++one)
    (*one)(argc, argv, environment);
  _init();
  for (const Constructor* one = __init_array_start; one != __init_array_end; ++one) (*one)(argc, argv, environment);
}

using Main = int (*)(int, char**, char**);
int __real___libc_start_main(Main, int, char**, Constructor, void (*)(), void (*)(), void*);
int __wrap___libc_start_main(Main main, int argc, char** argv, Constructor, void (*finish)(),
                             void (*finish_libraries)(), void* stack) {
  return __real___libc_start_main(main, argc, argv, RunConstructors, finish, finish_libraries, stack);
}

}  // extern "C"
