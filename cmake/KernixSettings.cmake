# SPDX-License-Identifier: Apache-2.0
# An interface target that every kernix target links: language level and warnings.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# Use ccache if it is installed, with the settings that it needs to cache objects built with precompiled headers. Build
# folders of the repository's root share objects, so the wheel compiles nothing that `make build` has compiled. By itself,
# ccache preprocesses a precompiled header through the older one that lies in its place, and may then return a stale one:
# CCACHE_DEPEND takes the compiler's list of files instead. CCACHE_INODECACHE keeps it from reading the precompiled header,
# 240 MB, again for each source (a hit on a small source: 10 ms instead of 270).
find_program(KERNIX_CCACHE ccache)
if(KERNIX_CCACHE AND (NOT CMAKE_CXX_COMPILER_LAUNCHER OR CMAKE_CXX_COMPILER_LAUNCHER STREQUAL "ccache"))
  set(CMAKE_CXX_COMPILER_LAUNCHER
    env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
        "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 CCACHE_ABSSTDERR=1 CCACHE_DEPEND=1 CCACHE_INODECACHE=1
        "${KERNIX_CCACHE}")
endif()

add_library(kernix_settings INTERFACE)
target_compile_features(kernix_settings INTERFACE cxx_std_20)
target_compile_options(kernix_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  # From 18 on, Clang gives some templates other names than GCC, which has compiled the distributions' Abseil.
  $<$<AND:$<CXX_COMPILER_ID:Clang>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,18>>:-fclang-abi-compat=17>
  # GCC 12 gives false warnings for std::string made from literals (GCC bug 105651).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-array-bounds;-Wno-restrict>
  $<$<BOOL:${KERNIX_WERROR}>:-Werror>)
