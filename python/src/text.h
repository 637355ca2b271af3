// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <string_view>
#include <vector>

namespace kernix::python {

// A str of text that a compiler or a file name made: bytes that are no UTF-8 become U+FFFD instead of an exception.
inline pybind11::str ToPython(std::string_view text) {
  PyObject* decoded = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (decoded == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::str>(decoded);
}

// Paths, as os.fsdecode() makes them: os.stat() finds them again whatever bytes they are.
inline pybind11::list PathsToPython(const std::vector<std::string>& paths) {
  pybind11::list list;
  for (const std::string& path : paths) {
    PyObject* decoded = PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size()));
    if (decoded == nullptr) throw pybind11::error_already_set();
    list.append(pybind11::reinterpret_steal<pybind11::str>(decoded));
  }
  return list;
}

}  // namespace kernix::python
