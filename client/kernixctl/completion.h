// SPDX-License-Identifier: Apache-2.0
//
// What bash and zsh complete. Their scripts ask kernixctl itself, so they know every command and option of the
// kernixctl that the user types.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/kernixctl/command.h"

namespace kernix::ctl {

// `kernixctl __complete WORDS...` prints CompletionLines().
inline constexpr std::string_view kCompletionRequest = "__complete";

// What the last of `words`, the arguments up to the cursor, may become: lines of a word, a tab, and what it means; or
// the line ":files" or ":folders". `words` may be split at '=', as bash splits them.
std::string CompletionLines(const Command& root, const std::vector<std::string>& words);

extern const char kBashCompletion[];
extern const char kZshCompletion[];

}  // namespace kernix::ctl
