# SPDX-License-Identifier: Apache-2.0
# The libraries that kernix links, all from the distribution (Debian 12 and Ubuntu 24.04 have the same versions of
# them).
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Protobuf REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(SQLite3 REQUIRED)
# Use its CMake package, because CMake would run pkg-config about twenty times, each for most of a second.
find_package(gRPC CONFIG REQUIRED)
# Its re2 asks for -pthread, which libc 2.34 no longer needs, and precompiled headers require identical flags.
set_property(TARGET re2::re2 PROPERTY INTERFACE_COMPILE_OPTIONS)
find_package(PkgConfig REQUIRED)
pkg_check_modules(NGHTTP2 REQUIRED IMPORTED_TARGET GLOBAL libnghttp2)
pkg_check_modules(LIBEVENT REQUIRED IMPORTED_TARGET GLOBAL libevent_extra libevent_core)  # HTTP of `kernixctl web`
pkg_check_modules(MINIZIP REQUIRED IMPORTED_TARGET GLOBAL minizip)
find_package(ZLIB REQUIRED)  # which minizip's archive needs
pkg_check_modules(SECCOMP REQUIRED IMPORTED_TARGET GLOBAL libseccomp)
find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)
if(KERNIX_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
