// SPDX-License-Identifier: Apache-2.0
//
// How a text may be spelled besides how it is: for who must not overlook a word.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace kernix::language {

// `text` with each word in one piece that a line's end behind a backslash cuts in two ("__has_inc\<newline>lude"), and
// with such ends spelled without blanks; and, where it has trigraphs, that text once more with what they stand for: the
// compiler's flags decide which of the two counts. Lines keep their numbers, but for the rest of a word's own. Points
// into `text`, or into what is added to `storage`.
std::vector<std::string_view> SplicedTexts(std::string_view text, std::deque<std::string>& storage);

// A name that is spelled over several lines.
std::string WithoutSplices(std::string_view name);

}  // namespace kernix::language
