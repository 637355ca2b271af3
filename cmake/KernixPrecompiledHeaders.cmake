# SPDX-License-Identifier: Apache-2.0
#
# Headers of other projects that most sources include, parsed once for all of them. Each source still includes what it
# uses, because clang-tidy reads the product without precompiled headers.
#
#   kernix_headers       the standard library, Abseil, kernix's messages
#   kernix_grpc_headers  the same, plus gRPC and kernix's service
#   kernix_test_headers  kernix_headers plus GoogleTest, for test programs: kernix_compile_as_test(TARGET)
function(kernix_precompile name)
  file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/precompiled/${name}.cc" CONTENT "")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/precompiled/${name}.cc")
  target_link_libraries(${name} PRIVATE kernix_settings kernix_proto)
  target_precompile_headers(${name} PRIVATE
    <algorithm>
    <array>
    <chrono>
    <cstdint>
    <deque>
    <functional>
    <map>
    <memory>
    <optional>
    <set>
    <string>
    <string_view>
    <thread>
    <utility>
    <vector>
    <absl/container/flat_hash_map.h>
    <absl/container/flat_hash_set.h>
    <absl/status/status.h>
    <absl/status/statusor.h>
    <absl/strings/match.h>
    <absl/strings/numbers.h>
    <absl/strings/str_cat.h>
    <absl/strings/str_join.h>
    <absl/strings/str_split.h>
    <absl/types/span.h>
    <kernix/v1/kernix.pb.h>
    ${ARGN})
endfunction()

# There are many test sources, and they run for a short time, so the compiler optimises them less. Precompiled headers
# require identical flags, and CMake's flags for position-independent code differ between programs and libraries, so the
# tests are compiled without them.
function(kernix_compile_as_test target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  if(NOT target STREQUAL kernix_test_headers)
    target_precompile_headers(${target} REUSE_FROM kernix_test_headers)
  endif()
endfunction()

kernix_precompile(kernix_headers)

kernix_precompile(kernix_grpc_headers <grpcpp/grpcpp.h> <kernix/v1/kernix.grpc.pb.h>)
target_link_libraries(kernix_grpc_headers PRIVATE kernix_grpc)

if(KERNIX_BUILD_TESTS)
  kernix_precompile(kernix_test_headers <gmock/gmock.h> <gtest/gtest.h>)
  target_link_libraries(kernix_test_headers PRIVATE GTest::gmock GTest::gtest)
  kernix_compile_as_test(kernix_test_headers)
endif()
