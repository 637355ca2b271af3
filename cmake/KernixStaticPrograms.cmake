# SPDX-License-Identifier: Apache-2.0
#
# kernix_link_from_archives(PROGRAM...)
# Makes programs depend only on libc. The wheel needs this, because it runs where gRPC is not installed or has another
# version. Such programs also start in half the time. The targets still decide which libraries are linked, and how; see
# link_from_archives.sh.
function(kernix_link_from_archives)
  set(script "${PROJECT_SOURCE_DIR}/cmake/link_from_archives.sh")
  get_target_property(directory kernix_sd_daemon BINARY_DIR)
  set(sd_daemon "${directory}/libkernix_sd_daemon.a")
  foreach(program IN LISTS ARGN)
    set_target_properties(${program} PROPERTIES CXX_LINKER_LAUNCHER "${script};${sd_daemon}")
    set_property(TARGET ${program} APPEND PROPERTY LINK_DEPENDS "${script}" "${sd_daemon}")
    add_dependencies(${program} kernix_sd_daemon)
  endforeach()
endfunction()
