// SPDX-License-Identifier: Apache-2.0
//
// Calls of handlers without XLA, on arrays that Python code has described.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kernix/call_frame.h"
#include "python/src/array_memory.h"
#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/gil.h"

namespace kernix::python {

namespace py = pybind11;

namespace {

using Array = std::tuple<uintptr_t, int, std::vector<int64_t>>;  // address, XLA_FFI_DataType, shape

void* Pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

AttributeValue ToArray(std::string_view type, const py::object& values) {
  if (type == "int8[]") return values.cast<std::vector<int8_t>>();
  if (type == "int16[]") return values.cast<std::vector<int16_t>>();
  if (type == "int32[]") return values.cast<std::vector<int32_t>>();
  if (type == "int64[]") return values.cast<std::vector<int64_t>>();
  if (type == "uint8[]") return values.cast<std::vector<uint8_t>>();
  if (type == "uint16[]") return values.cast<std::vector<uint16_t>>();
  if (type == "uint32[]") return values.cast<std::vector<uint32_t>>();
  if (type == "uint64[]") return values.cast<std::vector<uint64_t>>();
  if (type == "float32[]") return values.cast<std::vector<float>>();
  if (type == "float64[]") return values.cast<std::vector<double>>();
  throw py::type_error("attributes of type " + std::string(type) + " cannot be passed");
}

// Pass only values that `kernix/calling/attributes.py` has checked.
AttributeValue ToAttribute(std::string_view type, const py::object& value) {
  if (type == "bool") return value.cast<bool>();
  if (type == "int8") return value.cast<int8_t>();
  if (type == "int16") return value.cast<int16_t>();
  if (type == "int32") return value.cast<int32_t>();
  if (type == "int64") return value.cast<int64_t>();
  if (type == "uint8") return value.cast<uint8_t>();
  if (type == "uint16" || type == "float16" || type == "bfloat16") return value.cast<uint16_t>();
  if (type == "uint32") return value.cast<uint32_t>();
  if (type == "uint64") return value.cast<uint64_t>();
  if (type == "float32") return value.cast<float>();
  if (type == "float64") return value.cast<double>();
  if (type == "string") return value.cast<std::string>();
  return ToArray(type, value);
}

// `attributes` maps names to (type, value).
void AddAttributes(CallFrame& frame, const py::dict& attributes) {
  for (const auto& [name, attribute] : attributes) {
    const auto [type, value] = attribute.cast<std::pair<std::string_view, py::object>>();
    frame.AddAttribute(name.cast<std::string>(), ToAttribute(type, value));
  }
}

void Call(const CallFrame& frame, uintptr_t handler) {
  const absl::Status status = CallWithoutGil([&] { return frame.Call(reinterpret_cast<Handler>(handler)); });
  if (status.ok()) return;
  Raise(py::module_::import("kernix._errors").attr("KernelCallError")(ToPython(std::string(status.message()))));
}

void CallHandler(uintptr_t handler, const std::vector<Array>& arguments, const std::vector<Array>& results,
                 const py::dict& attributes, std::optional<uintptr_t> stream, std::optional<int> device) {
  CallFrame frame;
  for (const auto& [data, type, shape] : arguments)
    frame.AddArgument(Pointer(data), static_cast<DataType>(type), shape);
  for (const auto& [data, type, shape] : results) frame.AddResult(Pointer(data), static_cast<DataType>(type), shape);
  AddAttributes(frame, attributes);
  if (stream) frame.SetStream(Pointer(*stream));
  if (device) frame.SetDeviceOrdinal(*device);
  Call(frame, handler);
}

bool AddArguments(CallFrame& frame, const PlainArrays& arrays, const py::tuple& arguments) {
  for (const py::handle argument : arguments) {
    std::optional<PlainArray> array = arrays.Read(argument, false);
    if (!array) return false;
    frame.AddArgument(array->data, array->type, std::move(array->shape));
  }
  return true;
}

// Returns false if two results share memory.
bool AddResults(CallFrame& frame, const PlainArrays& arrays, const py::tuple& results) {
  std::vector<PlainArray> added;
  for (const py::handle result : results) {
    std::optional<PlainArray> array = arrays.Read(result, true);
    if (!array) return false;
    for (const PlainArray& other : added)
      if (array->Overlaps(other)) return false;
    frame.AddResult(array->data, array->type, array->shape);
    added.push_back(*std::move(array));
  }
  return true;
}

// The results of a call on plain arrays. Returns None, without calling, if an array is not plain. Also returns None if
// there are no arrays, because then nothing says in which memory the call should run.
py::object CallOnPlainArrays(const PlainArrays& arrays, uintptr_t handler, const py::tuple& arguments,
                             const std::optional<py::sequence>& outputs, const py::dict& attributes) {
  py::tuple results;  // a tuple, because another thread could empty a list during the call; it keeps the memory alive
  if (outputs) {
    results = py::tuple(*outputs);
  } else {
    const py::object result = arrays.MakeLike(arguments);
    if (!result) return py::none();
    results = py::make_tuple(result);
  }
  if (arguments.empty() && results.empty()) return py::none();
  CallFrame frame;
  if (!AddArguments(frame, arrays, arguments) || !AddResults(frame, arrays, results)) return py::none();
  AddAttributes(frame, attributes);
  Call(frame, handler);
  return results;
}

}  // namespace

void BindCall(py::module_& module) {
  py::class_<DlpackTensor>(module, "DlpackTensor")
      .def(py::init<const py::capsule&>(), py::arg("capsule"))
      .def_property_readonly("data", &DlpackTensor::data)
      .def_property_readonly("device", &DlpackTensor::device)
      .def_property_readonly("dtype", [](const DlpackTensor& self) { return py::tuple(py::cast(self.dtype())); })
      .def_property_readonly("shape", [](const DlpackTensor& self) { return py::tuple(py::cast(self.shape())); })
      .def_property_readonly("read_only", &DlpackTensor::is_read_only)
      .def_property_readonly("copied", &DlpackTensor::is_copied)
      .def_property_readonly("contiguous", &DlpackTensor::is_contiguous);
  py::class_<PlainArrays>(module, "PlainArrays")
      .def(py::init<py::object, py::object, py::dict>(), py::arg("ndarray"), py::arg("empty"), py::arg("types"))
      .def("call", &CallOnPlainArrays, py::arg("handler"), py::arg("arguments"), py::arg("outputs"),
           py::arg("attributes"));
  module.def("call_handler", &CallHandler, py::arg("handler"), py::arg("arguments"), py::arg("results"),
             py::arg("attributes"), py::arg("stream"), py::arg("device"));
}

}  // namespace kernix::python
