// SPDX-License-Identifier: Apache-2.0
//
// Errors of the operating system, as exceptions.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace kernix::spawn {

// Throws std::system_error with errno's text unless `ok`: "cannot mount /usr: Operation not permitted".
inline void Require(bool ok, const std::string& what) {
  if (!ok) throw std::system_error(errno, std::generic_category(), "cannot " + what);
}

}  // namespace kernix::spawn
