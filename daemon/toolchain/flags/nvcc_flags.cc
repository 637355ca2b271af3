// SPDX-License-Identifier: Apache-2.0
//
// Flags of nvcc.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/flags/host_words.h"
#include "common/flags/nvcc_list.h"
#include "common/flags/tables.h"
#include "daemon/toolchain/flags/flag_context.h"
#include "daemon/toolchain/flags/macro_flags.h"

namespace kernix::toolchain {
namespace {

using flags::Flag;
using flags::Meaning;
using flags::User;

// nvcc splits a value at its commas and, like the shell, at its blanks.
std::vector<std::string> Pieces(const std::string& value) { return flags::SplitNvccList(value, ", "); }

// Passes a flag on to nvcc, if it contains nothing that a shell would interpret.
absl::Status PassOn(FlagContext& context, const Flag& flag) {
  const bool known = flag.rule != nullptr && flag.rule->user == User::kAnyone;
  for (const std::string& word : flag.words) KERNIX_RETURN_IF_ERROR(CheckWord(flag.text(), word));
  KERNIX_RETURN_IF_ERROR(CheckUser(context, flag, flag.text()));
  if (!known) KERNIX_RETURN_IF_ERROR(CheckNamesNoFile(flag, flag.text()));
  context.result.nvcc.insert(context.result.nvcc.end(), flag.words.begin(), flag.words.end());
  return absl::OkStatus();
}

// For an unknown flag, nvcc itself reports only that it is unknown.
absl::Status PassOnUnknown(FlagContext& context, const Flag& flag) {
  for (const std::string_view prefix : {"-f", "-m", "-W", "-pthread", "-pedantic"}) {
    if (!flag.text().starts_with(prefix)) continue;
    return RefuseFlag(flag.text(),
                      StrCat("nvcc does not know it; for the host compiler, write -Xcompiler=", flag.text()));
  }
  return PassOn(context, flag);
}

absl::Status CheckPtxas(const FlagContext& context, const Flag& given, const std::vector<std::string>& pieces) {
  for (const Flag& flag : flags::ReadAll(flags::kPtxas, pieces)) {
    const std::string text = StrCat(given.text(), " ", flag.text());
    const auto has_slash = [](const std::string& word) { return word.find('/') != std::string::npos; };
    if (flag.user() == User::kNobody) return RefuseFlag(text, flag.reason());
    if (flag.lacks_value) return RefuseFlag(text, kValueMissing);
    if (std::any_of(flag.words.begin(), flag.words.end(), has_slash)) return RefuseFlag(text, kNamesUnseenFile);
    if (context.shared() && flag.user() != User::kAnyone) return RefuseFlag(text, kNotListed);
  }
  return absl::OkStatus();
}

absl::Status CheckCudafe(const Flag& given, const std::vector<std::string>& pieces) {
  for (const Flag& flag : flags::ReadAll(flags::kCudafe, pieces)) {
    if (flag.user() == User::kAnyone) continue;
    return RefuseFlag(StrCat(given.text(), " ", flag.text()),
                      "only --diag_... and --display_error_number may be passed to cudafe++");
  }
  return absl::OkStatus();
}

// Without blanks: "-Xptxas" "-v -O3" becomes "-Xptxas" "-v,-O3".
Flag WithPieces(Flag flag, const std::vector<std::string>& pieces) {
  std::string& last = flag.words.back();
  last = last.substr(0, last.size() - flag.value.size()) + absl::StrJoin(pieces, ",");
  return flag;
}

absl::Status CheckToolFlags(FlagContext& context, const Flag& flag) {
  const std::vector<std::string> pieces = Pieces(flag.value);
  for (const std::string& piece : pieces) KERNIX_RETURN_IF_ERROR(CheckWord(flag.text(), piece));
  const bool ptxas = flag.meaning() == Meaning::kPtxasFlags;
  KERNIX_RETURN_IF_ERROR(ptxas ? CheckPtxas(context, flag, pieces) : CheckCudafe(flag, pieces));
  return PassOn(context, WithPieces(flag, pieces));
}

absl::Status ReadThreads(const Flag& flag, int& threads) {
  if (absl::SimpleAtoi(flag.value, &threads) && threads >= 0) return absl::OkStatus();
  return RefuseFlag(flag.text(), "its value must be a number of threads");
}

// nvcc accepts a list of macros.
absl::Status AddMacros(FlagContext& context, const Flag& flag) {
  const bool define = flag.meaning() == Meaning::kDefine;
  std::vector<std::string>& lines = context.result.definitions;
  for (const std::string& macro : flags::SplitNvccList(flag.value, ",")) {
    KERNIX_RETURN_IF_ERROR(define ? AddDefinition(flag.text(), macro, lines)
                                  : AddUndefinition(flag.text(), macro, lines));
  }
  return absl::OkStatus();
}

absl::Status CheckOne(FlagContext& context, const Flag& flag) {
  CheckedFlags& result = context.result;
  if (flag.rule == nullptr) return PassOnUnknown(context, flag);
  if (flag.user() == User::kNobody) return RefuseFlag(flag.text(), flag.reason());
  if (flag.lacks_value) return RefuseFlag(flag.text(), kValueMissing);
  switch (flag.meaning()) {
    case Meaning::kDefine:
    case Meaning::kUndefine:
      return AddMacros(context, flag);
    case Meaning::kHostFlags:  // see HostWordsAtCompile()
    case Meaning::kIsTheCaseAnyway:
      return absl::OkStatus();
    case Meaning::kThreads:
      return ReadThreads(flag, result.nvcc_threads);
    case Meaning::kCudart:
      return flag.value == "static" ? absl::OkStatus() : RefuseFlag(flag.text(), kCudartIsStatic);
    case Meaning::kPtxasFlags:
    case Meaning::kCudafeFlags:
      return CheckToolFlags(context, flag);
    case Meaning::kRelocatableDeviceCode:
      result.relocatable_device_code = flag.value == "true";
      break;
    case Meaning::kDeviceCompile:
      result.relocatable_device_code = true;
      result.nvcc.emplace_back("-rdc=true");
      return absl::OkStatus();
    default:
      break;
  }
  return PassOn(context, flag);
}

}  // namespace

absl::Status CheckNvccFlags(FlagContext& context, const std::vector<std::string>& words) {
  constexpr std::string_view kNvccCuts = "nvcc would split it at the comma: pass one value at a time";
  CheckedFlags& result = context.result;
  for (const Flag& flag : flags::ReadAll(flags::kNvcc, words)) {
    KERNIX_RETURN_IF_ERROR(CheckOne(context, flag));
  }
  // nvcc passes these to the host compiler before its own macros.
  const std::vector<std::string> own_definitions = std::exchange(result.definitions, {});
  KERNIX_RETURN_IF_ERROR(CheckHostFlags(context, flags::HostWordsAtCompile(words), result.host));
  result.definitions.insert(result.definitions.end(), own_definitions.begin(), own_definitions.end());
  for (const std::string& flag : result.host) {
    if (flag.find(',') != std::string::npos) return RefuseFlag(flag, kNvccCuts);
  }
  return absl::OkStatus();
}

}  // namespace kernix::toolchain
