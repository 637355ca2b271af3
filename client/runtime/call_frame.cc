// SPDX-License-Identifier: Apache-2.0
#include "kernix/call_frame.h"

#include <algorithm>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "client/runtime/cuda_driver.h"
#include "common/base/strings.h"
#include "kernel/brainevent/internal/ffi_abi.h"

namespace kernix {
namespace {

namespace abi = kernix_ffi_abi;

// The types behind the ABI's opaque types on this side.
struct Error {
  abi::ErrorCode code;
  std::string message;
};

struct Context {
  bool has_stream = false;
  void* stream = nullptr;
  std::optional<int> device_ordinal;
  DeviceMemory device_memory = {};
};

abi::Error* ToAbi(Error* error) { return reinterpret_cast<abi::Error*>(error); }
abi::Error* ToAbi(const absl::Status& status) {
  return ToAbi(new Error{static_cast<abi::ErrorCode>(status.code()), std::string(status.message())});
}
Error* FromAbi(abi::Error* error) { return reinterpret_cast<Error*>(error); }

abi::Error* CreateError(abi::ErrorCreateArgs* args) {
  return ToAbi(new Error{args->errc, args->message == nullptr ? "" : args->message});
}

void GetErrorMessage(abi::ErrorGetMessageArgs* args) { args->message = FromAbi(args->error)->message.c_str(); }

void DestroyError(abi::ErrorDestroyArgs* args) { delete FromAbi(args->error); }

abi::Error* GetStream(abi::StreamGetArgs* args) {
  const auto* context = reinterpret_cast<const Context*>(args->ctx);
  if (!context->has_stream) return ToAbi(new Error{abi::kUnimplemented, "this call frame has no stream: SetStream()"});
  args->stream = context->stream;
  return nullptr;
}

abi::Error* OutOfMemory(size_t size) {
  return ToAbi(new Error{abi::kResourceExhausted, StrCat("no device memory for ", size, " bytes of scratch")});
}

// Allocates memory from the caller's DeviceMemory, or else from the driver, ordered by the stream.
abi::Error* Allocate(abi::DeviceMemoryAllocateArgs* args) {
  const auto* context = reinterpret_cast<const Context*>(args->ctx);
  if (context->device_memory.allocate) {
    args->data = context->device_memory.allocate(args->size);
    return args->data == nullptr ? OutOfMemory(args->size) : nullptr;
  }
  if (!context->has_stream) {
    return ToAbi(new Error{abi::kUnimplemented,
                           "this call frame has no scratch memory: SetStream(), or "
                           "SetDeviceMemory()"});
  }
  const absl::StatusOr<void*> data = AllocateDeviceMemory(args->size, context->stream);
  if (!data.ok()) return ToAbi(data.status());
  args->data = *data;
  return nullptr;
}

abi::Error* Free(abi::DeviceMemoryFreeArgs* args) {
  const auto* context = reinterpret_cast<const Context*>(args->ctx);
  if (context->device_memory.allocate) {
    context->device_memory.free(args->data, args->size);
    return nullptr;
  }
  const absl::Status status = FreeDeviceMemory(args->data, context->stream);
  return status.ok() ? nullptr : ToAbi(status);
}

abi::Error* GetDeviceOrdinal(abi::DeviceOrdinalGetArgs* args) {
  args->device_ordinal = reinterpret_cast<const Context*>(args->ctx)->device_ordinal.value_or(0);
  return nullptr;
}

// Functions that this side lacks are null.
const abi::Api& TheApi() {
  static const abi::Api api = [] {
    abi::Api made = {};
    made.struct_size = sizeof(abi::Api);
    made.api_version = {sizeof(abi::ApiVersion), nullptr, abi::kApiMajor, abi::kApiMinor};
    made.error_create = CreateError;
    made.error_get_message = GetErrorMessage;
    made.error_destroy = DestroyError;
    made.stream_get = GetStream;
    made.device_memory_allocate = Allocate;
    made.device_memory_free = Free;
    made.device_ordinal_get = GetDeviceOrdinal;
    return made;
  }();
  return api;
}

struct BufferData {
  void* data;
  DataType type;
  std::vector<int64_t> shape;
};

// The ABI's view of a list of buffers. Points into `buffers` and into itself.
class BufferTable {
 public:
  explicit BufferTable(const std::vector<BufferData>& buffers) {
    abi_buffers_.reserve(buffers.size());
    for (const BufferData& buffer : buffers) {
      abi_buffers_.push_back({sizeof(abi::Buffer), nullptr, static_cast<abi::DataType>(buffer.type), buffer.data,
                              static_cast<int64_t>(buffer.shape.size()), const_cast<int64_t*>(buffer.shape.data())});
      pointers_.push_back(&abi_buffers_.back());
    }
    tags_.assign(buffers.size(), abi::kBuffer);
  }
  BufferTable(const BufferTable&) = delete;
  BufferTable& operator=(const BufferTable&) = delete;

  abi::Buffers View() {
    return {sizeof(abi::Buffers), nullptr, static_cast<int64_t>(pointers_.size()), tags_.data(), pointers_.data()};
  }

 private:
  std::vector<abi::Buffer> abi_buffers_;
  std::vector<void*> pointers_;
  std::vector<abi::BufferTag> tags_;
};

// Sorted by name, as the ABI requires.
using AttributeMap = std::map<std::string, AttributeValue>;

constexpr abi::DataType TypeOf(bool) { return abi::kPred; }
constexpr abi::DataType TypeOf(int8_t) { return abi::kS8; }
constexpr abi::DataType TypeOf(int16_t) { return abi::kS16; }
constexpr abi::DataType TypeOf(int32_t) { return abi::kS32; }
constexpr abi::DataType TypeOf(int64_t) { return abi::kS64; }
constexpr abi::DataType TypeOf(uint8_t) { return abi::kU8; }
constexpr abi::DataType TypeOf(uint16_t) { return abi::kU16; }
constexpr abi::DataType TypeOf(uint32_t) { return abi::kU32; }
constexpr abi::DataType TypeOf(uint64_t) { return abi::kU64; }
constexpr abi::DataType TypeOf(float) { return abi::kF32; }
constexpr abi::DataType TypeOf(double) { return abi::kF64; }

// The ABI's view of an attribute; one of the members is used.
struct AttributeView {
  abi::AttributeTag tag;
  abi::Scalar scalar = {};
  abi::ByteSpan text = {};
  abi::Array array = {};

  void* Value() {
    if (tag == abi::kAttributeString) return &text;
    if (tag == abi::kAttributeArray) return &array;
    return &scalar;
  }
};

template <typename T>
AttributeView ViewOf(const T& value) {
  return {.tag = abi::kAttributeScalar, .scalar = {TypeOf(value), const_cast<T*>(&value)}};
}

AttributeView ViewOf(const std::string& value) {
  return {.tag = abi::kAttributeString, .text = {value.data(), value.size()}};
}

template <typename T>
AttributeView ViewOf(const std::vector<T>& values) {
  return {.tag = abi::kAttributeArray, .array = {TypeOf(T()), values.size(), const_cast<T*>(values.data())}};
}

class AttributeTable {
 public:
  explicit AttributeTable(const AttributeMap& attributes) {
    names_.reserve(attributes.size());
    views_.reserve(attributes.size());
    for (const auto& [name, value] : attributes) {
      names_.push_back({name.data(), name.size()});
      views_.push_back(std::visit([](const auto& held) { return ViewOf(held); }, value));
      name_pointers_.push_back(&names_.back());
      value_pointers_.push_back(views_.back().Value());
      tags_.push_back(views_.back().tag);
    }
  }
  AttributeTable(const AttributeTable&) = delete;
  AttributeTable& operator=(const AttributeTable&) = delete;

  abi::Attributes View() {
    return {sizeof(abi::Attributes), nullptr, static_cast<int64_t>(tags_.size()), tags_.data(), name_pointers_.data(),
            value_pointers_.data()};
  }

 private:
  std::vector<abi::ByteSpan> names_;
  std::vector<AttributeView> views_;
  std::vector<abi::ByteSpan*> name_pointers_;
  std::vector<void*> value_pointers_;
  std::vector<abi::AttributeTag> tags_;
};

// Takes ownership of the error.
absl::Status StatusOf(abi::Error* abi_error) {
  if (abi_error == nullptr) return absl::OkStatus();
  const std::unique_ptr<Error> error(FromAbi(abi_error));
  const auto code = static_cast<absl::StatusCode>(error->code);
  return absl::Status(code == absl::StatusCode::kOk ? absl::StatusCode::kUnknown : code, error->message);
}

}  // namespace

struct CallFrame::Impl {
  std::vector<BufferData> arguments;
  std::vector<BufferData> results;
  AttributeMap attributes;
  std::string duplicate_attribute;
  Context context;
};

CallFrame::CallFrame() : impl_(std::make_unique<Impl>()) {}
CallFrame::~CallFrame() = default;
CallFrame::CallFrame(CallFrame&&) noexcept = default;
CallFrame& CallFrame::operator=(CallFrame&&) noexcept = default;

CallFrame& CallFrame::AddArgument(const void* data, DataType type, std::vector<int64_t> shape) {
  impl_->arguments.push_back({const_cast<void*>(data), type, std::move(shape)});
  return *this;
}

CallFrame& CallFrame::AddResult(void* data, DataType type, std::vector<int64_t> shape) {
  impl_->results.push_back({data, type, std::move(shape)});
  return *this;
}

CallFrame& CallFrame::AddAttribute(std::string name, AttributeValue value) {
  const auto [entry, is_new] = impl_->attributes.emplace(std::move(name), std::move(value));
  if (!is_new) impl_->duplicate_attribute = entry->first;
  return *this;
}

CallFrame& CallFrame::SetStream(void* stream) {
  impl_->context.has_stream = true;
  impl_->context.stream = stream;
  return *this;
}

CallFrame& CallFrame::SetDeviceOrdinal(int ordinal) {
  impl_->context.device_ordinal = ordinal;
  return *this;
}

CallFrame& CallFrame::SetDeviceMemory(DeviceMemory memory) {
  impl_->context.device_memory = std::move(memory);
  return *this;
}

absl::Status CallFrame::Call(Handler handler) const {
  if (handler == nullptr) return absl::InvalidArgumentError("CallFrame::Call(): the handler is null");
  if (!impl_->duplicate_attribute.empty()) {
    return absl::InvalidArgumentError(StrCat("attribute '", impl_->duplicate_attribute, "' was added twice"));
  }
  CurrentDevice device(TheCudaDriver());
  if (const Context& context = impl_->context; context.has_stream && context.device_ordinal) {
    if (absl::Status status = device.Enter(*context.device_ordinal); !status.ok()) return status;
  }
  BufferTable arguments(impl_->arguments);
  BufferTable results(impl_->results);
  AttributeTable attributes(impl_->attributes);
  abi::CallFrame frame = {
      .struct_size = sizeof(abi::CallFrame),
      .extension_start = nullptr,
      .api = &TheApi(),
      .ctx = reinterpret_cast<abi::ExecutionContext*>(&impl_->context),
      .stage = abi::kStageExecute,
      .args = arguments.View(),
      .rets = results.View(),
      .attributes = attributes.View(),
      .future = nullptr,
  };
  return StatusOf(reinterpret_cast<abi::Error*>(handler(reinterpret_cast<XLA_FFI_CallFrame*>(&frame))));
}

}  // namespace kernix
