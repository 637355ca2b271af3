// SPDX-License-Identifier: Apache-2.0
//
// What the host compiler gets of nvcc's flags.
#pragma once

#include <string>
#include <vector>

namespace kernix::flags {

// When it compiles: what -Xcompiler holds.
std::vector<std::string> HostWordsAtCompile(const std::vector<std::string>& nvcc_words);

// When it links: all of them, each in the spelling of the host compiler. "-library-path /x" is "-L/x", "-Xlinker=a,b"
// is "-Wl,a,b", and what -Xcompiler holds stands by itself. -cudart is left out, since the host compiler has nothing
// like it. A flag that lacks its value stays as it is.
std::vector<std::string> HostWordsAtLink(const std::vector<std::string>& nvcc_words);

}  // namespace kernix::flags
