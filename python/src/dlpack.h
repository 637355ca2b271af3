// SPDX-License-Identifier: Apache-2.0
//
// The structures of DLPack, for a consumer: version 1 (`DLManagedTensorVersioned`, in a capsule named
// "dltensor_versioned") and the version before it (`DLManagedTensor`, "dltensor"). Source: dmlc/dlpack,
// include/dlpack/dlpack.h.
#pragma once

#include <cstdint>

namespace kernix::python::dlpack {

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

}  // namespace kernix::python::dlpack
