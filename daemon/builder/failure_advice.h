// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kernix::build {

// What to do about `error`, a message of a compiler or a linker, if it names a symbol that nothing defines, a header or
// a library of CUDA that is not there, or an array that is called with wrong indices; otherwise empty.
std::string AdviceForFailure(std::string_view error);

}  // namespace kernix::build
