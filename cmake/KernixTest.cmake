# SPDX-License-Identifier: Apache-2.0
#
# kernix_add_test(NAME SOURCES file... [DEPENDS library...] [LABELS label...] [SHARDS n])
# Adds a GoogleTest program; each of its tests is a CTest test. With SHARDS, CTest runs the program as n processes
# instead, for tests that share an expensive set-up. Labels: unit (default), integration, fault.
#
# The target unit_tests builds the programs without other labels. Each is a single process, so sanitizers can check it.
if(KERNIX_BUILD_TESTS)
  add_custom_target(unit_tests)
endif()
function(kernix_add_test name)
  if(NOT KERNIX_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "SHARDS" "SOURCES;DEPENDS;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE kernix_settings kernix_tests ${ARG_DEPENDS} kernix_test_program GTest::gmock GTest::gtest GTest::gtest_main)
  kernix_compile_as_test(${name})
  if(ARG_LABELS STREQUAL unit)
    add_dependencies(unit_tests ${name})
  endif()
  if(ARG_SHARDS)
    math(EXPR last "${ARG_SHARDS} - 1")
    foreach(shard RANGE ${last})
      add_test(NAME ${name}.${shard} COMMAND ${name})
      # The longest test runs first, so that no core idles at the end.
      set_tests_properties(${name}.${shard} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 900 COST 30
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${shard}")
    endforeach()
    return()
  endif()
  gtest_discover_tests(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 300 DISCOVERY_TIMEOUT 60)
endfunction()

# Lets a test include "tests/..." and, if it needs them, the kernel headers.
add_library(kernix_tests INTERFACE)
kernix_open_room(kernix_tests tests)
kernix_open_room(kernix_tests kernel)
