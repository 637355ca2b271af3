// SPDX-License-Identifier: Apache-2.0
//
// Calling a CPU handler from C++ without XLA: builds the call frame that an XLA runtime would pass.
#pragma once

#include <cstdint>
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
  kComplex128 = 18,
};

using AttributeValue =
    std::variant<bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float, double>;

// Collects buffers and attributes, then calls. Data stays the caller's and must live until Call() returns. Row-major.
class CallFrame {
 public:
  CallFrame();
  ~CallFrame();
  CallFrame(CallFrame&&) noexcept;
  CallFrame& operator=(CallFrame&&) noexcept;

  CallFrame& AddArgument(const void* data, DataType type, std::vector<int64_t> shape);
  CallFrame& AddResult(void* data, DataType type, std::vector<int64_t> shape);
  CallFrame& AddAttribute(std::string name, AttributeValue value);
  // For CUDA handlers: a cudaStream_t.
  CallFrame& SetStream(void* stream);

  // Calls `handler` once, in this thread. What it reports as an XLA error comes back as a status with its code and
  // message.
  absl::Status Call(Handler handler) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernix
