// SPDX-License-Identifier: Apache-2.0
#include "common/base/version.h"

namespace kernix {

const std::string& Version() {
  static const std::string version(kBuildVersion);
  return version;
}

const std::string& BuildId() {
  static const std::string build_id(kBuildId);
  return build_id;
}

}  // namespace kernix
