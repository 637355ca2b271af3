// SPDX-License-Identifier: Apache-2.0
//
// How compilers with and without trigraph support read a text.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace kernix::language {

// `text` and, if it contains trigraphs, a second version with the trigraphs replaced. The compiler's flags decide which
// version it reads. The views point into `text` and `storage`.
std::vector<std::string_view> Readings(std::string_view text, std::deque<std::string>& storage);

}  // namespace kernix::language
