# SPDX-License-Identifier: Apache-2.0
#
# cmake -DSOURCE_DIR=... -DVERSION=... -DOUTPUT=FILE.cc -P BuildId.cmake
# Writes FILE.cc with the release and a digest over the names and contents of all sources of the product. It finds the
# sources at each build, so it needs no list of them. The file changes only if a source has changed.
cmake_minimum_required(VERSION 3.25)

set(folders common daemon client proto kernel python)
set(patterns *.cc *.h *.cuh *.py *.proto)
set(globs)
foreach(folder IN LISTS folders)
  foreach(pattern IN LISTS patterns)
    list(APPEND globs "${SOURCE_DIR}/${folder}/${pattern}")
  endforeach()
endforeach()

file(GLOB_RECURSE sources RELATIVE "${SOURCE_DIR}" ${globs})
list(FILTER sources EXCLUDE REGEX "_test\\.(cc|py)$|/__pycache__/|(^|/)examples/")
list(SORT sources)

set(listing "${VERSION}\n")
foreach(source IN LISTS sources)
  file(SHA256 "${SOURCE_DIR}/${source}" digest)
  string(APPEND listing "${digest} ${source}\n")
endforeach()
string(SHA256 build_id "${listing}")
string(SUBSTRING "${build_id}" 0 32 build_id)

file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[
#include "common/base/version.h"

namespace kernix {

const std::string& Version() {
  static const std::string version = "@VERSION@";
  return version;
}

const std::string& BuildId() {
  static const std::string build_id = "@build_id@";
  return build_id;
}

}  // namespace kernix
]])
