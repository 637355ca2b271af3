// SPDX-License-Identifier: Apache-2.0
//
// Flags of g++ and clang++.
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/flags/tables.h"
#include "daemon/toolchain/flags/flag_context.h"
#include "daemon/toolchain/flags/macro_flags.h"

namespace kernix::toolchain {
namespace {

using flags::Flag;
using flags::Meaning;
using flags::User;

absl::Status CheckAssembler(const FlagContext& context, const Flag& flag) {
  const std::vector<std::string> words = absl::StrSplit(flag.value, ',');
  for (const Flag& word : flags::ReadAll(flags::kAssembler, words)) {
    if (word.rule != nullptr && CheckUser(context, word, word.text()).ok()) continue;
    return RefuseFlag(flag.text(),
                      "only -m..., --noexecstack and --compress-debug-sections may be passed to the assembler");
  }
  return absl::OkStatus();
}

absl::Status AddKeyFile(FlagContext& context, const Flag& flag) {
  if (!flag.value.starts_with("/")) return RefuseFlag(flag.text(), "give the file's absolute path");
  KERNIX_ASSIGN_OR_RETURN(const Digest digest, DigestOfFile(context, flag.text(), flag.value));
  context.result.files.push_back({"", flag.value, digest});
  return absl::OkStatus();
}

// A file that a g++ flag names may have any path; for nvcc, a shell would interpret the path.
absl::Status CheckWords(const FlagContext& context, const Flag& flag) {
  if (flag.meaning() == Meaning::kFileForKey && context.language != v1::LANGUAGE_CUDA) return absl::OkStatus();
  for (const std::string& word : flag.words) KERNIX_RETURN_IF_ERROR(CheckHostWord(context, flag.text(), word));
  return absl::OkStatus();
}

absl::Status CheckMeaning(FlagContext& context, const Flag& flag) {
  if (flag.meaning() == Meaning::kFileForKey) return AddKeyFile(context, flag);
  if (flag.meaning() == Meaning::kAssemblerFlags) return CheckAssembler(context, flag);
  return CheckNamesNoFile(flag, flag.text());
}

}  // namespace

absl::Status CheckHostFlag(FlagContext& context, const Flag& flag, std::vector<std::string>& passed) {
  std::vector<std::string>& definitions = context.result.definitions;
  if (flag.user() == User::kNobody) return RefuseFlag(flag.text(), flag.reason());
  if (flag.lacks_value) return RefuseFlag(flag.text(), kValueMissing);
  if (flag.meaning() == Meaning::kDefine) return AddDefinition(flag.text(), flag.value, definitions);
  if (flag.meaning() == Meaning::kUndefine) return AddUndefinition(flag.text(), flag.value, definitions);
  KERNIX_RETURN_IF_ERROR(CheckWords(context, flag));
  std::vector<std::string> words = flag.words;
  if (flag.meaning() == Meaning::kProcessor && flag.value == "native") {
    if (context.toolchain.described != nullptr) {
      return RefuseFlag(flag.text(), "only the compiler knows what it means, and this node has none: name a processor");
    }
    KERNIX_ASSIGN_OR_RETURN(words, context.facts.ExpandNative(context.toolchain.host, flag.text()));
  } else {
    KERNIX_RETURN_IF_ERROR(CheckUser(context, flag, flag.text()));
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

}  // namespace kernix::toolchain
