// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/build_inputs.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/digest.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/base/version.h"
#include "daemon/builder/build_description.h"

namespace kernix::build {
namespace {

using cache::BuildInput;
using cache::InputKind;

constexpr size_t kMostOfAKind = 2000;
constexpr size_t kLongestName = 200;

// The inputs of one kind.
class Inputs {
 public:
  explicit Inputs(InputKind kind) : kind_(kind) {}

  void Add(std::string_view name, std::string value) {
    if (name.size() > kLongestName) value += DigestOf(name).Raw();
    found_.push_back({kind_, ToValidUtf8(name.substr(0, kLongestName)), std::move(value)});
  }

  void MoveTo(std::vector<BuildInput>& all) {
    std::sort(found_.begin(), found_.end());
    if (found_.size() > kMostOfAKind) found_ = {AllInOne()};
    all.insert(all.end(), found_.begin(), found_.end());
  }

 private:
  BuildInput AllInOne() const {
    CanonicalHasher hasher("kernix-inputs");
    for (const BuildInput& input : found_) hasher.Field(input.name, input.value);
    return {kind_, "(one of very many)", hasher.Finish().Raw()};
  }

  const InputKind kind_;
  std::vector<BuildInput> found_;
};

// "#define N 4" -> "N=4".
std::string DefinitionName(std::string_view line) {
  constexpr std::string_view kDefine = "#define ";
  if (!line.starts_with(kDefine)) return std::string(line);
  std::string name(line.substr(kDefine.size()));
  const size_t end = name.find_first_of(" (");
  if (end != std::string::npos && name[end] == ' ') name[end] = '=';
  return name;
}

std::string ToolName(const toolchain::HostCompiler& host) {
  return StrCat(host.kind == toolchain::HostCompilerKind::kClang ? "Clang " : "GCC ", host.version);
}

Inputs SourcesOf(const BuildRequest& request) {
  Inputs sources(InputKind::kSource);
  for (const Unit& unit : request.units) {
    for (const language::SourceText& source : unit.sources) sources.Add(source.label, DigestOf(source.text).Raw());
  }
  return sources;
}

Inputs HeadersOf(const BuildRequest& request) {
  Inputs headers(InputKind::kHeader);
  for (const HeaderRef& header : request.headers) headers.Add(header.path, header.digest.Raw());
  return headers;
}

// By the name under which the plan stages a file, which the key covers. The tools find the others themselves, by names
// that flags say.
Inputs FlagFilesOf(const BuildRequest& request) {
  Inputs files(InputKind::kFlagFile);
  for (const toolchain::FlagFile& file : request.flag_files) {
    files.Add(Basename(file.staged.empty() ? file.path : file.staged), file.digest.Raw());
  }
  return files;
}

Inputs DefinitionsOf(const BuildRequest& request) {
  Inputs definitions(InputKind::kDefinition);
  for (const std::string& line : request.definitions) definitions.Add(DefinitionName(line), "");
  return definitions;
}

Inputs FlagsOf(const BuildRequest& request) {
  Inputs flags(InputKind::kFlag);
  for (const std::string& flag : DescribeFlags(request)) flags.Add(flag, "");
  return flags;
}

Inputs ArchitecturesOf(const BuildRequest& request) {
  Inputs architectures(InputKind::kArchitecture);
  for (const std::string& architecture : request.architectures) architectures.Add(architecture, "");
  return architectures;
}

Inputs FunctionsOf(const BuildRequest& request) {
  Inputs functions(InputKind::kFunction);
  for (const language::FunctionSpec& function : request.functions) {
    functions.Add(StrCat(function.name, "(", absl::StrJoin(function.Tokens(), ", "), ")"), "");
  }
  return functions;
}

Inputs ToolsOf(const toolchain::Toolchain& toolchain) {
  Inputs tools(InputKind::kTool);
  tools.Add(ToolName(toolchain.host), toolchain.host.identity.Raw());
  if (toolchain.cuda) tools.Add(StrCat("nvcc ", toolchain.cuda->version), toolchain.cuda->identity.Raw());
  return tools;
}

Inputs IncludePathsOf(const BuildRequest& request) {
  std::string places;
  for (const Unit& unit : request.units) {
    for (const SearchedRoot& root : unit.roots) StrAppend(&places, root.root, root.only_quoted ? "q" : " ");
    places += '\n';
  }
  Inputs paths(InputKind::kIncludePaths);
  paths.Add("", DigestOf(places).Raw());
  return paths;
}

Inputs Kernix() {
  Inputs kernix(InputKind::kKernix);
  kernix.Add("", BuildId());
  return kernix;
}

}  // namespace

std::vector<BuildInput> InputsOf(const BuildRequest& request) {
  std::vector<BuildInput> all;
  for (Inputs inputs : {SourcesOf(request), HeadersOf(request), FlagFilesOf(request), DefinitionsOf(request),
                        FlagsOf(request), ArchitecturesOf(request), FunctionsOf(request), ToolsOf(*request.toolchain),
                        IncludePathsOf(request), Kernix()}) {
    inputs.MoveTo(all);
  }
  return all;
}

}  // namespace kernix::build
