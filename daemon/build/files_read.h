// SPDX-License-Identifier: Apache-2.0
//
// A build reads its input root and the toolchain, or its artifact would depend on what no key covers. Checked twice: in
// the texts, which gives the user's line, and by what the tools say they have read, which macros cannot deceive.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "daemon/base/env.h"
#include "daemon/build/plan.h"
#include "daemon/build/request.h"
#include "daemon/toolchain/flags.h"

namespace kernix::build {

// Before the build: INVALID_REQUEST for a source or header that names a file which is neither. A per-user daemon lets
// an absolute `#include` pass: such a header is recorded as the toolchain's are, and looked at again for every hit.
absl::Status CheckTexts(Env& env, const BuildRequest& request, const HeaderContents& contents,
                        toolchain::FlagPolicy policy);

// After the build: the same of what the compiler (`dependency_file`) and the assembler (`assembler_file`, empty when it
// does not tell) have read.
absl::Status CheckFilesRead(Env& env, const toolchain::Toolchain& toolchain, std::string_view dependency_file,
                            std::string_view assembler_file, toolchain::FlagPolicy policy);

}  // namespace kernix::build
