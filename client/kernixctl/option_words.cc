// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/option_words.h"

#include <string_view>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/base/strings.h"

namespace kernix::ctl {
namespace {

struct OptionWords {
  std::string_view python;
  std::string_view own;
};

constexpr OptionWords kOptions[] = {
    {"compute_capability", "--arch"},     {"extra_cflags", "--flag"},       {"extra_cuda_cflags", "--flag"},
    {"extra_include_paths", "--include"}, {"extra_ldflags", "--link-flag"}, {"'functions'", "--function"},
};

}  // namespace

std::string WithOwnWords(const std::string& message) {
  std::vector<std::string> words;
  for (const OptionWords& option : kOptions) {
    if (message.find(option.python) != std::string::npos) words.push_back(StrCat(option.python, " is ", option.own));
  }
  return words.empty() ? message : StrCat(message, "\nIn kernixctl, ", absl::StrJoin(words, ", "), ".");
}

}  // namespace kernix::ctl
