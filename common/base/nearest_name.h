// SPDX-License-Identifier: Apache-2.0
//
// Guesses which name somebody meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernix {

// The one of `names` with the fewest changed letters (added, removed, or replaced) from `name`; empty if all of them
// differ in more than a third of its letters.
std::string NearestName(std::string_view name, const std::vector<std::string>& names);

// "Did you mean `nearest`?" with a leading space, or nothing.
std::string DidYouMean(std::string_view name, const std::vector<std::string>& names);

}  // namespace kernix
