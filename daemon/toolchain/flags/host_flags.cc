// SPDX-License-Identifier: Apache-2.0
//
// Flags of g++ and clang++.
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/toolchain/flags/flag_context.h"
#include "daemon/toolchain/flags/host_flag_list.h"
#include "daemon/toolchain/flags/macro_flags.h"

namespace kernix::toolchain {
namespace {

enum class Verdict {
  kPass,        // under both policies
  kListed,      // shared: if host_flag_list.h has it
  kDefine,      // -D, which becomes a line of the source
  kUndefine,    // -U, likewise
  kParameter,   // --param
  kNative,      // may be "native": replaced by what that stands for
  kAssembler,   // -Wa,...
  kPerUser,     // as CheckUnknownFlag() has it
  kFileForKey,  // names a file that goes into the key
  kRefuse,
};

// `match` ends with '*' for a prefix. The first rule that fits decides.
struct Rule {
  std::string_view match;
  Verdict verdict;
  std::string_view why = {};    // for kRefuse
  bool separate_value = false;  // a flag that is just the match without '*' takes the next word
};

constexpr std::string_view kMechanics = "kernix decides what the compiler makes, and where";
constexpr std::string_view kInclude = "give folders of headers as extra_include_paths, so that their content counts";
constexpr std::string_view kPreInclude = "write an #include at the top of the source instead";
constexpr std::string_view kTools = "it exchanges parts of the compiler: choose another compiler with CXX instead";
constexpr std::string_view kSideFiles = "it reads or writes files beside the object, which nobody would find";
constexpr std::string_view kCommandLine = "it writes the command line, with this machine's paths, into the artifact";
constexpr std::string_view kPrefixMaps = "kernix itself keeps paths out of the artifact";
constexpr std::string_view kLinkFlag = "it is for the link: give it in extra_ldflags";
constexpr std::string_view kNoOtherOutput = "an artifact is a shared library";

constexpr std::string_view kLto =
    "this kernixd is shared, and with link-time optimisation the link calls compilers, assemblers and a shell, which "
    "do "
    "not tell what they read";

constexpr Rule kRules[] = {
    {"@*", Verdict::kRefuse, "write the flags of the file out"},
    {"-o*", Verdict::kRefuse, kMechanics},
    {"-c", Verdict::kRefuse, kMechanics},
    {"-S", Verdict::kRefuse, kMechanics},
    {"-E", Verdict::kRefuse, kMechanics},
    {"-M*", Verdict::kRefuse, kMechanics},
    {"-x*", Verdict::kRefuse, kMechanics},
    {"-v", Verdict::kRefuse, "ask for verbose instead"},
    {"-###", Verdict::kRefuse, kMechanics},
    {"--version", Verdict::kRefuse, kMechanics},
    {"--help*", Verdict::kRefuse, kMechanics},
    {"-print-*", Verdict::kRefuse, kMechanics},
    {"--print-*", Verdict::kRefuse, kMechanics},
    {"-dump*", Verdict::kRefuse, kMechanics},
    {"-fsyntax-only", Verdict::kRefuse, kMechanics},
    {"-emit-*", Verdict::kRefuse, kMechanics},
    {"-save-temps*", Verdict::kRefuse, kSideFiles},
    {"--save-temps*", Verdict::kRefuse, kSideFiles},
    {"-isysroot*", Verdict::kRefuse, kTools},
    {"-isystem*", Verdict::kRefuse, kInclude},
    {"-include*", Verdict::kRefuse, kPreInclude},
    {"--include*", Verdict::kRefuse, kPreInclude},
    {"-imacros*", Verdict::kRefuse, kPreInclude},
    {"-i*", Verdict::kRefuse, kInclude},
    {"-I*", Verdict::kRefuse, kInclude},
    {"-cxx-isystem*", Verdict::kRefuse, kInclude},
    {"--sysroot*", Verdict::kRefuse, kTools},
    {"--gcc-*", Verdict::kRefuse, kTools},
    {"-B*", Verdict::kRefuse, kTools},
    {"-wrapper", Verdict::kRefuse, kTools},
    {"-target", Verdict::kRefuse, kTools},
    {"--target*", Verdict::kRefuse, kTools},
    {"-resource-dir*", Verdict::kRefuse, kTools},
    {"--config*", Verdict::kRefuse, kTools},
    {"-fuse-ld*", Verdict::kRefuse, kTools},
    {"-specs=*", Verdict::kFileForKey},
    {"--specs=*", Verdict::kFileForKey},
    {"-fplugin=*", Verdict::kFileForKey},
    {"-fplugin-arg-*", Verdict::kPerUser},
    {"-fpass-plugin=*", Verdict::kFileForKey},
    {"-fprofile*", Verdict::kRefuse, kSideFiles},
    {"-fcs-profile*", Verdict::kRefuse, kSideFiles},
    {"-fauto-profile*", Verdict::kRefuse, kSideFiles},
    {"-fbranch-probabilities", Verdict::kRefuse, kSideFiles},
    {"--coverage", Verdict::kRefuse, kSideFiles},
    {"-coverage", Verdict::kRefuse, kSideFiles},
    {"-ftest-coverage", Verdict::kRefuse, kSideFiles},
    {"-fdump-*", Verdict::kRefuse, kSideFiles},
    {"-fstack-usage", Verdict::kRefuse, kSideFiles},
    {"-fcallgraph-info*", Verdict::kRefuse, kSideFiles},
    {"-fsave-optimization-record*", Verdict::kRefuse, kSideFiles},
    {"-foptimization-record*", Verdict::kRefuse, kSideFiles},
    {"-ftime-trace*", Verdict::kRefuse, kSideFiles},
    {"-fopt-info*", Verdict::kRefuse, kSideFiles},
    {"-fmodule*", Verdict::kRefuse, kSideFiles},
    {"-fprebuilt-module*", Verdict::kRefuse, kSideFiles},
    {"-fpch*", Verdict::kRefuse, kSideFiles},
    {"-fcrash-diagnostics*", Verdict::kRefuse, kSideFiles},
    {"-fvtable-verify*", Verdict::kRefuse, kSideFiles},
    {"-gsplit-dwarf*", Verdict::kRefuse, kSideFiles},
    {"-aux-info*", Verdict::kRefuse, kSideFiles},
    {"-time*", Verdict::kRefuse, kSideFiles},
    {"-frecord-*", Verdict::kRefuse, kCommandLine},
    {"-grecord-*", Verdict::kRefuse, kCommandLine},
    {"-fdebug-prefix-map*", Verdict::kRefuse, kPrefixMaps},
    {"-fmacro-prefix-map*", Verdict::kRefuse, kPrefixMaps},
    {"-ffile-prefix-map*", Verdict::kRefuse, kPrefixMaps},
    {"-fdebug-compilation-dir*", Verdict::kRefuse, kPrefixMaps},
    {"-static", Verdict::kRefuse, kNoOtherOutput},
    {"-pie", Verdict::kRefuse, kNoOtherOutput},
    {"-r", Verdict::kRefuse, kNoOtherOutput},
    {"-Wl,*", Verdict::kRefuse, kLinkFlag},
    {"-Xlinker", Verdict::kRefuse, kLinkFlag},
    {"-L*", Verdict::kRefuse, kLinkFlag},
    {"-l*", Verdict::kRefuse, kLinkFlag},
    {"-Wp,*", Verdict::kRefuse, "give the preprocessor's flag by itself"},
    {"-Xpreprocessor", Verdict::kRefuse, "give the preprocessor's flag by itself"},
    {"-Xassembler", Verdict::kRefuse, "write it as -Wa,..."},
    {"-Wa,*", Verdict::kAssembler},
    {"-march=*", Verdict::kNative},
    {"-mcpu=*", Verdict::kNative},
    {"-mtune=*", Verdict::kNative},
    {"-D*", Verdict::kDefine, {}, true},
    {"-U*", Verdict::kUndefine, {}, true},
    {"--param*", Verdict::kParameter, {}, true},
    {"-Xclang", Verdict::kPerUser, {}, true},
    {"-mllvm", Verdict::kPerUser, {}, true},
    {"-mmlir", Verdict::kPerUser, {}, true},
    {"-mthread-model", Verdict::kPerUser, {}, true},
    {"-O*", Verdict::kListed},
    {"-g*", Verdict::kListed},
    {"-f*", Verdict::kListed},
    {"-m*", Verdict::kListed},
    {"-W*", Verdict::kListed},
    {"-w", Verdict::kPass},
    {"-std=*", Verdict::kListed},
    {"--std=*", Verdict::kListed},
    {"-ansi", Verdict::kPass},
    {"-pedantic", Verdict::kPass},
    {"-pedantic-errors", Verdict::kPass},
    {"-pthread", Verdict::kPass},
    {"-pipe", Verdict::kPass},
    {"-shared", Verdict::kPass},
    {"-stdlib=*", Verdict::kListed},
    {"-trigraphs", Verdict::kPass},
};

bool Fits(std::string_view match, std::string_view flag) {
  if (match.ends_with('*')) return flag.starts_with(match.substr(0, match.size() - 1));
  return flag == match;
}

std::optional<Rule> FindRule(std::string_view flag) {
  for (const Rule& rule : kRules) {
    if (Fits(rule.match, flag)) return rule;
  }
  return std::nullopt;
}

// Whether `flag` is only the name of a flag that has a value.
bool LacksValue(const Rule& rule, std::string_view flag) {
  std::string_view name = rule.match;
  if (name.ends_with('*')) name.remove_suffix(1);
  return rule.separate_value && flag == name;
}

// A name of a file hides behind flags that look harmless: what has a slash is not let pass unseen.
absl::Status CheckListed(const FlagContext& context, const std::string& flag, bool listed) {
  if (context.shared() && !listed) return RefuseFlag(flag, kNotListed);
  return flag.find('/') == std::string::npos ? absl::OkStatus() : CheckUnknownFlag(context, flag);
}

absl::Status CheckParameter(const FlagContext& context, const std::string& flag, std::string_view value) {
  if (value.empty() && flag.starts_with("--param=")) value = std::string_view(flag).substr(8);
  return CheckListed(context, flag, IsParameter(value));
}

absl::Status CheckAssembler(const FlagContext& context, const std::string& flag) {
  const std::vector<std::string> pieces = absl::StrSplit(flag.substr(4), ',');
  for (const std::string& piece : pieces) {
    const bool known =
        piece.starts_with("-m") || piece == "--noexecstack" || piece.starts_with("--compress-debug-sections");
    if (known && (!context.shared() || IsListedAssemblerWord(piece))) continue;
    return RefuseFlag(flag, "the assembler is given -m..., --noexecstack and --compress-debug-sections only");
  }
  return absl::OkStatus();
}

absl::Status CheckNative(FlagContext& context, const std::string& flag, std::vector<std::string>& passed) {
  if (!flag.ends_with("=native")) {
    passed.push_back(flag);
    return CheckListed(context, flag, IsListedHostFlag(flag));
  }
  KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> flags,
                          context.facts.ExpandNative(context.toolchain.host, flag));
  passed.insert(passed.end(), flags.begin(), flags.end());
  return absl::OkStatus();
}

// "-DX", or "-D" and "X": what follows -D.
std::string_view MacroText(const std::string& flag, const std::string& value) {
  return value.empty() ? std::string_view(flag).substr(2) : std::string_view(value);
}

// A file that a flag of g++ names may lie anywhere; nvcc's shell would read its path.
bool MayHoldAnything(const FlagContext& context, const Rule& rule) {
  return rule.verdict == Verdict::kFileForKey && context.language != v1::LANGUAGE_CUDA;
}

absl::Status CheckOne(FlagContext& context, const Rule& rule, const std::string& flag, const std::string& value,
                      std::vector<std::string>& passed) {
  std::vector<std::string>& definitions = context.result.definitions;
  if (rule.verdict == Verdict::kRefuse) return RefuseFlag(flag, rule.why);
  if (rule.verdict == Verdict::kDefine) return AddDefinition(flag, MacroText(flag, value), definitions);
  if (rule.verdict == Verdict::kUndefine) return AddUndefinition(flag, MacroText(flag, value), definitions);
  if (!MayHoldAnything(context, rule)) KERNIX_RETURN_IF_ERROR(CheckHostWord(context, flag, flag));
  if (rule.verdict == Verdict::kNative) return CheckNative(context, flag, passed);
  passed.push_back(flag);
  if (!value.empty()) {
    KERNIX_RETURN_IF_ERROR(CheckHostWord(context, flag, value));
    passed.push_back(value);
  }
  switch (rule.verdict) {
    case Verdict::kAssembler:
      return CheckAssembler(context, flag);
    case Verdict::kFileForKey:
      return AddKeyFile(context, flag, flag.substr(flag.find('=') + 1));
    case Verdict::kPerUser:
      return CheckUnknownFlag(context, StrCat(flag, value.empty() ? "" : "=", value));
    case Verdict::kParameter:
      return CheckParameter(context, flag, value);
    case Verdict::kListed:
      if (context.shared() && flag.starts_with("-flto")) return RefuseFlag(flag, kLto);
      return CheckListed(context, flag, IsListedHostFlag(flag));
    default:
      return absl::OkStatus();
  }
}

}  // namespace

absl::Status CheckHostFlags(FlagContext& context, const std::vector<std::string>& flags,
                            std::vector<std::string>& passed) {
  for (size_t i = 0; i < flags.size(); ++i) {
    const std::string& flag = flags[i];
    const Rule rule = FindRule(flag).value_or(Rule{"", Verdict::kPerUser});
    std::string value;
    if (LacksValue(rule, flag)) {
      if (i + 1 == flags.size()) return RefuseFlag(flag, "its value is missing");
      value = flags[++i];
    }
    KERNIX_RETURN_IF_ERROR(CheckOne(context, rule, flag, value, passed));
  }
  return absl::OkStatus();
}

}  // namespace kernix::toolchain
