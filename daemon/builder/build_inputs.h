// SPDX-License-Identifier: Apache-2.0
//
// What a build was made from, for people: its settings, and its inputs, one by one, in the form in which builds are
// compared.
#pragma once

#include <string>
#include <vector>

#include "daemon/cache/entry.h"
#include "daemon/request/request.h"

namespace kernix::build {

// The definitions, flags and settings of a build, as a compiler or kernixctl takes them. Shortens long texts and long
// lists, and says so.
std::vector<std::string> DescribeBuild(const BuildRequest& request);

// The inputs that a key covers, sorted. They name nothing that the key does not cover: no path of this machine, no
// user. The inputs of a kind that there are very many of appear as one.
std::vector<cache::BuildInput> InputsOf(const BuildRequest& request);

}  // namespace kernix::build
