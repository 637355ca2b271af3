// SPDX-License-Identifier: Apache-2.0
//
// Calls of handlers without XLA. The memory of the arrays that Python passes to a call: NumPy's, read directly, and
// that of all others, through DLPack.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kernix/call_frame.h"
#include "python/src/bind.h"
#include "python/src/gil.h"

namespace kernix::python {

namespace py = pybind11;

namespace {

// The structures of DLPack, for a consumer: version 1 (`DLManagedTensorVersioned`, in a capsule named
// "dltensor_versioned") and the version before it (`DLManagedTensor`, "dltensor"). Source: dmlc/dlpack,
// include/dlpack/dlpack.h.
namespace dlpack {

struct Device {
  int32_t type;
  int32_t id;
};

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  int32_t rank;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major without gaps
  uint64_t byte_offset;
};

struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);  // may be null
};

struct Version {
  uint32_t major;
  uint32_t minor;
};

inline constexpr uint32_t kMajorVersion = 1;
inline constexpr uint64_t kReadOnly = 1;  // bits of ManagedVersioned::flags
inline constexpr uint64_t kIsCopied = 2;

struct ManagedVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned*);  // may be null
  uint64_t flags;
  Tensor tensor;
};

}  // namespace dlpack

// Memory that belongs to a NumPy array.
struct PlainArray {
  void* data;
  DataType type;
  std::vector<int64_t> shape;
  size_t bytes;

  bool Overlaps(const PlainArray& other) const {
    const auto begin = reinterpret_cast<uintptr_t>(data), other_begin = reinterpret_cast<uintptr_t>(other.data);
    return begin < other_begin + other.bytes && other_begin < begin + bytes;
  }
};

// NumPy arrays that the extension reads itself: of exactly the type `numpy.ndarray`, row-major, aligned, and of an
// element type that kernix/calling/arrays.py has already seen.
class PlainArrays {
 public:
  // `types` comes from kernix/calling/arrays.py. It maps a dtype, in this machine's byte order, to an XLA_FFI_DataType,
  // and it may grow later.
  PlainArrays(py::object ndarray, py::object empty, py::dict types)
      : ndarray_(std::move(ndarray)), empty_(std::move(empty)), types_(std::move(types)) {}

  // Returns nullopt if the array is not plain, or if it is read-only and `writable` is set.
  std::optional<PlainArray> Read(py::handle object, bool writable) const {
    if (py::type::handle_of(object).ptr() != ndarray_.ptr()) return std::nullopt;
    const auto array = py::reinterpret_borrow<py::array>(object);
    constexpr int kUsable = int{py::array::c_style} | int{py::detail::npy_api::NPY_ARRAY_ALIGNED_};
    if ((array.flags() & kUsable) != kUsable || (writable && !array.writeable())) return std::nullopt;
    PyObject* type = PyDict_GetItemWithError(types_.ptr(), array.dtype().ptr());
    if (type == nullptr) {
      if (PyErr_Occurred() != nullptr) throw py::error_already_set();
      return std::nullopt;
    }
    return PlainArray{.data = const_cast<void*>(array.data()),
                      .type = static_cast<DataType>(py::handle(type).cast<int>()),
                      .shape = {array.shape(), array.shape() + array.ndim()},
                      .bytes = static_cast<size_t>(array.nbytes())};
  }

  // Creates an array like `arguments`. Returns null if they are not plain or not alike.
  py::object MakeLike(const py::tuple& arguments) const {
    std::optional<PlainArray> first;
    for (const py::handle argument : arguments) {
      std::optional<PlainArray> array = Read(argument, false);
      if (!array || (first && (array->type != first->type || array->shape != first->shape))) return {};
      if (!first) first = std::move(array);
    }
    if (!first) return {};
    const py::handle like = arguments[0];
    return empty_(like.attr("shape"), like.attr("dtype"));
  }

 private:
  py::object ndarray_;
  py::object empty_;
  py::dict types_;
};

// An array of another library, received through DLPack. Keeps the memory alive. Destroy it with the GIL held.
class DlpackTensor {
 public:
  // Takes the tensor out of `capsule`, the result of `__dlpack__()`. Throws ValueError if it is not such a capsule, has
  // already been used, or has a version of DLPack that kernix does not support.
  explicit DlpackTensor(const py::capsule& capsule) {
    const char* name_or_null = capsule.name();
    const std::string_view name = name_or_null == nullptr ? "" : name_or_null;
    if (name == "dltensor") {
      TakeOver<dlpack::Managed>(capsule, "used_dltensor");
      return;
    }
    if (name != "dltensor_versioned") {
      throw py::value_error("has a __dlpack__() that returned a capsule named '" + std::string(name) +
                            "', which holds no tensor or has already been used");
    }
    const auto* managed = capsule.get_pointer<dlpack::ManagedVersioned>();
    if (managed->version.major != dlpack::kMajorVersion) {
      throw py::value_error("has a __dlpack__() that returned version " + std::to_string(managed->version.major) +
                            " of DLPack; kernix knows version 1");
    }
    flags_ = managed->flags;
    TakeOver<dlpack::ManagedVersioned>(capsule, "used_dltensor_versioned");
  }

  uintptr_t data() const { return reinterpret_cast<uintptr_t>(tensor_->data) + tensor_->byte_offset; }
  std::pair<int, int> device() const { return {tensor_->device.type, tensor_->device.id}; }
  // Code, bits, lanes.
  std::vector<int> dtype() const { return {tensor_->dtype.code, tensor_->dtype.bits, tensor_->dtype.lanes}; }
  std::vector<int64_t> shape() const { return {tensor_->shape, tensor_->shape + tensor_->rank}; }
  bool is_read_only() const { return (flags_ & dlpack::kReadOnly) != 0; }
  // Whether this is a copy instead of the array's own memory.
  bool is_copied() const { return (flags_ & dlpack::kIsCopied) != 0; }
  // Row-major without gaps.
  bool is_contiguous() const {
    if (tensor_->strides == nullptr) return true;
    int64_t expected = 1;
    bool gaps = false;
    for (int i = tensor_->rank - 1; i >= 0; --i) {
      if (tensor_->shape[i] == 0) return true;
      gaps = gaps || (tensor_->shape[i] != 1 && tensor_->strides[i] != expected);
      expected *= tensor_->shape[i];
    }
    return !gaps;
  }

 private:
  template <typename Managed>
  void TakeOver(const py::capsule& capsule, const char* used_name) {
    auto* managed = capsule.get_pointer<Managed>();
    if (PyCapsule_SetName(capsule.ptr(), used_name) != 0) throw py::error_already_set();
    owner_ = std::shared_ptr<Managed>(managed, [](Managed* taken) {
      if (taken->deleter != nullptr) taken->deleter(taken);
    });
    tensor_ = &managed->tensor;
  }

  std::shared_ptr<void> owner_;
  const dlpack::Tensor* tensor_ = nullptr;
  uint64_t flags_ = 0;
};

using Array = std::tuple<uintptr_t, int, std::vector<int64_t>>;  // address, XLA_FFI_DataType, shape

void* Pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

AttributeValue ToArray(std::string_view type, const py::object& values) {
  if (type == "int8[]") return values.cast<std::vector<int8_t>>();
  if (type == "int16[]") return values.cast<std::vector<int16_t>>();
  if (type == "int32[]") return values.cast<std::vector<int32_t>>();
  if (type == "int64[]") return values.cast<std::vector<int64_t>>();
  if (type == "uint8[]") return values.cast<std::vector<uint8_t>>();
  if (type == "uint16[]" || type == "float16[]" || type == "bfloat16[]") return values.cast<std::vector<uint16_t>>();
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
