// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kernel_runner.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "common/base/strings.h"
#include "daemon/language/read/resolve.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/language/write/translation_unit.h"

// XLA's errors, which are opaque in the ABI.
struct kernix_ffi_abi::Error {
  std::string text;
};
struct kernix_ffi_abi::ExecutionContext {
  std::optional<void*> stream;
  int32_t device_ordinal = 0;
  size_t device_memory = 0;
  bool free_fails = false;
  int created = 0;
  int destroyed = 0;
  std::vector<size_t> allocated = {};
  std::vector<size_t> freed = {};
};

namespace kernix::language {
namespace {

namespace ffi = kernix_ffi_abi;

// The running call of this thread, because C functions have no other access to it.
thread_local ffi::ExecutionContext* current = nullptr;

ffi::Error* CreateError(ffi::ErrorCreateArgs* args) {
  ++current->created;
  return new ffi::Error{StrCat(static_cast<int>(args->errc), ": ", args->message)};
}

void DestroyError(ffi::ErrorDestroyArgs* args) {
  ++current->destroyed;
  delete args->error;
}

ffi::Error* GetStream(ffi::StreamGetArgs* args) {
  if (!args->ctx->stream.has_value()) {
    ++current->created;
    return new ffi::Error{"12: no stream on this platform"};
  }
  args->stream = *args->ctx->stream;
  return nullptr;
}

ffi::Error* NewError(const char* text) {
  ++current->created;
  return new ffi::Error{text};
}

ffi::Error* AllocateDeviceMemory(ffi::DeviceMemoryAllocateArgs* args) {
  if (args->alignment > 16) return NewError("3: unsupported alignment");
  if (args->size > args->ctx->device_memory) return NewError("8: out of device memory");
  args->ctx->device_memory -= args->size;
  args->ctx->allocated.push_back(args->size);
  args->data = ::operator new(args->size);
  return nullptr;
}

ffi::Error* FreeDeviceMemory(ffi::DeviceMemoryFreeArgs* args) {
  args->ctx->freed.push_back(args->size);
  ::operator delete(args->data);
  return args->ctx->free_fails ? NewError("13: cannot free") : nullptr;
}

ffi::Error* GetDeviceOrdinal(ffi::DeviceOrdinalGetArgs* args) {
  args->device_ordinal = args->ctx->device_ordinal;
  return nullptr;
}

ffi::Api MakeApi(bool old_runtime) {
  ffi::Api api = {};
  api.struct_size = old_runtime ? offsetof(ffi::Api, stream_get) + sizeof(api.stream_get) : sizeof(api);
  api.error_create = CreateError;
  api.error_destroy = DestroyError;
  api.stream_get = GetStream;
  api.device_memory_allocate = AllocateDeviceMemory;
  api.device_memory_free = FreeDeviceMemory;
  api.device_ordinal_get = GetDeviceOrdinal;
  return api;
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Outcome RunProgram(const std::vector<std::string>& argv, const std::string& directory) {
  std::vector<std::string> command = {"/usr/bin/env"};
  command.insert(command.end(), argv.begin(), argv.end());
  const auto result = Env::Posix().RunProcess({.argv = command,
                                               .environment = {{"PATH", Variable("PATH")}, {"HOME", directory}},
                                               .working_directory = directory},
                                              nullptr, nullptr);
  if (!result.ok()) return {-1, std::string(ToStd(result.status().message()))};
  return {result->exit_code, result->output};
}

std::string Evaluate(const std::string& python, const std::string& statement) {
  Outcome outcome = RunProgram({python, "-c", statement}, testing::TempDir());
  while (!outcome.output.empty() && outcome.output.back() == '\n') outcome.output.pop_back();
  return outcome.exit_code == 0 ? outcome.output : "";
}

std::optional<std::string> FindJaxPython() {
  for (const std::string& python : {Variable("KERNIX_TEST_PYTHON"), std::string(KERNIX_VENV_PYTHON)}) {
    if (!python.empty() && !Evaluate(python, "import jaxlib; print(jaxlib.__file__)").empty()) return python;
  }
  return std::nullopt;
}

std::optional<std::string> FindNvcc() {
  std::vector<std::string> candidates = {"nvcc", "/usr/local/cuda/bin/nvcc"};
  if (const std::optional<std::string> python = FindJaxPython()) {
    candidates.push_back(Evaluate(*python, "import nvidia.cu13 as m; print(list(m.__path__)[0] + '/bin/nvcc')"));
  }
  for (const std::string& nvcc : candidates) {
    if (!nvcc.empty() && RunProgram({nvcc, "--version"}, testing::TempDir()).exit_code == 0) return nvcc;
  }
  return std::nullopt;
}

v1::Functions FromAnnotations() {
  v1::Functions functions;
  functions.set_from_annotations(true);
  return functions;
}

std::string Generate(const std::string& label, const std::string& text, v1::Language language, bool allow_cuda_graph) {
  const std::vector<SourceText> sources = {{label, text}};
  const auto specs = ResolveFunctions(sources, FromAnnotations());
  EXPECT_THAT(specs, IsOk());
  return specs.ok() ? GenerateTranslationUnit(language, sources, *specs, allow_cuda_graph, /*has_headers=*/false).Text()
                    : "";
}

Workshop::Workshop() {
  for (const GeneratedFile& header : KernelHeaders()) Write("include/" + header.path, header.text);
}

std::string Workshop::Write(const std::string& name, const std::string& text) {
  const std::string path = scratch_ / name;
  EXPECT_THAT(Env::Posix().CreateDirectories(path.substr(0, path.rfind('/'))), IsOk());
  EXPECT_THAT(Env::Posix().WriteFile(path, text, 0644), IsOk());
  return path;
}

std::string Workshop::HandlerRuntime() {
  return Write("handler.cpp", "#include \"brainevent/internal/handler_runtime.h\"\n");
}

Outcome Workshop::Compile(const std::string& compiler, const std::string& text, const std::vector<std::string>& flags) {
  const bool cuda = compiler.ends_with("nvcc");
  std::vector<std::string> argv = {compiler, Write(cuda ? "unit.cu" : "unit.cpp", text), "-I" + scratch_ / "include"};
  argv.insert(argv.end(), flags.begin(), flags.end());
  return RunProgram(argv, path());
}

void* Workshop::Open(const std::string& source, const std::vector<std::string>& flags) {
  const std::string library = scratch_ / StrCat("kernel", opened_++, ".so");
  // The map: as builds have it for the folder of sources.
  std::vector<std::string> all = {HandlerRuntime(), "-ffile-prefix-map=kernix-source/=",
                                  "-std=c++17",     "-O1",
                                  "-Wall",          "-Wextra",
                                  "-Werror",        "-fPIC",
                                  "-shared",        "-o",
                                  library};
  all.insert(all.end(), flags.begin(), flags.end());
  const Outcome outcome = Compile("c++", Generate("kernel.cpp", source), all);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
  return handle;
}

FakeCall::FakeCall() = default;

void FakeCall::AddBuffer(std::deque<BufferStorage>& to, void* data, std::vector<int64_t> shape, uint32_t dtype) {
  BufferStorage& storage = to.emplace_back();
  storage.shape = std::move(shape);
  storage.buffer = {
      sizeof(ffi::Buffer), nullptr, static_cast<ffi::DataType>(dtype), data, static_cast<int64_t>(storage.shape.size()),
      storage.shape.data()};
}

FakeCall& FakeCall::Argument(void* data, std::vector<int64_t> shape, uint32_t dtype) {
  AddBuffer(arguments_, data, std::move(shape), dtype);
  return *this;
}

FakeCall& FakeCall::Result(void* data, std::vector<int64_t> shape, uint32_t dtype) {
  AddBuffer(results_, data, std::move(shape), dtype);
  return *this;
}

FakeCall::AttributeStorage& FakeCall::AddAttribute(const std::string& name, std::string bytes, ffi::AttributeTag tag) {
  AttributeStorage& storage = attributes_.emplace_back();
  storage.name = name;
  storage.bytes = std::move(bytes);
  storage.tag = tag;
  return storage;
}

FakeCall& FakeCall::AddScalar(const std::string& name, std::string bytes, uint32_t dtype) {
  AddAttribute(name, std::move(bytes), ffi::kAttributeScalar).scalar.dtype = static_cast<ffi::DataType>(dtype);
  return *this;
}

FakeCall& FakeCall::StringAttribute(const std::string& name, const std::string& text) {
  AddAttribute(name, text, ffi::kAttributeString);
  return *this;
}

FakeCall& FakeCall::AddArray(const std::string& name, std::string bytes, size_t size, uint32_t dtype) {
  ffi::Array& array = AddAttribute(name, std::move(bytes), ffi::kAttributeArray).array;
  array = {static_cast<ffi::DataType>(dtype), size, nullptr};
  return *this;
}

FakeCall& FakeCall::Stream(void* stream) {
  stream_ = stream;
  return *this;
}

FakeCall& FakeCall::DeviceOrdinal(int32_t ordinal) {
  device_ordinal_ = ordinal;
  return *this;
}

FakeCall& FakeCall::DeviceMemory(size_t bytes) {
  device_memory_ = bytes;
  return *this;
}

FakeCall& FakeCall::FreeFails() {
  free_fails_ = true;
  return *this;
}

FakeCall& FakeCall::OldRuntime() {
  old_runtime_ = true;
  return *this;
}

FakeCall& FakeCall::Stage(uint32_t stage) {
  stage_ = stage;
  return *this;
}

void* FakeCall::ValueOf(AttributeStorage& storage) {
  if (storage.tag == ffi::kAttributeString) return &storage.text;
  if (storage.tag == ffi::kAttributeArray) return &storage.array;
  return &storage.scalar;
}

ffi::CallFrame FakeCall::Frame() {
  std::sort(attributes_.begin(), attributes_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  for (BufferStorage& storage : arguments_) argument_pointers_.push_back(&storage.buffer);
  for (BufferStorage& storage : results_) result_pointers_.push_back(&storage.buffer);
  argument_tags_.assign(arguments_.size(), ffi::kBuffer);
  result_tags_.assign(results_.size(), ffi::kBuffer);
  for (AttributeStorage& storage : attributes_) {
    storage.scalar.value = storage.bytes.data();
    storage.array.data = storage.bytes.data();
    storage.text = {storage.bytes.data(), storage.bytes.size()};
    storage.span = {storage.name.data(), storage.name.size()};
    attribute_names_.push_back(&storage.span);
    attribute_tags_.push_back(storage.tag);
    attribute_pointers_.push_back(ValueOf(storage));
  }
  ffi::CallFrame frame = {};
  frame.struct_size = sizeof(frame);
  frame.stage = static_cast<ffi::ExecutionStage>(stage_);
  frame.args = {sizeof(ffi::Buffers), nullptr, static_cast<int64_t>(arguments_.size()), argument_tags_.data(),
                argument_pointers_.data()};
  frame.rets = {sizeof(ffi::Buffers), nullptr, static_cast<int64_t>(results_.size()), result_tags_.data(),
                result_pointers_.data()};
  frame.attributes = {sizeof(ffi::Attributes),
                      nullptr,
                      static_cast<int64_t>(attributes_.size()),
                      attribute_tags_.data(),
                      attribute_names_.data(),
                      attribute_pointers_.data()};
  return frame;
}

std::string FakeCall::Call(void* library, const std::string& symbol) {
  void* address = library == nullptr ? nullptr : dlsym(library, symbol.c_str());
  if (address == nullptr) return StrCat("no symbol ", symbol);
  const ffi::Api api = MakeApi(old_runtime_);
  ffi::ExecutionContext context = {stream_, device_ordinal_, device_memory_, free_fails_};
  ffi::CallFrame frame = Frame();
  frame.api = &api;
  frame.ctx = &context;
  current = &context;
  const std::unique_ptr<ffi::Error> error(reinterpret_cast<ffi::Handler*>(address)(&frame));
  current = nullptr;
  created_ = context.created;
  destroyed_ = context.destroyed;
  allocated_ = context.allocated;
  freed_ = context.freed;
  return error == nullptr ? "" : error->text;
}

}  // namespace kernix::language
