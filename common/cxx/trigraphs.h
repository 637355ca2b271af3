// SPDX-License-Identifier: Apache-2.0
//
// What a text says to compilers that know trigraphs, and to those that do not.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace kernix::language {

// `text`; and, where it has trigraphs, that text once more with what they stand for: the compiler's flags decide which
// of the two counts. Points into `text` and `storage`.
std::vector<std::string_view> Readings(std::string_view text, std::deque<std::string>& storage);

}  // namespace kernix::language
