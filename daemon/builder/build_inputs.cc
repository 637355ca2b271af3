// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/build_inputs.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/digest.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/base/version.h"

namespace kernix::build {
namespace {

using cache::BuildInput;
using cache::InputKind;

// Of a description.
constexpr size_t kLongestText = 500;
constexpr size_t kMostTexts = 200;

constexpr size_t kMostOfAKind = 2000;
constexpr size_t kLongestName = 200;

std::string Shortened(const std::string& text) {
  if (text.size() <= kLongestText) return ToValidUtf8(text);
  return StrCat(ToValidUtf8(text.substr(0, kLongestText)), "...");
}

// The settings of a build, and its flags, but no definitions of macros.
std::vector<std::string> DescribeFlags(const BuildRequest& request) {
  std::vector<std::string> flags = {StrCat("-O", request.optimization_level)};
  if (request.use_fast_math) flags.push_back("--use-fast-math");
  if (!request.allow_cuda_graph) flags.push_back("--no-cuda-graph");
  if (request.keep) flags.push_back("--keep");
  if (request.units.size() > 1) flags.push_back("--separate");
  for (const std::vector<std::string>* more : {&request.host_flags, &request.nvcc_flags, &request.link_flags}) {
    flags.insert(flags.end(), more->begin(), more->end());
  }
  return flags;
}

class Inputs {
 public:
  void Add(InputKind kind, std::string_view name, std::string value = "") {
    if (name.size() > kLongestName) value += DigestOf(name).Raw();
    by_kind_[kind].push_back({kind, ToValidUtf8(name.substr(0, kLongestName)), std::move(value)});
  }

  std::vector<BuildInput> Sorted() {
    std::vector<BuildInput> all;
    for (auto& [kind, inputs] : by_kind_) {
      std::sort(inputs.begin(), inputs.end());
      if (inputs.size() > kMostOfAKind) inputs = {AllInOne(kind, inputs)};
      all.insert(all.end(), inputs.begin(), inputs.end());
    }
    return all;
  }

 private:
  static BuildInput AllInOne(InputKind kind, const std::vector<BuildInput>& inputs) {
    CanonicalHasher hasher("kernix-inputs");
    for (const BuildInput& input : inputs) hasher.Field(input.name, input.value);
    return {kind, "(one of very many)", hasher.Finish().Raw()};
  }

  std::map<InputKind, std::vector<BuildInput>> by_kind_;
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

void AddFiles(const BuildRequest& request, Inputs& inputs) {
  for (const Unit& unit : request.units) {
    for (const language::SourceText& source : unit.sources) {
      inputs.Add(InputKind::kSource, source.label, DigestOf(source.text).Raw());
    }
  }
  for (const HeaderRef& header : request.headers) inputs.Add(InputKind::kHeader, header.path, header.digest.Raw());
  // By the name under which the plan stages a file, which the key covers. The tools find the others themselves, by
  // names that flags say.
  for (const toolchain::FlagFile& file : request.flag_files) {
    inputs.Add(InputKind::kFlagFile, Basename(file.staged.empty() ? file.path : file.staged), file.digest.Raw());
  }
}

void AddSettings(const BuildRequest& request, Inputs& inputs) {
  for (const std::string& line : request.definitions) inputs.Add(InputKind::kDefinition, DefinitionName(line));
  for (const std::string& flag : DescribeFlags(request)) inputs.Add(InputKind::kFlag, flag);
  for (const std::string& architecture : request.architectures) inputs.Add(InputKind::kArchitecture, architecture);
  for (const language::FunctionSpec& function : request.functions) {
    inputs.Add(InputKind::kFunction, StrCat(function.name, "(", absl::StrJoin(function.Tokens(), ", "), ")"));
  }
  std::string places;
  for (const Unit& unit : request.units) {
    for (const SearchedRoot& root : unit.roots) StrAppend(&places, root.root, root.only_quoted ? "q" : " ");
    places += '\n';
  }
  inputs.Add(InputKind::kIncludePaths, "", DigestOf(places).Raw());
}

void AddTools(const toolchain::Toolchain& toolchain, Inputs& inputs) {
  const toolchain::HostCompiler& host = toolchain.host;
  const bool is_clang = host.kind == toolchain::HostCompilerKind::kClang;
  inputs.Add(InputKind::kTool, StrCat(is_clang ? "Clang " : "GCC ", host.version), host.identity.Raw());
  if (toolchain.cuda) {
    inputs.Add(InputKind::kTool, StrCat("nvcc ", toolchain.cuda->version), toolchain.cuda->identity.Raw());
  }
  inputs.Add(InputKind::kKernix, "", BuildId());
}

}  // namespace

std::vector<std::string> DescribeBuild(const BuildRequest& request) {
  std::vector<std::string> texts = request.definitions;
  const std::vector<std::string> flags = DescribeFlags(request);
  texts.insert(texts.end(), flags.begin(), flags.end());
  const size_t left_out = texts.size() - std::min(texts.size(), kMostTexts);
  texts.resize(texts.size() - left_out);
  for (std::string& text : texts) text = Shortened(text);
  if (left_out > 0) texts.push_back(StrCat("... and ", left_out, " more"));
  return texts;
}

std::vector<BuildInput> InputsOf(const BuildRequest& request) {
  Inputs inputs;
  AddFiles(request, inputs);
  AddSettings(request, inputs);
  AddTools(*request.toolchain, inputs);
  return inputs.Sorted();
}

}  // namespace kernix::build
