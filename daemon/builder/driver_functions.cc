// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/driver_functions.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "common/base/strings.h"
#include "daemon/exec/input_file.h"
#include "daemon/plan/plan_parts.h"
#include "daemon/toolchain/tool_query.h"

namespace kernix::build {
namespace {

constexpr char kDriverFunctions[] = "kernix-unit/cuda_driver.s";
constexpr std::string_view kPrefix = "cu";
constexpr size_t kLongestName = 128;

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

bool IsLikeTheDrivers(std::string_view name) {
  return name.size() > kPrefix.size() && name.size() <= kLongestName && name.starts_with(kPrefix) &&
         absl::ascii_isupper(static_cast<unsigned char>(name[kPrefix.size()])) &&
         std::all_of(name.begin(), name.end(), IsNamePart);
}

// The words of cuda.h: it has each name that a compiler gives a function of the driver, if only as a macro's value.
absl::flat_hash_set<std::string_view> WordsOf(std::string_view header) {
  absl::flat_hash_set<std::string_view> words;
  for (size_t at = header.find(kPrefix); at != header.npos; at = header.find(kPrefix, at)) {
    const size_t begin = at;
    while (at < header.size() && IsNamePart(header[at])) ++at;
    if (begin == 0 || !IsNamePart(header[begin - 1])) words.insert(header.substr(begin, at - begin));
  }
  return words;
}

bool MayCallTheDriver(const exec::InputFile& input) { return input.path.ends_with(".o") || input.path.ends_with(".a"); }

// Sorted, so that a link makes the same bytes whatever the order of its inputs.
std::set<std::string> NamesIn(const exec::Action& action) {
  std::set<std::string> names;
  for (const exec::InputFile& input : action.inputs) {
    if (!MayCallTheDriver(input) || input.content == nullptr) continue;
    for (const std::string_view name : NamesLikeTheDrivers(*input.content)) names.emplace(name);
  }
  return names;
}

void RemoveOthers(Env& env, const toolchain::Toolchain& toolchain, std::set<std::string>& names) {
  std::vector<std::string> folders = toolchain.cuda->include_directories;
  Append(folders, toolchain.host.system_include_directories);
  const std::optional<std::string> path = toolchain::FindFile(env, folders, "cuda.h");
  const std::string header = path ? env.ReadFile(*path).value_or("") : "";
  const absl::flat_hash_set<std::string_view> words = WordsOf(header);
  std::erase_if(names, [&](const std::string& name) { return !words.contains(name); });
}

}  // namespace

std::vector<std::string_view> NamesLikeTheDrivers(std::string_view object) {
  std::vector<std::string_view> names;
  for (size_t at = object.find(kPrefix); at != object.npos; at = object.find(kPrefix, at + 1)) {
    const std::string_view name = object.substr(at, object.substr(at, kLongestName + 1).find('\0'));
    if (IsLikeTheDrivers(name)) names.push_back(name);
  }
  return names;
}

exec::Action WithDriverFunctions(Env& env, exec::Action action, const toolchain::Toolchain& toolchain) {
  if (!toolchain.cuda) return action;
  std::set<std::string> names = NamesIn(action);
  if (!names.empty() && toolchain.described == nullptr) RemoveOthers(env, toolchain, names);
  if (names.empty()) return action;
  std::string text(kAssembler);
  for (const std::string& name : names) StrAppend(&text, "  driver_function ", name, "\n");
  action.inputs.push_back(exec::MakeInput(kDriverFunctions, std::move(text)));
  const auto artifact = std::find(action.argv.begin(), action.argv.end(), kArtifact);
  if (artifact != action.argv.end()) action.argv.insert(artifact + 1, std::string(kDriverFunctions));
  return action;
}

}  // namespace kernix::build
