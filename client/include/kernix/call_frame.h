// SPDX-License-Identifier: Apache-2.0
//
// Calls a handler from C++ without XLA: builds the call frame that an XLA runtime would pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "kernix/module.h"

namespace kernix {

// Element types, with the values of XLA_FFI_DataType.
enum class DataType : int {
  kBool = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kUInt8 = 6,
  kUInt16 = 7,
  kUInt32 = 8,
  kUInt64 = 9,
  kFloat16 = 10,
  kFloat32 = 11,
  kFloat64 = 12,
  kComplex64 = 15,
  kBFloat16 = 16,
  kToken = 17,  // for `arg.token` and `ret.token`: has no data and no shape
  kComplex128 = 18,
  kFloat8E5M2 = 19,
  kFloat8E4M3FN = 20,
  kInt4 = 21,  // types of less than a byte are packed; the lowest bits hold the first element
  kUInt4 = 22,
  kFloat8E4M3B11FNUZ = 23,
  kFloat8E5M2FNUZ = 24,
  kFloat8E4M3FNUZ = 25,
  kInt2 = 26,
  kUInt2 = 27,
  kFloat8E4M3 = 28,
  kFloat8E3M4 = 29,
  kInt1 = 30,
  kUInt1 = 31,
  kFloat4E2M1FN = 32,
  kFloat8E8M0FNU = 33,
};

// A scalar, a string, or an array (flattened).
using AttributeValue =
    std::variant<bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float, double,
                 std::string, std::vector<int8_t>, std::vector<int16_t>, std::vector<int32_t>, std::vector<int64_t>,
                 std::vector<uint8_t>, std::vector<uint16_t>, std::vector<uint32_t>, std::vector<uint64_t>,
                 std::vector<float>, std::vector<double>>;

// Provides the scratch memory of CUDA handlers. Set both functions. `allocate` returns null if there is no memory.
// `free` is called when the handler's function has returned, while its kernels may still be running on the stream.
struct DeviceMemory {
  std::function<void*(size_t bytes)> allocate;
  std::function<void(void* data, size_t bytes)> free;
};

// Collects buffers and attributes, then calls a handler. The caller owns the data and must keep it until Call()
// returns. Arrays are row-major.
class CallFrame {
 public:
  CallFrame();
  ~CallFrame();
  CallFrame(CallFrame&&) noexcept;
  CallFrame& operator=(CallFrame&&) noexcept;

  CallFrame& AddArgument(const void* data, DataType type, std::vector<int64_t> shape);
  CallFrame& AddResult(void* data, DataType type, std::vector<int64_t> shape);
  CallFrame& AddAttribute(std::string name, AttributeValue value);
  // For CUDA handlers: a cudaStream_t. Scratch memory then comes from the current device, through the driver's
  // stream-ordered allocator.
  CallFrame& SetStream(void* stream);
  // Sets the value of `device_ordinal`; the default is 0. With SetStream(), this device is current during Call().
  CallFrame& SetDeviceOrdinal(int ordinal);
  // Sets another source of scratch memory.
  CallFrame& SetDeviceMemory(DeviceMemory memory);

  // Calls `handler` once, in this thread. An XLA error of the handler becomes a status with the same code and message.
  absl::Status Call(Handler handler) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernix
