# SPDX-License-Identifier: Apache-2.0
#
# kernix_add_test(NAME SOURCES file... [DEPENDS library...] [LABELS label...])
# A GoogleTest program; each of its tests is a CTest test. Labels: unit (default), integration, fault.
function(kernix_add_test name)
  if(NOT KERNIX_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE kernix_settings kernix_tests ${ARG_DEPENDS} GTest::gmock GTest::gtest GTest::gtest_main)
  gtest_discover_tests(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 300 DISCOVERY_TIMEOUT 60)
endfunction()

# Lets a test include "tests/..." and, where it looks at them, the kernel headers.
add_library(kernix_tests INTERFACE)
kernix_open_room(kernix_tests tests)
kernix_open_room(kernix_tests kernel)
