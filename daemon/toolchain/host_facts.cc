// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/host_facts.h"

#include <algorithm>

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/toolchain/tool_query.h"

namespace kernix::toolchain {
namespace {

// The command line of cc1 or cc1plus, which is part of the output of `-###`.
std::vector<std::string> CompilerProper(const std::string& answer) {
  for (const std::string& line : SplitLines(answer)) {
    std::vector<std::string> words = SplitCommand(line);
    const bool proper = !words.empty() && (words[0].ends_with("/cc1plus") || (words.size() > 1 && words[1] == "-cc1"));
    if (proper) return words;
  }
  return {};
}

// GCC lists it explicitly: -march=znver3 -mavx2 -mno-sgx --param l1-cache-size=48 -mtune=znver3.
std::vector<std::string> GccFlags(const std::vector<std::string>& words, bool tune_only) {
  std::vector<std::string> flags;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool parameter = words[i] == "--param" && i + 1 < words.size();
    const bool machine = words[i].starts_with("-m") && (!tune_only || words[i].starts_with("-mtune="));
    if (machine) flags.push_back(words[i]);
    if (parameter) flags.push_back(StrCat("--param=", words[i + 1]));
  }
  return flags;
}

// Clang prints the name of a known processor and the features in which this one differs.
std::vector<std::string> ClangFlags(const std::vector<std::string>& words, bool tune_only) {
  std::vector<std::string> flags;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "-tune-cpu" && tune_only) flags.push_back(StrCat("-mtune=", words[i + 1]));
    if (words[i] == "-target-cpu" && !tune_only) flags.push_back(StrCat("-march=", words[i + 1]));
    if (words[i] == "-target-feature" && !tune_only) {
      for (const std::string& word : {words[i], words[i + 1]}) flags.insert(flags.end(), {"-Xclang", word});
    }
  }
  return flags;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> HostFacts::ExpandNative(const HostCompiler& compiler,
                                                                 const std::string& flag) {
  const std::string key = StrCat(compiler.identity.Hex(), " ", flag);
  {
    MutexLock lock(mutex_);
    const auto known = native_.find(key);
    if (known != native_.end()) return known->second;
  }
  KERNIX_ASSIGN_OR_RETURN(
      const std::string answer,
      AskTool(env_, {compiler.path, flag, "-###", "-E", "-x", "c++", "/dev/null"}, compiler.variables));
  const std::vector<std::string> words = CompilerProper(answer);
  const bool tune_only = flag.starts_with("-mtune");
  std::vector<std::string> flags =
      compiler.kind == HostCompilerKind::kGcc ? GccFlags(words, tune_only) : ClangFlags(words, tune_only);
  const bool resolved = !flags.empty() && std::none_of(flags.begin(), flags.end(), [](const std::string& text) {
    return text.ends_with("=native");
  });
  if (!resolved) {
    return MakeError(v1::ErrorDetail::TOOLCHAIN,
                     StrCat(compiler.path, " does not report the meaning of ", flag, ": name a processor instead"));
  }
  if (compiler.identity == Digest()) return flags;  // that of a compiler which is still being identified
  MutexLock lock(mutex_);
  return native_[key] = flags;
}

}  // namespace kernix::toolchain
