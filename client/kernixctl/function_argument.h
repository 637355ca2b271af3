// SPDX-License-Identifier: Apache-2.0
//
// What `--function` takes.
#pragma once

#include <string_view>

#include "kernix/load.h"

namespace kernix::ctl {

// "add=arg,arg,ret", or "add" for one whose signature says it. Tokens end at commas outside of brackets, so that
// "f=arg,scratch:max(a,b)" has two; white space around them is none of theirs. Any text is taken: what makes no sense
// as a token is the daemon's to refuse.
Function ParseFunction(std::string_view text);

}  // namespace kernix::ctl
