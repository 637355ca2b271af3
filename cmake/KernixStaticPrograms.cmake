# SPDX-License-Identifier: Apache-2.0
#
# kernix_link_from_archives(TARGET...)
# Makes programs and the extension depend only on libgcc and a glibc from 2018, for the wheel. They are compiled as usual.
# link_from_archives.sh replaces libraries by their archives, older_glibc.py lets the linker take the old version of each
# function, and common/os/newer_glibc.cc has those that are new. Such programs also start in half the time.
set(KERNIX_OLDEST_GLIBC 2.27)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  message(FATAL_ERROR "Wheels are for x86-64 only; on aarch64, use `make package` or `make install` (docs/install.md).")
endif()

function(kernix_link_from_archives)
  set(script "${PROJECT_SOURCE_DIR}/cmake/link_from_archives.sh")
  set(glibc "${PROJECT_BINARY_DIR}/older_glibc")
  execute_process(COMMAND python3 "${PROJECT_SOURCE_DIR}/cmake/older_glibc.py" ${KERNIX_OLDEST_GLIBC} "${glibc}"
    COMMAND_ERROR_IS_FATAL ANY)
  foreach(target IN LISTS ARGN)
    set_target_properties(${target} PROPERTIES CXX_LINKER_LAUNCHER "${script}")
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${script}")
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:kernix_newer_glibc>)
    # Before 2.34, glibc had threads and dlopen() in libraries of their own.
    target_link_options(${target} PRIVATE "-L${glibc}" -static-libstdc++ LINKER:--wrap=stderr
      LINKER:--push-state,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 LINKER:--pop-state)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:kernix_newer_glibc_start>)
      target_link_options(${target} PRIVATE LINKER:--wrap=__libc_start_main)
    else()
      kernix_use_shared_objects(${target})
    endif()
  endforeach()
endfunction()

# Distributions compile their archives for programs. What is in them can be linked into a shared library as well, but for
# the few sources with thread-local variables: these are compiled again. The linker names an archive that has more of them.
function(kernix_use_shared_objects target)
  set(sources "${PROJECT_BINARY_DIR}/sources")
  execute_process(COMMAND "${PROJECT_SOURCE_DIR}/cmake/fetch_sources.sh" "${sources}" libabsl-dev libprotobuf-dev
    COMMAND_ERROR_IS_FATAL ANY)
  add_library(kernix_shared_objects OBJECT
    "${sources}/libabsl-dev/absl/base/internal/sysinfo.cc"
    "${sources}/libabsl-dev/absl/container/internal/raw_hash_set.cc"
    "${sources}/libabsl-dev/absl/strings/internal/cordz_functions.cc"
    "${sources}/libprotobuf-dev/src/google/protobuf/arena.cc")
  target_compile_features(kernix_shared_objects PRIVATE cxx_std_20)
  target_compile_options(kernix_shared_objects PRIVATE -w)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:kernix_shared_objects>)
endfunction()
