# SPDX-License-Identifier: Apache-2.0
#
# kernix_open_room(TARGET FOLDER)
# Lets TARGET, and targets that link it, include "FOLDER/...", through <build>/rooms/TARGET, which contains only a link
# to that folder. No target has the repository's root as an include folder, so a source can include only from rooms that
# its target links. docs/architecture.md lists the allowed links.
#
# kernix_add_room(TARGET FOLDER [GRPC] [SOURCES file...] [LINKS library...] [PRIVATE_LINKS library...] [PROTO name...])
# Adds the static library of a room. PROTO: compiles each FOLDER/name.proto, whose generated header is
# "FOLDER/name.pb.h"; other rooms can include it only if TARGET links TARGET_messages PUBLIC. GRPC: most of the room's
# sources include gRPC's headers.
function(kernix_open_room target folder)
  set(rooms "${PROJECT_BINARY_DIR}/rooms/${target}")
  cmake_path(GET folder PARENT_PATH parent)
  file(MAKE_DIRECTORY "${rooms}/${parent}")
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${folder}" "${rooms}/${folder}" SYMBOLIC)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${rooms}>)
  else()
    target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${rooms}>)
  endif()
endfunction()

# Generated code does not meet kernix's warning settings, so it is a separate library.
function(kernix_add_messages target folder)
  set(generated "${PROJECT_BINARY_DIR}/rooms/${target}")
  file(MAKE_DIRECTORY "${generated}")
  foreach(name IN LISTS ARGN)
    set(proto ${folder}/${name})
    add_custom_command(
      OUTPUT ${generated}/${proto}.pb.cc ${generated}/${proto}.pb.h
      COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR} --proto_path=${PROJECT_SOURCE_DIR}/proto
              --cpp_out=${generated} ${proto}.proto
      DEPENDS ${PROJECT_SOURCE_DIR}/${proto}.proto ${PROJECT_SOURCE_DIR}/proto/kernix/v1/kernix.proto
      VERBATIM)
    list(APPEND sources ${generated}/${proto}.pb.cc)
  endforeach()
  add_library(${target} STATIC ${sources})
  target_include_directories(${target} SYSTEM PUBLIC ${generated})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PUBLIC kernix_proto)
endfunction()

function(kernix_add_room target folder)
  cmake_parse_arguments(ARG "GRPC" "" "SOURCES;LINKS;PRIVATE_LINKS;PROTO" ${ARGN})
  add_library(${target} STATIC ${ARG_SOURCES})
  kernix_open_room(${target} ${folder})
  target_link_libraries(${target} PUBLIC kernix_settings ${ARG_LINKS} PRIVATE ${ARG_PRIVATE_LINKS})
  if(ARG_GRPC)
    target_precompile_headers(${target} REUSE_FROM kernix_grpc_headers)
  else()
    target_precompile_headers(${target} REUSE_FROM kernix_headers)
  endif()
  if(ARG_PROTO)
    kernix_add_messages(${target}_messages ${folder} ${ARG_PROTO})
    target_link_libraries(${target} PRIVATE ${target}_messages)
  endif()
endfunction()
