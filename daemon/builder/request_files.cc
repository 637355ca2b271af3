// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/request_files.h"

#include <algorithm>
#include <string_view>

#include "common/base/paths.h"
#include "common/wire/input_root.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/plan/compiled_preamble.h"
#include "daemon/plan/plan.h"

namespace kernix::build {
namespace {

constexpr std::string_view kOwnFolders[] = {kUnitFolder,  kKernelHeaders,  kMacroFolder,           kSlimFolder,
                                            kProbeFolder, kPreambleFolder, kCompiledPreambleFolder};

}  // namespace

bool RequestFiles::HasHeader(const std::string& path) const {
  if (headers_.empty()) {
    for (const HeaderRef& header : request_.headers) headers_.insert(NormalizePath(HeaderName(request_, header)));
  }
  return headers_.contains(path);
}

bool RequestFiles::HasSource(const std::string& path) const {
  return std::any_of(request_.units.begin(), request_.units.end(), [&](const Unit& unit) {
    return std::any_of(unit.sources.begin(), unit.sources.end(),
                       [&](const language::SourceText& source) { return path == language::ToolName(source.label); });
  });
}

bool RequestFiles::Has(const std::string& path) const {
  if (IsBelow(path, kIncludeRootsFolder)) return HasHeader(path);
  if (IsBelow(path, language::kSourceFolder)) return HasSource(path);
  return std::any_of(std::begin(kOwnFolders), std::end(kOwnFolders),
                     [&](std::string_view folder) { return IsBelow(path, folder); });
}

}  // namespace kernix::build
