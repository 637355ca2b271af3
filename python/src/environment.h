// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kernix::python {

// All environment variables that a load depends on, as they are now: equal texts mean that none of them changed. Fast
// (a load of the same thing asks every time). Needs the GIL, under which Python changes the environment.
std::string EnvironmentFingerprint();

}  // namespace kernix::python
