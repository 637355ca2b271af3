// SPDX-License-Identifier: Apache-2.0
//
// Ensures that a build reads only its input root and the toolchain; otherwise its artifact would depend on files that
// no key covers. There are two checks. The check before the build reads the sources, so its errors have the user's
// line. The check after the build uses the files that the tools report, which macros cannot deceive, and the headers
// that the compiler has read. (Headers that it has not read are not checked: clients send every header that might be
// included.)
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/os/env.h"
#include "daemon/plan/plan.h"
#include "daemon/request/request.h"
#include "daemon/toolchain/flags/flags.h"

namespace kernix::build {

// Before the build: INVALID_REQUEST for a source that names a file outside both. A private daemon accepts an absolute
// `#include`: it records such a header like those of the toolchain and checks it again for every hit.
absl::Status CheckSources(Env& env, const BuildRequest& request, toolchain::FlagPolicy policy);

// The files that the tools report as read, in Makefile syntax, one text for each unit.
struct ToolReads {
  std::vector<std::string_view> compiler;
  std::vector<std::string_view> assembler;  // empty: the assembler cannot report
};

// After the build: makes the same check for the files that the tools have read, and for the texts of the headers among
// them. `contents` must have every header of `request`.
absl::Status CheckFilesRead(Env& env, const BuildRequest& request, const HeaderContents& contents,
                            const ToolReads& reads, toolchain::FlagPolicy policy);

// The files that one command has tried to include.
struct IncludesTried {
  std::vector<std::string> read;      // spelled as the command reports them
  std::vector<std::string> not_read;  // names that the command reports as missing
};

// Makes the same check for a command that failed, for a shared daemon. INVALID_REQUEST if a file lies outside the
// request and the toolchain, or its name could reveal whether such a file exists. The error has the same words whether
// or not the file exists.
absl::Status CheckIncludes(Env& env, const BuildRequest& request, const HeaderContents& contents,
                           const IncludesTried& includes);

// For a shared daemon: the same error whether the assembler has read a file outside the request or has not found it.
absl::Status AssemblerTextError();

}  // namespace kernix::build
