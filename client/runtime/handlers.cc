// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/handlers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "kernel/brainevent/internal/ffi_abi.h"

namespace kernix {
namespace {

namespace abi = kernix_ffi_abi;

absl::Status ProbeError(std::string_view what) {
  return MakeError(v1::ErrorDetail::LOAD,
                   StrCat(what, ": it cannot be given to XLA. Load it again with force_rebuild=True."));
}

constexpr char kMessage[] =
    "no kernel is loaded under the name of this kernix target: the load that announced it to XLA failed or has not "
    "finished yet. Load it again.";

// Whether the runtime asks for metadata, which is answered then.
bool AnswersMetadata(const abi::CallFrame& frame, uint32_t traits) {
  const abi::ExtensionBase* extension = frame.extension_start;
  if (extension == nullptr || extension->type != abi::kExtensionMetadata) return false;
  abi::Metadata* metadata = reinterpret_cast<const abi::MetadataExtension*>(extension)->metadata;
  metadata->api_version.major_version = abi::kApiMajor;
  metadata->api_version.minor_version = abi::kApiMinor;
  metadata->traits = traits;
  return true;
}

XLA_FFI_Error* Refusal(const abi::CallFrame& frame, const char* message) {
  abi::ErrorCreateArgs error = {sizeof(error), nullptr, message, abi::kFailedPrecondition};
  return reinterpret_cast<XLA_FFI_Error*>(frame.api->error_create(&error));
}

template <uint32_t kTraits>
XLA_FFI_Error* Reserved(XLA_FFI_CallFrame* opaque) {
  const auto& frame = *reinterpret_cast<const abi::CallFrame*>(opaque);
  return AnswersMetadata(frame, kTraits) ? nullptr : Refusal(frame, kMessage);
}

using Slot = Trampoline::Slot;
static_assert(std::atomic<void*>::is_always_lock_free && sizeof(Slot) == 2 * sizeof(void*),
              "machine code reads a slot as two plain pointers");

constexpr size_t kStubSize = 32;

absl::Status MemoryError(std::string_view what) {
  return MakeError(
      v1::ErrorDetail::REGISTRATION,
      StrCat("cannot make a handler that can be replaced: ", what, ": ", std::strerror(errno),
             ". The system seems to forbid executable memory to this process (SELinux's execmem, a seccomp "
             "filter or PaX); XLA's own compiler for the CPU needs it too."));
}

Slot* SlotOf(unsigned char* slots, size_t i) { return reinterpret_cast<Slot*>(slots) + i; }

#ifdef __aarch64__
// Where an instruction that begins at `at` has the offset of `to`, in steps of four bytes.
uint32_t Offset(const unsigned char* at, const void* to) {
  constexpr uint32_t kBits = (1 << 19) - 1;
  return (static_cast<uint32_t>((static_cast<const unsigned char*>(to) - at) / 4) & kBits) << 5;
}

void WriteStub(unsigned char* stub, const Slot* slot) {
  const uint32_t code[kStubSize / 4] = {
      0xd503245f,                                     // bti c         a valid branch target
      0x10000011 | Offset(stub + 4, &slot->handler),  // adr x17, ...
      0xc8dffe30,                                     // ldar x16, [x17]: the name is read after it
      0x58000001 | Offset(stub + 12, &slot->name),    // ldr x1, ...   the second argument
      0xd61f0200,                                     // br x16
  };                                                  // udf           never reached
  std::memcpy(stub, code, sizeof(code));
}
#else
//   f3 0f 1e fa          endbr64                 a valid branch target under Intel CET
//   48 8b 05 <offset>    mov rax, [rip+offset]   the slot's handler: the name is read after it
//   48 8b 35 <offset>    mov rsi, [rip+offset]   the second argument: the slot's name
//   ff e0                jmp rax
//   cc ...               int3                    never reached
constexpr unsigned char kStub[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b, 0x05, 0, 0,    0,
                                   0,    0x48, 0x8b, 0x35, 0,    0,    0,    0, 0xff, 0xe0};
constexpr size_t kHandlerOffsetAt = 7;
constexpr size_t kNameOffsetAt = 14;
constexpr unsigned char kNeverReached = 0xcc;

// Writes an offset, which counts from its own end.
void WriteOffset(unsigned char* at, const void* to) {
  const auto offset = static_cast<int32_t>(static_cast<const unsigned char*>(to) - (at + sizeof(int32_t)));
  std::memcpy(at, &offset, sizeof(offset));
}

void WriteStub(unsigned char* stub, const Slot* slot) {
  std::memset(stub, kNeverReached, kStubSize);
  std::memcpy(stub, kStub, sizeof(kStub));
  WriteOffset(stub + kNameOffsetAt, &slot->name);
  WriteOffset(stub + kHandlerOffsetAt, &slot->handler);
}
#endif

}  // namespace

absl::StatusOr<uint32_t> ProbeHandler(Handler handler) {
  constexpr int kUnset = -1;
  abi::Metadata metadata = {
      .struct_size = sizeof(abi::Metadata),
      .api_version = {sizeof(abi::ApiVersion), nullptr, kUnset, kUnset},
      .traits = 0,
  };
  abi::MetadataExtension extension = {
      .base = {sizeof(abi::MetadataExtension), abi::kExtensionMetadata, nullptr},
      .metadata = &metadata,
  };
  // Like the oldest runtimes: without an API table, so the handler cannot even create an error.
  abi::CallFrame frame = {};
  frame.struct_size = sizeof(frame);
  frame.extension_start = &extension.base;
  const void* error = handler(reinterpret_cast<XLA_FFI_CallFrame*>(&frame));
  if (error != nullptr) return ProbeError("the handler answered XLA's metadata query with an error");
  const abi::ApiVersion& version = metadata.api_version;
  if (version.major_version != abi::kApiMajor || version.minor_version != abi::kApiMinor) {
    return ProbeError(version.major_version == kUnset
                          ? std::string("the handler did not answer XLA's metadata query")
                          : StrCat("the handler uses XLA FFI API ", version.major_version, ".", version.minor_version,
                                   ", not ", abi::kApiMajor, ".", abi::kApiMinor));
  }
  return metadata.traits;
}

Handler ReservedHandler(uint32_t traits) {
  return (traits & abi::kCommandBufferCompatible) != 0 ? Reserved<abi::kCommandBufferCompatible> : Reserved<0>;
}

XLA_FFI_Error* CudaFunctionOnCpu(XLA_FFI_CallFrame* opaque, const char* target) {
  const auto& frame = *reinterpret_cast<const abi::CallFrame*>(opaque);
  if (AnswersMetadata(frame, abi::kCommandBufferCompatible)) return nullptr;
  const std::string message =
      StrCat(target,
             " is CUDA code, which runs on a GPU, but JAX makes the call on the CPU: put its arrays on a GPU. If "
             "jax.devices() shows none, JAX's CUDA plugin is missing, or there is no GPU here.");
  return Refusal(frame, message.c_str());
}

// Writes all stubs of a block at once, before the code becomes executable: no page is ever writable and executable.
absl::Status TrampolinePool::MapBlock() {
  page_size_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, 2 * page_size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return MemoryError("mmap");
  auto* code = static_cast<unsigned char*>(memory);
  for (size_t i = 0; i < page_size_ / kStubSize; ++i) {
    WriteStub(code + i * kStubSize, new (SlotOf(code + page_size_, i)) Slot);
  }
  __builtin___clear_cache(static_cast<char*>(memory), static_cast<char*>(memory) + page_size_);
  if (mprotect(code, page_size_, PROT_READ | PROT_EXEC) != 0) {
    absl::Status error = MemoryError("mprotect");
    munmap(memory, 2 * page_size_);
    return error;
  }
  code_ = code;
  used_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<Trampoline> TrampolinePool::Create(Handler handler) {
  if (code_ == nullptr || used_ == page_size_ / kStubSize) KERNIX_RETURN_IF_ERROR(MapBlock());
  const size_t i = used_++;
  Trampoline trampoline(reinterpret_cast<Handler>(code_ + i * kStubSize), SlotOf(code_ + page_size_, i));
  trampoline.SetHandler(handler);
  return trampoline;
}

}  // namespace kernix
