// SPDX-License-Identifier: Apache-2.0
//
// The part of XLA's FFI C ABI, version 0.1, that a handler needs, declared in kernix' own namespace. A source may also
// include XLA's header xla/ffi/api/c_api.h. `daemon/language/write/ffi_abi_test.cc` compares sizes, offsets and
// constants of the two.
//
// Except for the end of Api, this header declares only what every jaxlib since 0.4.31 lays out in the same way. XLA's
// structs may continue after our last field. Every kernel compiles this header, so it is C++17 and includes only
// <stddef.h> and <stdint.h>.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include <stddef.h>
#include <stdint.h>

namespace kernix_ffi_abi {

inline constexpr int kApiMajor = 0;
inline constexpr int kApiMinor = 1;

// Opaque here.
struct Error;
struct ExecutionContext;
struct InternalApi;
struct Future;

enum ExtensionType : uint32_t { kExtensionMetadata = 1 };

// An element of the linked list that starts in a struct's `extension_start`.
struct ExtensionBase {
  size_t struct_size;
  ExtensionType type;
  ExtensionBase* next;
};

struct ApiVersion {
  size_t struct_size;
  ExtensionBase* extension_start;
  int major_version;
  int minor_version;
};

// The values of absl::StatusCode.
enum ErrorCode : uint32_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

struct ErrorCreateArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  const char* message;  // copied by the callee
  ErrorCode errc;
};
using ErrorCreate = Error*(ErrorCreateArgs*);

struct ErrorGetMessageArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  Error* error;
  const char* message;  // out
};
using ErrorGetMessage = void(ErrorGetMessageArgs*);

struct ErrorDestroyArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  Error* error;
};
using ErrorDestroy = void(ErrorDestroyArgs*);

enum DataType : uint32_t {
  kInvalid = 0,
  kPred = 1,
  kS8 = 2,
  kS16 = 3,
  kS32 = 4,
  kS64 = 5,
  kU8 = 6,
  kU16 = 7,
  kU32 = 8,
  kU64 = 9,
  kF16 = 10,
  kF32 = 11,
  kF64 = 12,
  kC64 = 15,
  kBF16 = 16,
  kToken = 17,
  kC128 = 18,
  kF8E5M2 = 19,
  kF8E4M3FN = 20,
  kS4 = 21,
  kU4 = 22,
  kF8E4M3B11FNUZ = 23,
  kF8E5M2FNUZ = 24,
  kF8E4M3FNUZ = 25,
  kS2 = 26,
  kU2 = 27,
  kF8E4M3 = 28,
  kF8E3M4 = 29,
  kS1 = 30,
  kU1 = 31,
  kF4E2M1FN = 32,
  kF8E8M0FNU = 33,
};

struct Buffer {
  size_t struct_size;
  ExtensionBase* extension_start;
  DataType dtype;
  void* data;
  int64_t rank;
  int64_t* dims;  // `rank` extents, in row-major order
};

// Arguments and results use the same tag.
enum BufferTag : uint32_t { kBuffer = 1 };

enum AttributeTag : uint32_t {
  kAttributeArray = 1,
  kAttributeDictionary = 2,
  kAttributeScalar = 3,
  kAttributeString = 4,
};

struct ByteSpan {
  const char* ptr;  // not null-terminated
  size_t len;
};

struct Scalar {
  DataType dtype;
  void* value;
};

struct Array {
  DataType dtype;
  size_t size;  // elements, flattened row-major
  void* data;
};

enum ExecutionStage : uint32_t {
  kStageInstantiate = 0,
  kStagePrepare = 1,
  kStageInitialize = 2,
  kStageExecute = 3,
};

// XLA_FFI_Args and XLA_FFI_Rets.
struct Buffers {
  size_t struct_size;
  ExtensionBase* extension_start;
  int64_t size;
  BufferTag* types;
  void** buffers;  // Buffer*
};

struct Attributes {
  size_t struct_size;
  ExtensionBase* extension_start;
  int64_t size;
  AttributeTag* types;
  ByteSpan** names;  // sorted
  void** values;     // depends on the type: a Scalar*, a ByteSpan*, ...
};

struct StreamGetArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  ExecutionContext* ctx;
  void* stream;  // out: a cudaStream_t
};
using StreamGet = Error*(StreamGetArgs*);

struct DeviceMemoryAllocateArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  ExecutionContext* ctx;
  size_t size;
  size_t alignment;
  void* data;  // out
};
using DeviceMemoryAllocate = Error*(DeviceMemoryAllocateArgs*);

struct DeviceMemoryFreeArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  ExecutionContext* ctx;
  size_t size;
  void* data;
};
using DeviceMemoryFree = Error*(DeviceMemoryFreeArgs*);

struct DeviceOrdinalGetArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  ExecutionContext* ctx;
  int32_t device_ordinal;  // out
};
using DeviceOrdinalGet = Error*(DeviceOrdinalGetArgs*);

// The beginning of XLA_FFI_Api, up to the last function that kernix uses. Fields after `stream_get` were added later:
// read them only if `struct_size` covers them. Up to jaxlib 0.5, `struct_size` does not. Since 0.6, all of them exist
// with this layout.
struct Api {
  size_t struct_size;
  ExtensionBase* extension_start;
  ApiVersion api_version;
  const InternalApi* internal_api;
  ErrorCreate* error_create;
  ErrorGetMessage* error_get_message;
  ErrorDestroy* error_destroy;
  void* handler_register;
  StreamGet* stream_get;
  void* type_register;
  void* execution_context_get;
  void* state_set;
  void* state_get;
  DeviceMemoryAllocate* device_memory_allocate;
  DeviceMemoryFree* device_memory_free;
  void* thread_pool_schedule;
  void* thread_pool_num_threads;
  void* future_create;
  void* future_set_available;
  void* future_set_error;
  void* run_id_get;
  DeviceOrdinalGet* device_ordinal_get;
};

// In older runtimes, this struct ends after `attributes`: never read `future`.
struct CallFrame {
  size_t struct_size;
  ExtensionBase* extension_start;
  const Api* api;
  ExecutionContext* ctx;
  ExecutionStage stage;
  Buffers args;
  Buffers rets;
  Attributes attributes;
  Future* future;
};

using Handler = Error*(CallFrame*);

inline constexpr uint32_t kCommandBufferCompatible = 1u << 0;

// Newer runtimes continue with a `state_type_id`. This struct deliberately omits it, because writing it would overrun
// older structs.
struct Metadata {
  size_t struct_size;
  ApiVersion api_version;
  uint32_t traits;
};

struct MetadataExtension {
  ExtensionBase base;
  Metadata* metadata;
};

}  // namespace kernix_ffi_abi
