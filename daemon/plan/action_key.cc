// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/action_key.h"

#include "daemon/language/spec/function_spec.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/language/write/kernel_headers.h"
#include "daemon/language/write/translation_unit.h"
#include "daemon/plan/plan.h"
#include "daemon/request/request.h"

namespace kernix::build {
namespace {

void AddStrings(CanonicalHasher& hasher, std::string_view name, const std::vector<std::string>& values) {
  hasher.List(name, values.size());
  for (const std::string& value : values) hasher.Field("item", value);
}

void AddSources(CanonicalHasher& hasher, const std::vector<language::SourceText>& sources) {
  hasher.List("sources", sources.size());
  for (const language::SourceText& source : sources) {
    hasher.Field("label", source.label).Field("text", source.text);
  }
}

void AddUnits(CanonicalHasher& hasher, const BuildRequest& request) {
  hasher.List("units", request.units.size());
  for (const Unit& unit : request.units) {
    hasher.Field("unit_language", static_cast<uint64_t>(unit.language));
    AddSources(hasher, unit.sources);
    hasher.List("roots", unit.roots.size());
    for (const SearchedRoot& root : unit.roots) {
      hasher.Field("root", root.root).Field("only_quoted", uint64_t{root.only_quoted});
    }
    // The text itself as well: a generator that changed without its number must not be answered with older artifacts.
    hasher.Field("translation_unit", TranslationUnit(request, unit));
  }
}

void AddFunctions(CanonicalHasher& hasher, const std::vector<language::FunctionSpec>& functions) {
  hasher.List("functions", functions.size());
  for (const language::FunctionSpec& function : functions) {
    hasher.Field("name", function.name);
    hasher.Field("callee", function.callee);
    AddStrings(hasher, "tokens", function.Tokens());
  }
}

void AddHeaders(CanonicalHasher& hasher, const BuildRequest& request) {
  hasher.Field("include_root_count", request.include_root_count);
  hasher.List("headers", request.headers.size());
  for (const HeaderRef& header : request.headers) {
    hasher.Field("root", header.include_root).Field("path", header.path).Field("digest", header.digest);
  }
}

void AddFlagFiles(CanonicalHasher& hasher, const std::vector<toolchain::FlagFile>& files) {
  hasher.List("flag_files", files.size());
  for (const toolchain::FlagFile& file : files) hasher.Field("staged", file.staged).Field("digest", file.digest);
}

void AddOptions(CanonicalHasher& hasher, const BuildRequest& request) {
  AddStrings(hasher, "compile_flags", request.compile_flags);
  AddStrings(hasher, "definitions", request.definitions);
  AddStrings(hasher, "link_flags", request.link_flags);
  AddFlagFiles(hasher, request.flag_files);
  AddStrings(hasher, "architectures", request.architectures);
  hasher.Field("optimization_level", static_cast<uint64_t>(request.optimization_level));
  hasher.Field("use_fast_math", uint64_t{request.use_fast_math});
  hasher.Field("allow_cuda_graph", uint64_t{request.allow_cuda_graph});
  hasher.Field("keep", uint64_t{request.keep});
}

Digest KernelHeadersDigest() {
  CanonicalHasher hasher("kernix-kernel-headers-1");
  for (const language::GeneratedFile& header : language::KernelHeaders()) {
    hasher.Field("path", header.path).Field("text", header.text);
  }
  return hasher.Finish();
}

void AddToolchain(CanonicalHasher& hasher, const BuildRequest& request) {
  hasher.Field("toolchain", request.toolchain->identity);
  hasher.Field("relocatable_device_code", uint64_t{request.relocatable_device_code});
  if (request.toolkit_path_in_artifact) hasher.Field("toolkit_path", request.toolchain->cuda->root);
}

// How kernix itself turns requests into artifacts.
void AddKernix(CanonicalHasher& hasher) {
  static const Digest kernel_headers = KernelHeadersDigest();
  hasher.Field("kernel_headers", kernel_headers);
  hasher.Field("plan_version", uint64_t{kPlanVersion});
  hasher.Field("generator_version", uint64_t{language::kGeneratorVersion});
}

}  // namespace

Digest ActionKey(const BuildRequest& request) {
  CanonicalHasher hasher("kernix-artifact-key-1");
  hasher.Field("language", static_cast<uint64_t>(request.language));
  AddUnits(hasher, request);
  AddFunctions(hasher, request.functions);
  AddHeaders(hasher, request);
  AddOptions(hasher, request);
  AddToolchain(hasher, request);
  AddKernix(hasher);
  return hasher.Finish();
}

}  // namespace kernix::build
