// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kernix::ctl {

// `message` of an error. If it names options by their words in the Python client, a line with kernixctl's words
// follows.
std::string WithOwnWords(const std::string& message);

}  // namespace kernix::ctl
