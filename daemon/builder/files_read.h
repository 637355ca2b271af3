// SPDX-License-Identifier: Apache-2.0
//
// A build reads its input root and the toolchain, or its artifact would depend on what no key covers. Checked twice:
// before the build in the sources, which gives the user's line; after it by what the tools say they have read, which
// macros cannot deceive, and in the headers that the compiler did read. (Of the others nothing is asked: clients send
// what might be included.)
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/os/env.h"
#include "daemon/plan/plan.h"
#include "daemon/request/request.h"
#include "daemon/toolchain/flags/flags.h"

namespace kernix::build {

// Before the build: INVALID_REQUEST for a source that names a file which is neither. A per-user daemon lets an absolute
// `#include` pass: such a header is recorded as the toolchain's are, and looked at again for every hit.
absl::Status CheckSources(Env& env, const BuildRequest& request, toolchain::FlagPolicy policy);

// What the tools say they have read, in Makefile syntax, one text of each unit.
struct ToolReads {
  std::vector<std::string_view> compiler;
  std::vector<std::string_view> assembler;  // none: it does not tell
};

// After the build: the same of what the tools have read, and of the texts of the headers among that. `contents` has
// every header of `request`.
absl::Status CheckFilesRead(Env& env, const BuildRequest& request, const HeaderContents& contents,
                            const ToolReads& reads, toolchain::FlagPolicy policy);

// What one command has tried to include.
struct IncludesTried {
  std::vector<std::string> read;      // as it says itself
  std::vector<std::string> not_read;  // names that it complains of
};

// The same of a command that failed, for a shared daemon: INVALID_REQUEST where something lies outside the request and
// the toolchain, or may tell of that; in the same words whether it is there or not.
absl::Status CheckIncludes(Env& env, const BuildRequest& request, const HeaderContents& contents,
                           const IncludesTried& includes);

// For a shared daemon, the same whether the assembler has read a file that is none of the request's, or has not found
// it.
absl::Status AssemblerTextError();

}  // namespace kernix::build
