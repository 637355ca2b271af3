// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/driver_functions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "common/base/strings.h"
#include "daemon/exec/blob.h"

namespace kernix::build {
namespace {

constexpr char kDriverFunctions[] = "kernix-unit/cuda_driver.s";
constexpr std::string_view kPrefix = "cu";
constexpr size_t kLongestName = 128;
// More than all functions that a driver has.
constexpr size_t kMostNames = 2048;

// The words with which names of the CUDA driver's functions go on behind "cu". A capital letter follows, or nothing.
constexpr std::string_view kDriverWords[] = {
    "Array",     "Checkpoint", "Coredump",  "Ctx",       "Destroy", "Device",   "Driver",   "Event",  "External",
    "Flush",     "Func",       "GetError",  "GetExport", "GetProc", "Graph",    "Graphics", "Green",  "Import",
    "Init",      "Ipc",        "Kernel",    "Launch",    "Library", "Link",     "Mem",      "Memcpy", "Memset",
    "Mipmapped", "Module",     "Multicast", "Occupancy", "Pointer", "Profiler", "Signal",   "Stream", "Surf",
    "Tensor",    "Tex",        "Thread",    "User",      "Wait"};

// A function jumps to where its slot says: at first to a piece of code of its own, which has
// kernix_find_driver_function put the address of the driver's function there. That one keeps all registers that may
// hold arguments. 34 is CUDA_ERROR_STUB_LIBRARY, 500 is CUDA_ERROR_NOT_FOUND: an older driver does not have the
// function.
constexpr std::string_view kAssembler = R"(  .section .note.GNU-stack,"",@progbits
  .section .rodata.kernix_driver,"a",@progbits
.Llibrary: .string "libcuda.so.1"
  .text
kernix_find_driver_function:
  pushq %rbp
  movq %rsp, %rbp
  pushq %rdi
  pushq %rsi
  pushq %rdx
  pushq %rcx
  pushq %r8
  pushq %r9
  pushq %r11
  pushq %rax
  subq $128, %rsp
  movaps %xmm0, (%rsp)
  movaps %xmm1, 16(%rsp)
  movaps %xmm2, 32(%rsp)
  movaps %xmm3, 48(%rsp)
  movaps %xmm4, 64(%rsp)
  movaps %xmm5, 80(%rsp)
  movaps %xmm6, 96(%rsp)
  movaps %xmm7, 112(%rsp)
  leaq .Llibrary(%rip), %rdi
  movl $2, %esi
  call dlopen@PLT
  leaq .Lno_driver(%rip), %rdx
  testq %rax, %rax
  je .Lfound
  movq %rax, %rdi
  movq -64(%rbp), %rsi
  call dlsym@PLT
  leaq .Lno_function(%rip), %rdx
  testq %rax, %rax
  je .Lfound
  movq -56(%rbp), %r11
  movq %rax, (%r11)
  movq %rax, %rdx
.Lfound:
  movq %rdx, -56(%rbp)
  movaps (%rsp), %xmm0
  movaps 16(%rsp), %xmm1
  movaps 32(%rsp), %xmm2
  movaps 48(%rsp), %xmm3
  movaps 64(%rsp), %xmm4
  movaps 80(%rsp), %xmm5
  movaps 96(%rsp), %xmm6
  movaps 112(%rsp), %xmm7
  addq $128, %rsp
  popq %rax
  popq %r11
  popq %r9
  popq %r8
  popq %rcx
  popq %rdx
  popq %rsi
  popq %rdi
  popq %rbp
  jmp *%r11
.Lno_driver:
  endbr64
  movl $34, %eax
  ret
.Lno_function:
  endbr64
  movl $500, %eax
  ret
  .macro driver_function name
  .weak \name
  .hidden \name
  .type \name, @function
\name:
  endbr64
  jmp *.Lslot_\name(%rip)
.Lfind_\name:
  endbr64
  leaq .Lname_\name(%rip), %rax
  leaq .Lslot_\name(%rip), %r11
  jmp kernix_find_driver_function
  .pushsection .data.rel.local.kernix_driver,"aw",@progbits
  .balign 8
.Lslot_\name: .quad .Lfind_\name
  .popsection
  .pushsection .rodata.kernix_driver
.Lname_\name: .string "\name"
  .popsection
  .endm
)";

bool IsNamePart(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool IsCapital(char c) { return absl::ascii_isupper(static_cast<unsigned char>(c)); }

// The inputs of a link that may call the driver.
bool MayCallTheDriver(const exec::InputFile& input) { return input.path.ends_with(".o") || input.path.ends_with(".a"); }

}  // namespace

bool IsDriverFunction(std::string_view name) {
  if (!name.starts_with(kPrefix) || name.size() > kLongestName) return false;
  name.remove_prefix(kPrefix.size());
  return std::all_of(name.begin(), name.end(), IsNamePart) &&
         std::any_of(std::begin(kDriverWords), std::end(kDriverWords), [name](std::string_view word) {
           return name.starts_with(word) && (name.size() == word.size() || IsCapital(name[word.size()]));
         });
}

void AddDriverFunctions(std::string_view object, std::set<std::string_view>& names) {
  for (size_t begin = 0; begin < object.size() && names.size() < kMostNames;) {
    size_t end = begin;
    while (end < object.size() && IsNamePart(object[end])) ++end;
    const std::string_view text = object.substr(begin, end - begin);
    begin = end + 1;
    if (end == object.size() || object[end] != '\0') continue;  // no name in a table
    const size_t earliest = text.size() - std::min(text.size(), kLongestName);
    for (size_t at = text.find(kPrefix, earliest); at != text.npos; at = text.find(kPrefix, at + 1)) {
      if (IsDriverFunction(text.substr(at))) names.insert(text.substr(at));
    }
  }
}

exec::Action WithDriverFunctions(exec::Action action, const toolchain::Toolchain& toolchain) {
  if (!toolchain.cuda) return action;
  std::set<std::string_view> names;  // sorted, so that a link makes the same bytes whatever the order of its inputs
  for (const exec::InputFile& input : action.inputs) {
    if (MayCallTheDriver(input) && input.content != nullptr) AddDriverFunctions(*input.content, names);
  }
  if (names.empty()) return action;
  std::string text(kAssembler);
  for (const std::string_view name : names) StrAppend(&text, "  driver_function ", name, "\n");
  action.inputs.push_back(exec::MakeInput(kDriverFunctions, std::move(text)));
  action.argv.emplace_back(kDriverFunctions);  // behind archives, which may have functions of these names
  return action;
}

}  // namespace kernix::build
