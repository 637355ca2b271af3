# SPDX-License-Identifier: Apache-2.0
#
# kernix_install_configured(INPUT DESTINATION NAME)
# Installs INPUT as DESTINATION/NAME, with @CMAKE_INSTALL_PREFIX@ and the other variables below replaced at installation,
# because `cmake --install --prefix` may name another prefix than the configuration.
function(kernix_install_configured input destination name)
  cmake_path(ABSOLUTE_PATH input BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  set(output "${CMAKE_CURRENT_BINARY_DIR}/installed/${destination}/${name}")
  string(CONCAT script
    "set(PROJECT_VERSION \"${PROJECT_VERSION}\")\n"
    "set(PROJECT_DESCRIPTION \"${PROJECT_DESCRIPTION}\")\n"
    "set(CMAKE_INSTALL_LIBDIR \"${CMAKE_INSTALL_LIBDIR}\")\n"
    "set(CMAKE_INSTALL_INCLUDEDIR \"${CMAKE_INSTALL_INCLUDEDIR}\")\n"
    "set(CMAKE_INSTALL_FULL_BINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")\n"
    "set(CMAKE_INSTALL_FULL_DOCDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}\")\n"
    "configure_file(\"${input}\" \"${output}\" @ONLY)\n")
  install(CODE "${script}")
  install(FILES "${output}" DESTINATION "${destination}")
endfunction()

# kernix_install_output(DESTINATION NAME PROGRAM [ARGUMENT...])
# Installs as DESTINATION/NAME what PROGRAM, a target, prints. The build writes it.
function(kernix_install_output destination name program)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/output/${destination}/${name}")
  add_custom_command(OUTPUT "${output}" COMMAND "${program}" ${ARGN} > "${output}" DEPENDS "${program}" VERBATIM)
  file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/output/${destination}")
  string(MAKE_C_IDENTIFIER "output_of_${program}_${ARGN}" target)
  add_custom_target(${target} ALL DEPENDS "${output}")
  install(FILES "${output}" DESTINATION "${destination}")
endfunction()

# kernix_install_manual(PROGRAM SECTION SEE_ALSO)
# Installs a page for man(1) of PROGRAM, a target, made from its texts of --help.
function(kernix_install_manual program section see_also)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${program}.${section}")
  set(script "${PROJECT_SOURCE_DIR}/cmake/manual.sh")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${script}" ${section} "${see_also}" ${PROJECT_VERSION} ${program}
      ${CMAKE_CROSSCOMPILING_EMULATOR} "$<TARGET_FILE:${program}>" > "${output}"
    DEPENDS ${program} "${script}" VERBATIM)
  add_custom_target(manual_of_${program} ALL DEPENDS "${output}")
  install(FILES "${output}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}")
endfunction()
