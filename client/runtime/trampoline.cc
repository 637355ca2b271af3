// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/trampoline.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

#if !defined(__x86_64__) || !defined(__LP64__)
#error \
    "kernix's trampolines are written for x86-64 with 64-bit pointers: port client/runtime/trampoline.cc to this processor."
#endif

namespace kernix {
namespace {

using Slot = Trampoline::Slot;
static_assert(std::atomic<void*>::is_always_lock_free && sizeof(Slot) == 2 * sizeof(void*),
              "machine code reads a slot as two plain pointers");

//   f3 0f 1e fa          endbr64                 a valid branch target under Intel CET
//   48 8b 35 <offset>    mov rsi, [rip+offset]   the second argument: the slot's name
//   ff 25 <offset>       jmp *[rip+offset]       the slot's handler
//   cc ...               int3                    never reached
constexpr size_t kStubSize = 32;
constexpr unsigned char kStub[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b, 0x35, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0};
constexpr size_t kNameOffsetAt = 7;
constexpr size_t kHandlerOffsetAt = 13;
constexpr unsigned char kNeverReached = 0xcc;

absl::Status MemoryError(std::string_view what) {
  return MakeError(
      v1::ErrorDetail::REGISTRATION,
      StrCat("cannot make a handler that can be replaced: ", what, ": ", std::strerror(errno),
             ". The system seems to forbid executable memory to this process (SELinux's execmem, a seccomp "
             "filter or PaX); XLA's own compiler for the CPU needs it too."));
}

Slot* SlotOf(unsigned char* slots, size_t i) { return reinterpret_cast<Slot*>(slots) + i; }

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

}  // namespace

// Writes all stubs of a block at once, before the code becomes executable: no page is ever writable and executable.
absl::Status TrampolinePool::MapBlock() {
  page_size_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, 2 * page_size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return MemoryError("mmap");
  auto* code = static_cast<unsigned char*>(memory);
  for (size_t i = 0; i < page_size_ / kStubSize; ++i) {
    WriteStub(code + i * kStubSize, new (SlotOf(code + page_size_, i)) Slot);
  }
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
