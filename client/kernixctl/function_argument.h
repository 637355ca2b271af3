// SPDX-License-Identifier: Apache-2.0
//
// The argument of `--function`.
#pragma once

#include <string_view>

#include "kernix/load.h"

namespace kernix::ctl {

// "add=arg,arg,ret", or "add" to infer the tokens from the signature. Tokens end at commas outside of brackets, so
// "f=arg,scratch:max(a,b)" has two; white space around them is dropped. Accepts any text: the daemon refuses invalid
// tokens.
Function ParseFunction(std::string_view text);

}  // namespace kernix::ctl
