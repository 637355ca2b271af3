# SPDX-License-Identifier: Apache-2.0
#
# The wheel's contents besides the package: the licences of the libraries inside it, as the distribution provides them.
# deploy/sbom.py takes their names from there.
string(REGEX MATCH "^[0-9]+" gcc "${CMAKE_CXX_COMPILER_VERSION}")
foreach(package IN ITEMS libstdc++-${gcc}-dev libabsl-dev libc-ares-dev libcli11-dev libevent-dev libgrpc-dev libminizip-dev libnghttp2-dev libprotobuf-dev libre2-dev libseccomp-dev libsqlite3-dev libssl-dev
                         libtomlplusplus-dev zlib1g-dev)
  set(copyright "/usr/share/doc/${package}/copyright")
  if(EXISTS "${copyright}")
    install(FILES "${copyright}" DESTINATION kernix/licenses RENAME "${package}.txt" COMPONENT python)
  else()
    message(WARNING "The wheel will lack the licence of ${package}: ${copyright} does not exist. Do not distribute it.")
  endif()
endforeach()
