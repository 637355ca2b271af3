// SPDX-License-Identifier: Apache-2.0
#include "kernix/call_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kernel/brainevent/internal/ffi_abi.h"

namespace kernix {
namespace {

namespace abi = kernix_ffi_abi;
using ::testing::HasSubstr;

abi::CallFrame* Abi(XLA_FFI_CallFrame* frame) { return reinterpret_cast<abi::CallFrame*>(frame); }
XLA_FFI_Error* Xla(abi::Error* error) { return reinterpret_cast<XLA_FFI_Error*>(error); }

abi::Error* Fail(const abi::Api* api, abi::ErrorCode code, const char* message) {
  abi::ErrorCreateArgs args = {sizeof(args), nullptr, message, code};
  return api->error_create(&args);
}

// out = scale * (a + b), all of rank 2.
XLA_FFI_Error* ScaledSum(XLA_FFI_CallFrame* xla_frame) {
  const abi::CallFrame& frame = *Abi(xla_frame);
  if (frame.stage != abi::kStageExecute) return Xla(Fail(frame.api, abi::kInternal, "stage"));
  if (frame.args.size != 2 || frame.rets.size != 1) return Xla(Fail(frame.api, abi::kInvalidArgument, "arity"));
  const auto* a = static_cast<const abi::Buffer*>(frame.args.buffers[0]);
  const auto* b = static_cast<const abi::Buffer*>(frame.args.buffers[1]);
  const auto* out = static_cast<const abi::Buffer*>(frame.rets.buffers[0]);
  if (a->dtype != abi::kF32 || a->rank != 2 || frame.args.types[0] != abi::kBuffer) {
    return Xla(Fail(frame.api, abi::kInvalidArgument, "a wants rank 2 of float32"));
  }
  const auto* scale = static_cast<const abi::Scalar*>(frame.attributes.values[0]);
  for (int64_t i = 0; i < a->dims[0] * a->dims[1]; ++i) {
    static_cast<float*>(out->data)[i] =
        *static_cast<float*>(scale->value) * (static_cast<float*>(a->data)[i] + static_cast<float*>(b->data)[i]);
  }
  return nullptr;
}

TEST(CallFrameTest, PassesBuffersAndAttributes) {
  const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {10, 20, 30, 40, 50, 60};
  float out[6] = {};
  CallFrame frame;
  frame.AddArgument(a, DataType::kFloat32, {2, 3}).AddArgument(b, DataType::kFloat32, {2, 3});
  frame.AddResult(out, DataType::kFloat32, {2, 3}).AddAttribute("scale", 0.5f);
  ASSERT_TRUE(frame.Call(ScaledSum).ok());
  EXPECT_THAT(out, ::testing::ElementsAre(5.5f, 11.f, 16.5f, 22.f, 27.5f, 33.f));
}

TEST(CallFrameTest, DataTypesAreThoseOfTheAbi) {
  const std::vector<std::pair<DataType, abi::DataType>> types = {
      {DataType::kBool, abi::kPred},
      {DataType::kInt8, abi::kS8},
      {DataType::kInt16, abi::kS16},
      {DataType::kInt32, abi::kS32},
      {DataType::kInt64, abi::kS64},
      {DataType::kUInt8, abi::kU8},
      {DataType::kUInt16, abi::kU16},
      {DataType::kUInt32, abi::kU32},
      {DataType::kUInt64, abi::kU64},
      {DataType::kFloat16, abi::kF16},
      {DataType::kFloat32, abi::kF32},
      {DataType::kFloat64, abi::kF64},
      {DataType::kComplex64, abi::kC64},
      {DataType::kBFloat16, abi::kBF16},
      {DataType::kComplex128, abi::kC128},
      {DataType::kFloat8E5M2, abi::kF8E5M2},
      {DataType::kFloat8E4M3FN, abi::kF8E4M3FN},
      {DataType::kInt4, abi::kS4},
      {DataType::kUInt4, abi::kU4},
      {DataType::kFloat8E4M3B11FNUZ, abi::kF8E4M3B11FNUZ},
      {DataType::kFloat8E5M2FNUZ, abi::kF8E5M2FNUZ},
      {DataType::kFloat8E4M3FNUZ, abi::kF8E4M3FNUZ},
      {DataType::kInt2, abi::kS2},
      {DataType::kUInt2, abi::kU2},
      {DataType::kFloat8E4M3, abi::kF8E4M3},
      {DataType::kFloat8E3M4, abi::kF8E3M4},
      {DataType::kInt1, abi::kS1},
      {DataType::kUInt1, abi::kU1},
      {DataType::kFloat4E2M1FN, abi::kF4E2M1FN},
      {DataType::kFloat8E8M0FNU, abi::kF8E8M0FNU},
  };
  for (const auto& [type, code] : types) EXPECT_EQ(static_cast<uint32_t>(type), static_cast<uint32_t>(code));
}

TEST(CallFrameTest, AnErrorComesBackWithCodeAndMessage) {
  const double a[] = {1};
  CallFrame frame;
  frame.AddArgument(a, DataType::kFloat64, {1})
      .AddArgument(a, DataType::kFloat64, {1})
      .AddResult(nullptr, DataType::kFloat32, {0});
  const absl::Status status = frame.Call(ScaledSum);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "a wants rank 2 of float32");
}

TEST(CallFrameTest, AttributesAreSortedAndTyped) {
  const auto check = [](XLA_FFI_CallFrame* xla_frame) -> XLA_FFI_Error* {
    const abi::CallFrame& frame = *Abi(xla_frame);
    std::string seen;
    for (int64_t i = 0; i < frame.attributes.size; ++i) {
      const abi::ByteSpan& name = *frame.attributes.names[i];
      const auto* scalar = static_cast<const abi::Scalar*>(frame.attributes.values[i]);
      if (frame.attributes.types[i] != abi::kAttributeScalar) seen += "?";
      seen += std::string(name.ptr, name.len) + ":" + std::to_string(scalar->dtype) + " ";
    }
    return Xla(Fail(frame.api, abi::kUnavailable, seen.c_str()));
  };
  CallFrame frame;
  frame.AddAttribute("zeta", int64_t{1})
      .AddAttribute("alpha", true)
      .AddAttribute("mid", uint16_t{2})
      .AddAttribute("d", 1.0);
  EXPECT_EQ(frame.Call(check).message(), "alpha:1 d:12 mid:7 zeta:5 ");
}

TEST(CallFrameTest, RefusesTheSameAttributeTwice) {
  CallFrame frame;
  frame.AddAttribute("n", 1).AddAttribute("n", 2);
  EXPECT_THAT(frame.Call(ScaledSum).ToString(), HasSubstr("'n' was added twice"));
}

// Reports the stream. If there is none, as on a CPU, destroys the error.
XLA_FFI_Error* StreamProbe(XLA_FFI_CallFrame* xla_frame) {
  const abi::CallFrame& frame = *Abi(xla_frame);
  abi::StreamGetArgs get = {sizeof(get), nullptr, frame.ctx, nullptr};
  abi::Error* error = frame.api->stream_get(&get);
  if (error == nullptr)
    return get.stream == reinterpret_cast<void*>(&StreamProbe) ? nullptr
                                                               : Xla(Fail(frame.api, abi::kInternal, "wrong stream"));
  abi::ErrorGetMessageArgs message = {sizeof(message), nullptr, error, nullptr};
  frame.api->error_get_message(&message);
  abi::Error* mine = Fail(frame.api, abi::kNotFound, message.message);
  abi::ErrorDestroyArgs destroy = {sizeof(destroy), nullptr, error};
  frame.api->error_destroy(&destroy);
  return Xla(mine);
}

TEST(CallFrameTest, HasAStreamWhenOneWasSet) {
  CallFrame frame;
  EXPECT_EQ(frame.Call(StreamProbe).code(), absl::StatusCode::kNotFound);
  frame.SetStream(reinterpret_cast<void*>(&StreamProbe));
  EXPECT_TRUE(frame.Call(StreamProbe).ok());
}

// Describes an attribute as the handler sees it: its kind and its content.
XLA_FFI_Error* AttributeProbe(XLA_FFI_CallFrame* xla_frame) {
  const abi::CallFrame& frame = *Abi(xla_frame);
  std::string seen;
  for (int64_t i = 0; i < frame.attributes.size; ++i) {
    if (frame.attributes.types[i] == abi::kAttributeString) {
      const auto& text = *static_cast<const abi::ByteSpan*>(frame.attributes.values[i]);
      seen += "string " + std::string(text.ptr, text.len) + ";";
    } else if (frame.attributes.types[i] == abi::kAttributeArray) {
      const auto& array = *static_cast<const abi::Array*>(frame.attributes.values[i]);
      seen += std::to_string(array.dtype) + "[" + std::to_string(array.size) + "];";
      if (array.dtype == abi::kF32) seen += std::to_string(static_cast<const float*>(array.data)[1]) + ";";
    }
  }
  return Xla(Fail(frame.api, abi::kUnavailable, seen.c_str()));
}

TEST(CallFrameTest, PassesStringsAndArrays) {
  CallFrame frame;
  frame.AddAttribute("a", "text").AddAttribute("b", std::vector<float>{1, 2.5f});
  frame.AddAttribute("c", std::vector<int64_t>{}).AddAttribute("d", std::string("of its own"));
  EXPECT_EQ(frame.Call(AttributeProbe).message(), "string text;11[2];2.500000;5[0];string of its own;");
}

// Allocates 24 bytes on the device twice, frees the first, and reports the device ordinal.
XLA_FFI_Error* DeviceProbe(XLA_FFI_CallFrame* xla_frame) {
  const abi::CallFrame& frame = *Abi(xla_frame);
  abi::DeviceOrdinalGetArgs ordinal = {sizeof(ordinal), nullptr, frame.ctx, -1};
  if (abi::Error* error = frame.api->device_ordinal_get(&ordinal)) return Xla(error);
  abi::DeviceMemoryAllocateArgs first = {sizeof(first), nullptr, frame.ctx, 24, 16, nullptr};
  if (abi::Error* error = frame.api->device_memory_allocate(&first)) return Xla(error);
  abi::DeviceMemoryFreeArgs free = {sizeof(free), nullptr, frame.ctx, 24, first.data};
  if (abi::Error* error = frame.api->device_memory_free(&free)) return Xla(error);
  return Xla(Fail(frame.api, abi::kUnavailable, std::to_string(ordinal.device_ordinal).c_str()));
}

TEST(CallFrameTest, HasADeviceAndItsMemory) {
  CallFrame frame;
  EXPECT_THAT(frame.Call(DeviceProbe).ToString(), HasSubstr("no scratch memory: SetStream(), or SetDeviceMemory()"));
  std::string log;
  char memory[24];
  frame.SetDeviceOrdinal(3).SetDeviceMemory({
      .allocate = [&](size_t bytes) { return log += "+" + std::to_string(bytes), memory; },
      .free = [&](void* data, size_t bytes) { log += (data == memory ? "-" : "?") + std::to_string(bytes); },
  });
  EXPECT_EQ(frame.Call(DeviceProbe).message(), "3");
  EXPECT_EQ(log, "+24-24");
  frame.SetDeviceMemory({.allocate = [](size_t) { return nullptr; }, .free = [](void*, size_t) {}});
  EXPECT_EQ(frame.Call(DeviceProbe).code(), absl::StatusCode::kResourceExhausted);
}

TEST(CallFrameTest, ANullHandlerIsAnError) { EXPECT_FALSE(CallFrame().Call(nullptr).ok()); }

TEST(CallFrameTest, CanBeCalledAgainAndMoved) {
  const float a[] = {1}, b[] = {2};
  float out[1] = {};
  CallFrame first;
  first.AddArgument(a, DataType::kFloat32, {1, 1}).AddArgument(b, DataType::kFloat32, {1, 1});
  first.AddResult(out, DataType::kFloat32, {1, 1}).AddAttribute("scale", 2.0f);
  const CallFrame second = std::move(first);
  ASSERT_TRUE(second.Call(ScaledSum).ok());
  out[0] = 0;
  ASSERT_TRUE(second.Call(ScaledSum).ok());
  EXPECT_EQ(out[0], 6.0f);
}

}  // namespace
}  // namespace kernix
