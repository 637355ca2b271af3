// SPDX-License-Identifier: Apache-2.0
//
// Handlers of __global__ functions, which they launch on the stream of the call. The call's attributes say how: `grid`
// and `block`, an integer or an array of one to three; `shared`, bytes of dynamic shared memory, 0 if it is left out;
// `cluster`, like `grid`, and `cooperative`, a bool, which may be left out. The generated code includes this header
// only for such functions.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include <cuda_runtime.h>

#include "brainevent/internal/attributes.h"
#include "brainevent/internal/typed_arrays.h"
#include "brainevent/span.h"

namespace kernix_handler {

// The x, y and z of `grid`, `block` or `cluster`.
struct Sizes {
  int64_t values[3] = {1, 1, 1};
  int count = 0;  // how many the call gives; 0 if it leaves them out

  int64_t Product() const { return values[0] * values[1] * values[2]; }
  dim3 Dim3() const {
    return dim3(static_cast<unsigned>(values[0]), static_cast<unsigned>(values[1]), static_cast<unsigned>(values[2]));
  }
};

struct LaunchConfig {
  Sizes grid;
  Sizes block;
  Sizes cluster;
  int64_t shared = 0;
  bool cooperative = false;
};

// The range of an attribute of a launch: the largest value of each size.
struct SizeLimits {
  const char* name;
  int64_t most[3];
};

// CUDA's limits, of every device (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
inline constexpr SizeLimits kGridLimits = {"grid", {2147483647, 65535, 65535}};
inline constexpr SizeLimits kBlockLimits = {"block", {1024, 1024, 64}};
inline constexpr SizeLimits kClusterLimits = {"cluster", {2147483647, 65535, 65535}};
inline constexpr int64_t kMostThreads = 1024;
inline constexpr int64_t kPortableCluster = 8;  // blocks that a cluster may have on every device that has clusters

// "(4, 2, 1)"
struct SizesText {
  char text[72];
  KERNIX_COLD explicit SizesText(const Sizes& sizes) {
    __builtin_snprintf(text, sizeof(text), "(%lld, %lld, %lld)", static_cast<long long>(sizes.values[0]),
                       static_cast<long long>(sizes.values[1]), static_cast<long long>(sizes.values[2]));
  }
};

// The index of the attribute `name` of a call, or -1.
KERNIX_COLD inline int64_t FindAttribute(const ffi::Attributes& given, const char* name) {
  for (int64_t i = 0; i < given.size; ++i) {
    const ffi::ByteSpan& known = *given.names[i];
    if (__builtin_strlen(name) == known.len && __builtin_memcmp(name, known.ptr, known.len) == 0) return i;
  }
  return -1;
}

// Reads whole numbers: a scalar, or an array of at most `most`. Their number is `count`, 0 if it is neither.
KERNIX_COLD inline bool ReadWholeNumbers(ffi::AttributeTag tag, const void* given, int most, int64_t* values,
                                         int64_t& count, Problem& problem) {
  ffi::Array array = {};
  if (tag == ffi::kAttributeScalar) {
    const ffi::Scalar& scalar = *static_cast<const ffi::Scalar*>(given);
    array = {scalar.dtype, 1, scalar.value};
  } else if (tag == ffi::kAttributeArray) {
    array = *static_cast<const ffi::Array*>(given);
  }
  const bool integers = array.dtype >= ffi::kS8 && array.dtype <= ffi::kU64;
  count = static_cast<int64_t>(array.size);
  problem = {"must be an integer, or an array of integers"};
  if (!integers || count < 1 || count > most) return false;
  const unsigned size = 1u << ((array.dtype - ffi::kS8) & 3u);
  for (int64_t i = 0; i < count; ++i) {
    AttributeValue value;
    char* element = static_cast<char*>(array.data) + i * size;
    if (!ReadScalar({array.dtype, element}, kInt64, value, problem)) return false;
    values[i] = static_cast<int64_t>(value.integer);
  }
  return true;
}

// Reads `grid`, `block` or `cluster`, if the call has it.
KERNIX_COLD inline ffi::Error* ReadSizes(const ffi::CallFrame* frame, const Signature& signature,
                                         const SizeLimits& limits, Sizes& sizes) {
  const int64_t place = FindAttribute(frame->attributes, limits.name);
  if (place < 0) return nullptr;
  Problem problem = {""};
  int64_t count = 0;
  const bool read = ReadWholeNumbers(frame->attributes.types[place], frame->attributes.values[place], 3, sizes.values,
                                     count, problem);
  if (!read && count > 3) {
    return Fail(frame, signature, ffi::kInvalidArgument, "%s has %lld sizes; it takes 1 to 3", limits.name,
                static_cast<long long>(count));
  }
  if (!read) return Fail(frame, signature, ffi::kInvalidArgument, "%s %s", limits.name, problem.text);
  sizes.count = static_cast<int>(count);
  for (int i = 0; i < 3; ++i) {
    if (sizes.values[i] >= 1 && sizes.values[i] <= limits.most[i]) continue;
    return Fail(frame, signature, ffi::kInvalidArgument, "%s is %s; its %c must be 1 to %lld", limits.name,
                SizesText(sizes).text, 'x' + i, static_cast<long long>(limits.most[i]));
  }
  return nullptr;
}

KERNIX_COLD inline ffi::Error* ReadShared(const ffi::CallFrame* frame, const Signature& signature, int64_t& shared,
                                          bool& given) {
  const int64_t place = FindAttribute(frame->attributes, "shared");
  given = place >= 0;
  if (!given) return nullptr;
  Problem problem = {""};
  int64_t count = 0;
  if (!ReadWholeNumbers(frame->attributes.types[place], frame->attributes.values[place], 1, &shared, count, problem)) {
    return Fail(frame, signature, ffi::kInvalidArgument, "shared must be an integer, the bytes of shared memory");
  }
  if (shared >= 0 && shared <= 2147483647) return nullptr;
  return Fail(frame, signature, ffi::kInvalidArgument, "shared is %lld; it must be 0 to 2147483647 bytes",
              static_cast<long long>(shared));
}

KERNIX_COLD inline ffi::Error* ReadCooperative(const ffi::CallFrame* frame, const Signature& signature,
                                               bool& cooperative, bool& given) {
  const int64_t place = FindAttribute(frame->attributes, "cooperative");
  given = place >= 0;
  if (!given) return nullptr;
  Problem problem = {""};
  AttributeValue value;
  if (!ReadScalarAttribute(kBool, frame->attributes.types[place], frame->attributes.values[place], value, problem)) {
    return Fail(frame, signature, ffi::kInvalidArgument, "cooperative %s", problem.text);
  }
  cooperative = value.integer != 0;
  return nullptr;
}

// Checks what CUDA demands of the sizes together.
KERNIX_COLD inline ffi::Error* CheckSizes(const ffi::CallFrame* frame, const Signature& signature,
                                          const LaunchConfig& config) {
  if (config.grid.count == 0 || config.block.count == 0) {
    return Fail(frame, signature, ffi::kInvalidArgument,
                "needs the attribute '%s': an integer, or an array of 1 to 3 integers",
                config.grid.count == 0 ? "grid" : "block");
  }
  if (config.block.Product() > kMostThreads) {
    return Fail(frame, signature, ffi::kInvalidArgument, "block is %s, %lld threads; a block has at most %lld",
                SizesText(config.block).text, static_cast<long long>(config.block.Product()),
                static_cast<long long>(kMostThreads));
  }
  for (int i = 0; i < 3; ++i) {
    if (config.grid.values[i] % config.cluster.values[i] == 0) continue;
    return Fail(frame, signature, ffi::kInvalidArgument, "grid is %s, which clusters of %s do not divide",
                SizesText(config.grid).text, SizesText(config.cluster).text);
  }
  return nullptr;
}

// Reads the attributes that say how to launch. `signature.attributes` has them after the function's own.
KERNIX_COLD inline ffi::Error* ReadConfig(const ffi::CallFrame* frame, const Signature& signature,
                                          LaunchConfig& config) {
  bool shared = false;
  bool cooperative = false;
  ffi::Error* error = ReadSizes(frame, signature, kGridLimits, config.grid);
  if (error == nullptr) error = ReadSizes(frame, signature, kBlockLimits, config.block);
  if (error == nullptr) error = ReadSizes(frame, signature, kClusterLimits, config.cluster);
  if (error == nullptr) error = ReadShared(frame, signature, config.shared, shared);
  if (error == nullptr) error = ReadCooperative(frame, signature, config.cooperative, cooperative);
  if (error == nullptr) error = CheckSizes(frame, signature, config);
  if (error != nullptr) return error;
  Signature with_launch = signature;
  with_launch.attribute_count += 5;
  const int given = signature.attribute_count + 2 + (config.cluster.count > 0) + shared + cooperative;
  return frame->attributes.size > given ? UnexpectedAttribute(frame, with_launch) : nullptr;
}

// The error for a failure of CUDA before or at the launch.
KERNIX_COLD inline ffi::Error* LaunchFailed(const Call& call, const LaunchConfig& config, const char* what,
                                            cudaError_t code) {
  static_cast<void>(cudaGetLastError());  // forget it: the next launch reports its own
  const SizesText cluster(config.cluster);
  return Fail(call.frame, *call.signature, ffi::kInternal,
              "%s, with grid %s, block %s, shared %lld%s%s%s, failed: %s: %s", what, SizesText(config.grid).text,
              SizesText(config.block).text, static_cast<long long>(config.shared),
              config.cluster.count > 0 ? ", cluster " : "", config.cluster.count > 0 ? cluster.text : "",
              config.cooperative ? ", cooperative" : "", cudaGetErrorName(code), cudaGetErrorString(code));
}

// Lets `function` have the dynamic shared memory of a call. More than 48 KiB must be asked for: all that there is, so
// that no call takes away what another thread's has just asked for.
KERNIX_COLD inline ffi::Error* AllowShared(const Call& call, const LaunchConfig& config, const void* function) {
  cudaFuncAttributes now = {};
  int device = 0;
  int most = 0;
  cudaError_t code = cudaFuncGetAttributes(&now, function);
  const int64_t shared = config.shared;
  if (code == cudaSuccess && shared <= now.maxDynamicSharedSizeBytes) return nullptr;
  if (code == cudaSuccess) code = cudaGetDevice(&device);
  if (code == cudaSuccess) code = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  const int64_t own = static_cast<int64_t>(now.sharedSizeBytes);
  if (code == cudaSuccess && shared + own > most) {
    return Fail(call.frame, *call.signature, ffi::kInvalidArgument,
                "shared is %lld; the function itself declares %lld bytes, and a block on this device has at most %d",
                static_cast<long long>(shared), static_cast<long long>(own), most);
  }
  if (code == cudaSuccess) {
    code = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, most - static_cast<int>(own));
  }
  return code == cudaSuccess ? nullptr : LaunchFailed(call, config, "asking for the shared memory", code);
}

// Checks that the device has clusters, and lets `function` have large ones.
KERNIX_COLD inline ffi::Error* AllowCluster(const Call& call, const LaunchConfig& config, const void* function) {
  int device = 0;
  int has_clusters = 0;
  cudaError_t code = cudaGetDevice(&device);
  if (code == cudaSuccess) code = cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, device);
  if (code == cudaSuccess && has_clusters == 0) {
    return Fail(call.frame, *call.signature, ffi::kInvalidArgument,
                "cluster is %s, but this device has no clusters: they need compute capability 9.0 or newer",
                SizesText(config.cluster).text);
  }
  if (code == cudaSuccess && config.cluster.Product() > kPortableCluster) {
    code = cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  }
  return code == cudaSuccess ? nullptr : LaunchFailed(call, config, "asking for clusters", code);
}

// The pointee of a pointer, without const and volatile. <type_traits> would cost more than all of this header.
template <typename T>
struct Pointee {
  using Element = T;
  static constexpr bool kIsConst = false;
  static constexpr bool kIsVoid = false;
};
template <>
struct Pointee<void> {
  using Element = void;
  static constexpr bool kIsConst = false;
  static constexpr bool kIsVoid = true;
};
template <typename T>
struct Pointee<volatile T> : Pointee<T> {};
template <typename T>
struct Pointee<const T> : Pointee<T> {
  static constexpr bool kIsConst = true;
};
template <typename T>
struct Pointee<const volatile T> : Pointee<const T> {};

// Whether handlers can check that elements of a token's type may be read as T. A float4 reads four float32.
template <typename T, BE::DType kDType, bool kIsResult>
constexpr void CheckPointer() {
  constexpr bool kIsVoid = Pointee<T>::kIsVoid;
  constexpr BE::DType kElement = kDTypeOf<typename Pointee<T>::Element>;
  static_assert(!kIsResult || !Pointee<T>::kIsConst, "a result cannot be written through a pointer to const");
  if constexpr (kDType == BE::DType::Invalid) {
    static_assert(kIsVoid, "write the element type of this pointer into its token: arg:float32");
  } else if constexpr (kElement != BE::DType::Invalid) {
    static_assert(kElement == kDType, "the token has another element type than this pointer");
  } else if constexpr (!kIsVoid) {
    constexpr auto kSize = BE::dtype_size(kDType);
    static_assert(kSize > 0 && sizeof(T) % (kSize > 0 ? kSize : 1) == 0,
                  "the token has another element type than this pointer");
  }
}

// An array of a call. It converts to the function's parameter: a pointer, a BE::In or BE::Out, or a BE::Tensor.
template <BE::DType kDType, int kRank, bool kIsResult>
struct LaunchArray {
  BE::Tensor& tensor;
  const char* function;
  const char* parameter;

  operator BE::Tensor() const { return tensor; }
  template <typename T, int kDeclared>
  operator BE::In<T, kDeclared>() const {
    return TypedArgument<kDType, kRank>{tensor, function, parameter};
  }
  template <typename T, int kDeclared>
  operator BE::Out<T, kDeclared>() const {
    static_assert(kIsResult, "an argument is read-only: take a BE::In");
    return TypedResult<kDType, kRank>{tensor, function, parameter};
  }
  template <typename T>
  operator T*() const {
    CheckPointer<T, kDType, kIsResult>();
    return static_cast<T*>(tensor.data());
  }
};

// The elements of an array attribute, for a struct or a vector of CUDA that the function takes by value. CUDA copies a
// parameter's bytes; no object is made of them here, so no constructor and no destructor of the struct runs.
struct LaunchBytes {
  const char* name;
  const void* data;
  size_t size;

  template <typename T>
  LaunchBytes(const char* attribute, BE::Span<const T> array)
      : name(attribute), data(array.data()), size(array.size() * sizeof(T)) {}
};

// Whether the parameter at `kPlace` of a function can be made of bytes. Generated code asserts it, with the user's
// line.
template <int kPlace, typename T, typename... Rest>
constexpr bool TakesBytes(void (*)(T, Rest...)) {
  if constexpr (kPlace == 0) {
    return kMadeOfBytes<T>;
  } else {
    return TakesBytes<kPlace - 1>(static_cast<void (*)(Rest...)>(nullptr));
  }
}

// How a launch holds what it passes to a parameter of type T, and the address of that.
template <typename T, typename Value>
struct Passed {
  using Type = T;
};
template <typename T>
struct Passed<T, LaunchBytes> {
  using Type = const LaunchBytes&;
};
template <typename T>
inline void* AddressOf(T& parameter) {
  return __builtin_addressof(parameter);
}
inline void* AddressOf(const LaunchBytes& bytes) { return const_cast<void*>(bytes.data); }

// Checks that a value fits a parameter of type T: that there are as many bytes.
template <typename T, typename Value>
inline void CheckValue(Call&, const Value&) {}
template <typename T>
KERNIX_COLD inline void CheckValue(Call& call, const LaunchBytes& value) {
  if (value.size == sizeof(T) || call.error != nullptr) return;
  call.error = Fail(call.frame, *call.signature, ffi::kInvalidArgument, KERNIX_WRONG_SIZE, value.name,
                    static_cast<long long>(value.size), static_cast<long long>(sizeof(T)));
}

// Launches `function` as the call says, with `values`, which must convert to its parameters or be their bytes.
template <typename... Parameters, typename... Values>
inline void Launch(Call& call, void (*function)(Parameters...), const Values&... values) {
  LaunchConfig config;
  call.error = ReadConfig(call.frame, *call.signature, config);
  if (config.shared > 0 && call.error == nullptr) {
    call.error = AllowShared(call, config, reinterpret_cast<const void*>(function));
  }
  if (config.cluster.count > 0 && call.error == nullptr) {
    call.error = AllowCluster(call, config, reinterpret_cast<const void*>(function));
  }
  if (call.error != nullptr) return;
  (CheckValue<Parameters>(call, values), ...);
  if (call.error != nullptr) return;
  cudaLaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (config.cluster.count > 0) {
    cudaLaunchAttribute& attribute = attributes[count++];
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = config.cluster.Dim3().x;
    attribute.val.clusterDim.y = config.cluster.Dim3().y;
    attribute.val.clusterDim.z = config.cluster.Dim3().z;
  }
  if (config.cooperative) {
    cudaLaunchAttribute& attribute = attributes[count++];
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
  }
  cudaLaunchConfig_t launch = {};
  launch.gridDim = config.grid.Dim3();
  launch.blockDim = config.block.Dim3();
  launch.dynamicSmemBytes = static_cast<size_t>(config.shared);
  launch.stream = call.stream;
  launch.attrs = attributes;
  launch.numAttrs = count;
  // As cudaLaunchKernelEx() does, which is in the part of the runtime header that takes longest to compile.
  const auto launch_with = [&](typename Passed<Parameters, Values>::Type... parameters) {
    void* addresses[] = {AddressOf(parameters)..., nullptr};
    return cudaLaunchKernelExC(&launch, reinterpret_cast<const void*>(function), addresses);
  };
  const cudaError_t code = launch_with(values...);
  if (code != cudaSuccess) call.error = LaunchFailed(call, config, "the launch", code);
}

}  // namespace kernix_handler
