// SPDX-License-Identifier: Apache-2.0
#include "common/flags/host_words.h"

#include <string_view>

#include "common/base/strings.h"
#include "common/flags/nvcc_list.h"
#include "common/flags/tables.h"

namespace kernix::flags {
namespace {

void Append(std::string_view prefix, const std::vector<std::string>& pieces, std::vector<std::string>& words) {
  for (const std::string& piece : pieces) words.push_back(StrCat(prefix, piece));
}

// nvcc splits a value at its commas and, like the shell, at its blanks; folders may hold blanks.
void AppendAtLink(const Flag& flag, std::vector<std::string>& words) {
  const Meaning meaning = flag.lacks_value ? Meaning::kNothingMore : flag.meaning();
  if (meaning == Meaning::kCudart) return;
  if (meaning == Meaning::kHostFlags) return Append("", SplitNvccList(flag.value, ", "), words);
  if (meaning == Meaning::kLinkerFlags) return Append("-Wl,", {flag.value}, words);
  if (meaning == Meaning::kLibraryPath) return Append("-L", SplitNvccList(flag.value, ","), words);
  if (meaning == Meaning::kLibrary) return Append("-l", SplitNvccList(flag.value, ","), words);
  Append("", flag.words, words);
}

}  // namespace

std::vector<std::string> HostWordsAtCompile(const std::vector<std::string>& nvcc_words) {
  std::vector<std::string> words;
  for (const Flag& flag : ReadAll(kNvcc, nvcc_words)) {
    if (flag.meaning() == Meaning::kHostFlags) Append("", SplitNvccList(flag.value, ", "), words);
  }
  return words;
}

std::vector<std::string> HostWordsAtLink(const std::vector<std::string>& nvcc_words) {
  std::vector<std::string> words;
  for (const Flag& flag : ReadAll(kNvcc, nvcc_words)) AppendAtLink(flag, words);
  return words;
}

}  // namespace kernix::flags
