// SPDX-License-Identifier: Apache-2.0
//
// For tests of the code generator: compiles kernels with a real compiler, opens the result, and takes XLA's role in a
// call.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/brainevent/internal/ffi_abi.h"
#include "kernix/v1/kernix.pb.h"
#include "tests/support/test_util.h"

namespace kernix::language {

// The output of a program, and how it ended.
struct Outcome {
  int exit_code = -1;
  std::string output;
};

// Runs argv[0], found on the test's PATH, in `directory`.
Outcome RunProgram(const std::vector<std::string>& argv, const std::string& directory);

// A Python with JAX: $KERNIX_TEST_PYTHON, or the Python of the repository's .venv. nullopt if there is none.
std::optional<std::string> FindJaxPython();

// The output of `statement` in that Python.
std::string Evaluate(const std::string& python, const std::string& statement);

// A toolkit's nvcc: on PATH, in /usr/local/cuda, or from wheels of FindJaxPython().
std::optional<std::string> FindNvcc();

// Resolves and generates `text` with `label`. The test fails if it cannot be resolved.
std::string Generate(const std::string& label, const std::string& text, v1::Language language = v1::LANGUAGE_CPP,
                     bool allow_cuda_graph = true);

v1::Functions FromAnnotations();

// A folder with the kernel headers in include/.
class Workshop {
 public:
  Workshop();

  // Writes `name` and returns its path.
  std::string Write(const std::string& name, const std::string& text);

  // Writes the source that defines what handlers share, and returns its path. A library is compiled of it, too.
  std::string HandlerRuntime();

  // Compiles `text`. `flags` follow the include path.
  Outcome Compile(const std::string& compiler, const std::string& text, const std::vector<std::string>& flags);

  // Generates, compiles and opens `source`. The test fails if one of the steps fails.
  void* Open(const std::string& source, const std::vector<std::string>& flags = {});

  const std::string& path() const { return scratch_.path(); }

 private:
  ScratchDirectory scratch_;
  int opened_ = 0;
};

// A call as XLA makes it. Values that are passed by pointer must live until Call().
class FakeCall {
 public:
  FakeCall();
  FakeCall(const FakeCall&) = delete;
  FakeCall& operator=(const FakeCall&) = delete;

  FakeCall& Argument(void* data, std::vector<int64_t> shape, uint32_t dtype);
  FakeCall& Result(void* data, std::vector<int64_t> shape, uint32_t dtype);

  template <typename T>
  FakeCall& Attribute(const std::string& name, T value, uint32_t dtype) {
    std::string bytes(reinterpret_cast<const char*>(&value), sizeof(T));
    return AddScalar(name, std::move(bytes), dtype);
  }
  FakeCall& StringAttribute(const std::string& name, const std::string& text = "text");
  template <typename T>
  FakeCall& ArrayAttribute(const std::string& name, const std::vector<T>& values, uint32_t dtype) {
    std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    return AddArray(name, std::move(bytes), values.size(), dtype);
  }

  // Without a stream, Stream_Get fails as it does on the CPU.
  FakeCall& Stream(void* stream);
  FakeCall& Stage(uint32_t stage);
  FakeCall& DeviceOrdinal(int32_t ordinal);
  // Limits the device memory; by default, there is plenty.
  FakeCall& DeviceMemory(size_t bytes);
  FakeCall& FreeFails();
  // An API with the layout of jaxlib 0.4.31 to 0.5.
  FakeCall& OldRuntime();

  // Calls `symbol` of `library`. Returns "" on success, otherwise "<code>: <message>".
  std::string Call(void* library, const std::string& symbol);

  // How many errors were created and destroyed.
  int created() const { return created_; }
  int destroyed() const { return destroyed_; }

  // The sizes of the device allocations and of the deallocations, in order.
  const std::vector<size_t>& allocated() const { return allocated_; }
  const std::vector<size_t>& freed() const { return freed_; }

 private:
  struct BufferStorage {
    std::vector<int64_t> shape;
    kernix_ffi_abi::Buffer buffer;
  };
  struct AttributeStorage {
    std::string name;
    std::string bytes;
    kernix_ffi_abi::ByteSpan span;
    kernix_ffi_abi::AttributeTag tag;
    kernix_ffi_abi::Scalar scalar;
    kernix_ffi_abi::ByteSpan text;
    kernix_ffi_abi::Array array;
  };

  AttributeStorage& AddAttribute(const std::string& name, std::string bytes, kernix_ffi_abi::AttributeTag tag);
  FakeCall& AddScalar(const std::string& name, std::string bytes, uint32_t dtype);
  FakeCall& AddArray(const std::string& name, std::string bytes, size_t size, uint32_t dtype);
  static void AddBuffer(std::deque<BufferStorage>& to, void* data, std::vector<int64_t> shape, uint32_t dtype);
  static void* ValueOf(AttributeStorage& storage);
  kernix_ffi_abi::CallFrame Frame();

  std::deque<BufferStorage> arguments_;
  std::deque<BufferStorage> results_;
  std::deque<AttributeStorage> attributes_;
  std::vector<kernix_ffi_abi::BufferTag> argument_tags_, result_tags_;
  std::vector<void*> argument_pointers_, result_pointers_, attribute_pointers_;
  std::vector<kernix_ffi_abi::AttributeTag> attribute_tags_;
  std::vector<kernix_ffi_abi::ByteSpan*> attribute_names_;
  std::optional<void*> stream_;
  int32_t device_ordinal_ = 0;
  size_t device_memory_ = SIZE_MAX;
  bool free_fails_ = false;
  bool old_runtime_ = false;
  std::vector<size_t> allocated_, freed_;
  uint32_t stage_ = kernix_ffi_abi::kStageExecute;
  int created_ = 0;
  int destroyed_ = 0;
};

// The whole error of a call that does not fit the function.
inline std::string Misfit(std::string_view error) {
  return std::string(error) +
         ". If JAX traced the call before a load changed the function, call jax.clear_caches() and use the new "
         "module's function";
}

}  // namespace kernix::language
