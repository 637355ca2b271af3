// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/flags/tool_flags.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/flags/flag_table.h"

namespace kernix::toolchain {
namespace {

constexpr std::string_view kNotOneLine = "its value would continue on the next line";
constexpr size_t kLongestRawDelimiter = 16;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c); }

bool IsIdentifier(std::string_view text) {
  return !text.empty() && IsNameStart(text.front()) && std::all_of(text.begin(), text.end(), IsNamePart);
}

// "X", or "F(a, b...)".
bool IsMacroName(std::string_view text) {
  const size_t open = text.find('(');
  if (open == text.npos) return IsIdentifier(text);
  const std::string_view parameters = text.substr(open + 1);
  const auto fits = [](char c) { return IsNamePart(c) || c == ',' || c == ' ' || c == '.'; };
  return IsIdentifier(text.substr(0, open)) && parameters.ends_with(')') &&
         std::all_of(parameters.begin(), parameters.end() - 1, fits);
}

// Whether every comment that could begin in `value`, inside a literal or not, also ends in it.
bool ClosesComments(std::string_view value) {
  const size_t open = value.rfind("/*");
  return open == value.npos || value.find("*/", open + 2) != value.npos;
}

// The same for R"x(...)x". The quote that ends a literal with an R at its end is not followed by such a beginning.
bool ClosesRawStrings(std::string_view value) {
  for (size_t at = value.find("R\""); at != value.npos; at = value.find("R\"", at + 1)) {
    const std::string_view rest = value.substr(at + 2);
    const std::string_view delimiter = rest.substr(0, rest.find('('));
    const bool opens = delimiter.size() < rest.size() && delimiter.size() <= kLongestRawDelimiter &&
                       delimiter.find_first_of(" )\\\t\"") == delimiter.npos;
    if (opens && rest.find(StrCat(")", delimiter, "\""), delimiter.size()) == rest.npos) return false;
  }
  return true;
}

absl::Status CheckValue(std::string_view flag, std::string_view value) {
  const auto is_control = [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; };
  if (std::any_of(value.begin(), value.end(), is_control)) return RefuseFlag(flag, "it contains control characters");
  const size_t end = value.find_last_not_of(" \t");
  const bool continued = end != value.npos && value[end] == '\\';
  // Compilers that support trigraphs read "??/" as a backslash.
  if (continued || value.find("?\?/") != value.npos) return RefuseFlag(flag, kNotOneLine);
  if (!ClosesComments(value) || !ClosesRawStrings(value)) return RefuseFlag(flag, kNotOneLine);
  return absl::OkStatus();
}

absl::Status NoIdentifier(std::string_view flag, std::string_view name) {
  return RefuseFlag(flag, StrCat("\"", name, "\" is not a macro name"));
}

// -D and -U become lines of the source instead of words of a command. So no shell, and no tool that takes @file for
// further flags, can misread a macro.

// Adds the line that is equivalent to -D`text` ("X", "X=1", "F(x)=x"): "#define X 1", without a line end. `flag` is the
// flag as the user gave it. INVALID_REQUEST for a name that is not an identifier, or a value that would continue on the
// next line.
absl::Status AddDefinition(std::string_view flag, std::string_view text, std::vector<std::string>& lines) {
  const size_t equals = text.find('=');
  std::string_view name = text.substr(0, equals);
  while (name.ends_with(' ')) name.remove_suffix(1);
  const std::string_view value = equals == text.npos ? "1" : text.substr(equals + 1);
  if (!IsMacroName(name)) return NoIdentifier(flag, name);
  KERNIX_RETURN_IF_ERROR(CheckValue(flag, value));
  lines.push_back(StrCat("#define ", name, " ", value));
  return absl::OkStatus();
}

// The same for -U.
absl::Status AddUndefinition(std::string_view flag, std::string_view name, std::vector<std::string>& lines) {
  if (!IsIdentifier(name)) return NoIdentifier(flag, name);
  lines.push_back(StrCat("#undef ", name));
  return absl::OkStatus();
}

// Flags of g++ and clang++.

using flags::Flag;
using flags::Meaning;

absl::Status CheckAssembler(const Flag& flag) {
  const std::vector<std::string> words = absl::StrSplit(flag.value, ',');
  for (const Flag& word : flags::ReadAll(flags::kAssembler, words)) {
    if (word.rule != nullptr) continue;
    return RefuseFlag(flag.text(),
                      "only -m..., --noexecstack and --compress-debug-sections may be passed to the assembler");
  }
  return CheckNamesNoFile(flag, flag.text());
}

absl::Status AddKeyFile(FlagContext& context, const Flag& flag) {
  if (!flag.value.starts_with("/")) return RefuseFlag(flag.text(), "give the file's absolute path");
  KERNIX_ASSIGN_OR_RETURN(const Digest digest, DigestOfFile(context, flag.text(), flag.value));
  context.result.files.push_back({"", flag.value, digest});
  return absl::OkStatus();
}

// A file that a g++ flag names may have any path; for nvcc, a shell would interpret the path.
absl::Status CheckWords(const FlagContext& context, const Flag& flag) {
  if (flag.meaning() == Meaning::kFileForKey && !context.nvcc()) return absl::OkStatus();
  for (const std::string& word : flag.words) KERNIX_RETURN_IF_ERROR(CheckHostWord(context, flag.text(), word));
  return absl::OkStatus();
}

absl::Status CheckMeaning(FlagContext& context, const Flag& flag) {
  if (flag.meaning() == Meaning::kFileForKey) return AddKeyFile(context, flag);
  if (flag.meaning() == Meaning::kAssemblerFlags) return CheckAssembler(flag);
  return CheckNamesNoFile(flag, flag.text());
}

}  // namespace

absl::Status CheckHostFlag(FlagContext& context, const Flag& flag, std::vector<std::string>& passed) {
  std::vector<std::string>& definitions = context.result.definitions;
  KERNIX_RETURN_IF_ERROR(CheckUser(context, flag, flag.text()));
  if (flag.lacks_value) return RefuseFlag(flag.text(), kValueMissing);
  if (flag.meaning() == Meaning::kDefine) return AddDefinition(flag.text(), flag.value, definitions);
  if (flag.meaning() == Meaning::kUndefine) return AddUndefinition(flag.text(), flag.value, definitions);
  KERNIX_RETURN_IF_ERROR(CheckWords(context, flag));
  std::vector<std::string> words = flag.words;
  if (flag.meaning() == Meaning::kProcessor && flag.value == "native") {
    if (context.toolchain.described != nullptr) {
      return RefuseFlag(flag.text(), "only a compiler knows its meaning, and this node has none: name a processor");
    }
    KERNIX_ASSIGN_OR_RETURN(words, context.facts.ExpandNative(context.toolchain.host, flag.text()));
  } else {
    KERNIX_RETURN_IF_ERROR(CheckMeaning(context, flag));
  }
  passed.insert(passed.end(), words.begin(), words.end());
  return absl::OkStatus();
}

absl::Status CheckHostFlags(FlagContext& context, const std::vector<std::string>& words,
                            std::vector<std::string>& passed) {
  for (const Flag& flag : flags::ReadAll(flags::kCompiler, words)) {
    KERNIX_RETURN_IF_ERROR(CheckHostFlag(context, flag, passed));
  }
  return absl::OkStatus();
}

// Flags of nvcc.

namespace {

// nvcc splits a value at its commas and, like the shell, at its blanks.
std::vector<std::string> Pieces(const std::string& value) { return flags::SplitNvccList(value, ", "); }

// Passes a flag on to nvcc, if it contains nothing that a shell would interpret.
absl::Status PassOn(FlagContext& context, const Flag& flag) {
  for (const std::string& word : flag.words) KERNIX_RETURN_IF_ERROR(CheckWord(flag.text(), word));
  KERNIX_RETURN_IF_ERROR(CheckNamesNoFile(flag, flag.text()));
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

absl::Status CheckPtxas(const Flag& given, const std::vector<std::string>& pieces) {
  for (const Flag& flag : flags::ReadAll(flags::kPtxas, pieces)) {
    if (flag.rule != nullptr) return RefuseFlag(StrCat(given.text(), " ", flag.text()), flag.reason());
  }
  return absl::OkStatus();
}

absl::Status CheckCudafe(const Flag& given, const std::vector<std::string>& pieces) {
  for (const Flag& flag : flags::ReadAll(flags::kCudafe, pieces)) {
    if (flag.rule != nullptr) continue;
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
  KERNIX_RETURN_IF_ERROR(ptxas ? CheckPtxas(flag, pieces) : CheckCudafe(flag, pieces));
  return PassOn(context, WithPieces(flag, pieces));
}

// It changes no byte: kernixd itself runs what nvcc would run side by side.
absl::Status CheckThreads(const Flag& flag) {
  int threads = 0;
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
  KERNIX_RETURN_IF_ERROR(CheckUser(context, flag, flag.text()));
  if (flag.rule == nullptr) return PassOnUnknown(context, flag);
  if (flag.lacks_value) return RefuseFlag(flag.text(), kValueMissing);
  switch (flag.meaning()) {
    case Meaning::kDefine:
    case Meaning::kUndefine:
      return AddMacros(context, flag);
    case Meaning::kHostFlags:  // see HostWordsAtCompile()
    case Meaning::kIsTheCaseAnyway:
      return absl::OkStatus();
    case Meaning::kThreads:
      return CheckThreads(flag);
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
  // nvcc takes such a word for a flag.
  if (flag.words.size() > 1 && flag.value.starts_with("-")) return RefuseFlag(flag.text(), kValueMissing);
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
