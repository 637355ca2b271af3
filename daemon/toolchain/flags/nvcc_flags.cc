// SPDX-License-Identifier: Apache-2.0
//
// Flags of nvcc. Each has a long and often a short name, both with one dash or two, and a value after '=' or in the
// next word.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/toolchain/flags/flag_context.h"
#include "daemon/toolchain/flags/flag_values.h"
#include "daemon/toolchain/flags/macro_flags.h"
#include "daemon/toolchain/flags/nvcc_list.h"

namespace kernix::toolchain {
namespace {

enum class Verdict {
  kPass,
  kDefine,         // -D
  kUndefine,       // -U
  kHost,           // -Xcompiler: flags of the host compiler
  kPtxas,          // -Xptxas
  kCudafe,         // -Xcudafe
  kRelocatable,    // -rdc
  kDeviceCompile,  // -dc: -rdc=true and -c, which is kernix's business
  kQuotesFiles,    // PTX with the lines of the files that #line names
  kThreads,
  kCudart,
  kDrop,  // says what is the case anyway
  kRefuse,
};

struct Rule {
  std::string_view name;
  std::string_view short_name;
  unsigned kinds;  // of its value; kBare: it has none
  Verdict verdict;
  std::string_view why = {};
};

constexpr std::string_view kMechanics = "kernix decides what nvcc makes, and where";
constexpr std::string_view kArchitecture = "choose the GPU with compute_capability";
constexpr std::string_view kInclude = "give folders of headers as extra_include_paths, so that their content counts";
constexpr std::string_view kLinkFlag = "it is for the link: give it in extra_ldflags";
constexpr std::string_view kTools = "it exchanges parts of the toolkit: choose another nvcc with CUDA_HOME instead";
constexpr std::string_view kForward = "name the host compiler's flags one by one, as -Xcompiler=FLAG";
constexpr std::string_view kThreads =
    "its threads would not count as jobs of kernixd, which compiles several architectures side by side by itself (as "
    "many as ninja_workers allows)";
constexpr std::string_view kQuotesFiles =
    "this kernixd is shared, and PTX would quote any file of the machine that a #line names";
constexpr std::string_view kNvccCuts = "nvcc would cut it in two at the comma: give one value at a time";
constexpr std::string_view kDeviceLto = "device link-time optimisation is not supported";

constexpr Rule kRules[] = {
    {"std", "", kWord, Verdict::kPass},
    {"optimize", "O", kNumber, Verdict::kPass},
    {"Ofast-compile", "Ofc", kWord, Verdict::kPass},
    {"dopt", "", kWord, Verdict::kPass},
    {"define-macro", "D", kWord, Verdict::kDefine},
    {"undefine-macro", "U", kWord, Verdict::kUndefine},
    {"debug", "g", kBare, Verdict::kPass},
    {"device-debug", "G", kBare, Verdict::kPass},
    {"generate-line-info", "lineinfo", kBare, Verdict::kPass},
    {"source-in-ptx", "src-in-ptx", kBare, Verdict::kQuotesFiles},
    {"use_fast_math", "", kBare, Verdict::kPass},
    {"ftz", "", kWord, Verdict::kPass},
    {"prec-div", "", kWord, Verdict::kPass},
    {"prec-sqrt", "", kWord, Verdict::kPass},
    {"fmad", "", kWord, Verdict::kPass},
    {"extra-device-vectorization", "", kBare, Verdict::kPass},
    {"expt-relaxed-constexpr", "", kBare, Verdict::kPass},
    {"extended-lambda", "", kBare, Verdict::kPass},
    {"expt-extended-lambda", "", kBare, Verdict::kPass},
    {"no-host-device-initializer-list", "nohdinitlist", kBare, Verdict::kPass},
    {"no-host-device-move-forward", "nohdmoveforward", kBare, Verdict::kPass},
    {"no-exceptions", "noeh", kBare, Verdict::kPass},
    {"ftemplate-depth", "", kNumber, Verdict::kPass},
    {"ftemplate-backtrace-limit", "", kNumber, Verdict::kPass},
    {"fmax-errors", "", kNumber, Verdict::kPass},
    {"maxrregcount", "", kWord, Verdict::kPass},
    {"restrict", "", kBare, Verdict::kPass},
    {"default-stream", "", kWord, Verdict::kPass},
    {"keep-device-functions", "", kBare, Verdict::kPass},
    {"disable-warnings", "w", kBare, Verdict::kPass},
    {"Werror", "", kWords, Verdict::kPass},
    {"Wreorder", "", kBare, Verdict::kPass},
    {"Wdefault-stream-launch", "", kBare, Verdict::kPass},
    {"Wmissing-launch-bounds", "", kBare, Verdict::kPass},
    {"Wext-lambda-captures-this", "", kBare, Verdict::kPass},
    {"Wno-deprecated-declarations", "", kBare, Verdict::kPass},
    {"Wno-deprecated-gpu-targets", "", kBare, Verdict::kPass},
    {"Wconversion", "", kBare, Verdict::kPass},
    {"diag-error", "", kWords, Verdict::kPass},
    {"diag-suppress", "", kWords, Verdict::kPass},
    {"diag-warn", "", kWords, Verdict::kPass},
    {"display-error-number", "err-no", kBare, Verdict::kPass},
    {"no-display-error-number", "no-err-no", kBare, Verdict::kPass},
    {"brief-diagnostics", "brief-diag", kWord, Verdict::kPass},
    {"resource-usage", "res-usage", kBare, Verdict::kPass},
    {"opt-info", "", kWords, Verdict::kPass},
    {"threads", "t", kNumber, Verdict::kThreads},
    {"split-compile", "", kWord, Verdict::kRefuse, kThreads},
    {"split-compile-extended", "", kWord, Verdict::kRefuse, kThreads},
    {"jump-table-density", "jtd", kNumber, Verdict::kPass},
    {"no-compress", "", kBare, Verdict::kPass},
    {"compress-mode", "", kWord, Verdict::kPass},
    {"device-stack-protector", "", kWord, Verdict::kPass},
    {"static-global-template-stub", "", kWord, Verdict::kPass},
    {"device-entity-has-hidden-visibility", "", kWord, Verdict::kPass},
    {"frandom-seed", "", kWord, Verdict::kPass},
    {"profile", "pg", kBare, Verdict::kPass},
    {"stdlib", "", kWord, Verdict::kPass},
    {"allow-unsupported-compiler", "", kBare, Verdict::kPass},
    {"m64", "", kBare, Verdict::kDrop},
    {"shared", "", kBare, Verdict::kDrop},
    {"compiler-options", "Xcompiler", kWord, Verdict::kHost},
    {"ptxas-options", "Xptxas", kWord, Verdict::kPtxas},
    {"Xcudafe", "", kWord, Verdict::kCudafe},
    {"relocatable-device-code", "rdc", kWord, Verdict::kRelocatable},
    {"cudart", "", kWord, Verdict::kCudart},

    {"gpu-architecture", "arch", kWord, Verdict::kRefuse, kArchitecture},
    {"gpu-code", "code", kWord, Verdict::kRefuse, kArchitecture},
    {"generate-code", "gencode", kWord, Verdict::kRefuse, kArchitecture},
    {"include-path", "I", kWord, Verdict::kRefuse, kInclude},
    {"system-include", "isystem", kWord, Verdict::kRefuse, kInclude},
    {"pre-include", "include", kWord, Verdict::kRefuse, "write an #include at the top of the source instead"},
    {"library", "l", kWord, Verdict::kRefuse, kLinkFlag},
    {"library-path", "L", kWord, Verdict::kRefuse, kLinkFlag},
    {"linker-options", "Xlinker", kWord, Verdict::kRefuse, kLinkFlag},
    {"nvlink-options", "Xnvlink", kWord, Verdict::kRefuse, kTools},
    {"compiler-bindir", "ccbin", kWord, Verdict::kRefuse, "choose the host compiler with CXX"},
    {"options-file", "optf", kWord, Verdict::kRefuse, "write the flags of the file out"},
    {"forward-unknown-to-host-compiler", "", kBare, Verdict::kRefuse, kForward},
    {"forward-unknown-to-host-linker", "", kBare, Verdict::kRefuse, kForward},
    {"forward-unknown-opts", "", kBare, Verdict::kRefuse, kForward},
    {"device-c", "dc", kBare, Verdict::kDeviceCompile},
    {"device-w", "dw", kBare, Verdict::kRefuse, kMechanics},
    {"device-link", "dlink", kBare, Verdict::kRefuse, kMechanics},
    {"dlink-time-opt", "dlto", kBare, Verdict::kRefuse, kDeviceLto},
    {"lto", "", kBare, Verdict::kRefuse, kDeviceLto},
    {"gen-opt-lto", "", kBare, Verdict::kRefuse, kDeviceLto},
    {"output-file", "o", kWord, Verdict::kRefuse, kMechanics},
    {"output-directory", "odir", kWord, Verdict::kRefuse, kMechanics},
    {"x", "", kWord, Verdict::kRefuse, kMechanics},
    {"machine", "m", kWord, Verdict::kRefuse, "kernix compiles for 64 bits"},
    {"compile", "c", kBare, Verdict::kRefuse, kMechanics},
    {"link", "", kBare, Verdict::kRefuse, kMechanics},
    {"lib", "", kBare, Verdict::kRefuse, kMechanics},
    {"run", "", kBare, Verdict::kRefuse, kMechanics},
    {"run-args", "", kWord, Verdict::kRefuse, kMechanics},
    {"cuda", "", kBare, Verdict::kRefuse, kMechanics},
    {"cubin", "", kBare, Verdict::kRefuse, kMechanics},
    {"fatbin", "", kBare, Verdict::kRefuse, kMechanics},
    {"ptx", "", kBare, Verdict::kRefuse, kMechanics},
    {"optix-ir", "", kBare, Verdict::kRefuse, kMechanics},
    {"ltoir", "", kBare, Verdict::kRefuse, kMechanics},
    {"preprocess", "E", kBare, Verdict::kRefuse, kMechanics},
    {"generate-dependencies", "M", kBare, Verdict::kRefuse, kMechanics},
    {"generate-nonsystem-dependencies", "MM", kBare, Verdict::kRefuse, kMechanics},
    {"generate-dependencies-with-compile", "MD", kBare, Verdict::kRefuse, kMechanics},
    {"generate-nonsystem-dependencies-with-compile", "MMD", kBare, Verdict::kRefuse, kMechanics},
    {"dependency-output", "MF", kWord, Verdict::kRefuse, kMechanics},
    {"dependency-target-name", "MT", kWord, Verdict::kRefuse, kMechanics},
    {"generate-dependency-targets", "MP", kBare, Verdict::kRefuse, kMechanics},
    {"keep", "", kBare, Verdict::kRefuse, kMechanics},
    {"keep-dir", "", kWord, Verdict::kRefuse, kMechanics},
    {"save-temps", "", kBare, Verdict::kRefuse, kMechanics},
    {"clean-targets", "clean", kBare, Verdict::kRefuse, kMechanics},
    {"objdir-as-tempdir", "objtemp", kBare, Verdict::kRefuse, kMechanics},
    {"dryrun", "", kBare, Verdict::kRefuse, kMechanics},
    {"verbose", "v", kBare, Verdict::kRefuse, "ask for verbose instead"},
    {"time", "", kWord, Verdict::kRefuse, kMechanics},
    {"fdevice-time-trace", "", kWord, Verdict::kRefuse, kMechanics},
    {"fdevice-syntax-only", "", kBare, Verdict::kRefuse, kMechanics},
    {"help", "h", kBare, Verdict::kRefuse, kMechanics},
    {"version", "V", kBare, Verdict::kRefuse, kMechanics},
    {"list-gpu-code", "code-ls", kBare, Verdict::kRefuse, kMechanics},
    {"list-gpu-arch", "arch-ls", kBare, Verdict::kRefuse, kMechanics},
    {"cudadevrt", "", kWord, Verdict::kRefuse, kMechanics},
    {"libdevice-directory", "ldir", kWord, Verdict::kRefuse, kTools},
    {"target-directory", "target-dir", kWord, Verdict::kRefuse, kTools},
    {"archiver-binary", "arbin", kWord, Verdict::kRefuse, kTools},
    {"dont-use-profile", "noprof", kBare, Verdict::kRefuse, kTools},
    {"apply-controls", "", kWord, Verdict::kRefuse, kTools},
    {"qpp-config", "", kWord, Verdict::kRefuse, kTools},
    {"host-linker-script", "hls", kWord, Verdict::kRefuse, kMechanics},
    {"augment-host-linker-script", "aug-hls", kBare, Verdict::kRefuse, kMechanics},
    {"relocatable-link", "r", kBare, Verdict::kRefuse, kMechanics},
    {"jobserver", "", kBare, Verdict::kRefuse, kMechanics},
};

// One flag as it was given, taken apart.
struct Given {
  const Rule* rule = nullptr;  // null: not known
  std::string text;            // for messages
  std::string value;
  std::vector<std::string> words;  // as they go to nvcc
};

// Short names that take their value without '=' too: -O3, -DX=1, -Ifolder.
constexpr std::string_view kJoined[] = {"D", "U", "O", "I", "L", "l"};

const Rule* FindRule(std::string_view name) {
  const auto* rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& candidate) {
    return name == candidate.name || (!candidate.short_name.empty() && name == candidate.short_name);
  });
  return rule == std::end(kRules) ? nullptr : rule;
}

std::string_view WithoutDashes(std::string_view word) {
  for (int i = 0; i < 2 && word.starts_with('-'); ++i) word.remove_prefix(1);
  return word;
}

// A flag whose value, if it has one, is in the same word.
Given ReadWord(const std::string& word) {
  Given given{nullptr, word, "", {word}};
  const std::string_view body = WithoutDashes(word);
  if (body.size() == word.size()) return given;
  const size_t equals = body.find('=');
  given.rule = FindRule(body.substr(0, equals));
  if (given.rule != nullptr && equals != std::string_view::npos) given.value = body.substr(equals + 1);
  if (given.rule != nullptr) return given;
  for (const std::string_view name : kJoined) {
    if (!word.starts_with("--") && body.starts_with(name)) {
      given.rule = FindRule(name);
      given.value = body.substr(name.size());
      return given;
    }
  }
  return given;
}

absl::StatusOr<Given> ReadFlag(const std::vector<std::string>& flags, size_t& next) {
  Given given = ReadWord(flags[next++]);
  // Behind a '=' the value may be empty: nvcc does not go on to the next word.
  const bool has_value = !given.value.empty() || given.text.ends_with('=');
  if (given.rule == nullptr || given.rule->kinds == kBare || has_value) return given;
  if (next == flags.size()) return RefuseFlag(given.text, "its value is missing");
  given.value = flags[next++];
  given.words.push_back(given.value);
  return given;
}

// nvcc cuts a value at its commas and, as the shell does, at its blanks.
std::vector<std::string> Pieces(const std::string& value) { return SplitNvccList(value, ", "); }

// In ptxas's own spelling, with one dash or two. What is not here is refused when shared.
constexpr ListedFlag kPtxasFlags[] = {
    {"v"},
    {"verbose"},
    {"w"},
    {"disable-warnings"},
    {"g"},
    {"device-debug"},
    {"O0"},
    {"O1"},
    {"O2"},
    {"O3"},
    {"O4"},
    {"O", kNumber},
    {"opt-level", kNumber},
    {"Ofc", kWord},
    {"Ofast-compile", kWord},
    {"Werror"},
    {"warning-as-error"},
    {"warn-spills"},
    {"warn-on-spills"},
    {"warn-lmem-usage"},
    {"warn-on-local-memory-usage"},
    {"warn-double-usage"},
    {"warn-on-double-precision-use"},
    {"suppress-*"},
    {"allow-expensive-optimizations", kWord},
    {"annotate"},
    {"compiler-annotations"},
    {"dlcm", kWord},
    {"def-load-cache", kWord},
    {"dscm", kWord},
    {"def-store-cache", kWord},
    {"flcm", kWord},
    {"force-load-cache", kWord},
    {"fscm", kWord},
    {"force-store-cache", kWord},
    {"fmad", kWord},
    {"func-maxrregcount", kWord},
    {"device-function-maxrregcount", kWord},
    {"maxrregcount", kWord},
    {"minnctapersm", kNumber},
    {"regUsageLevel", kNumber},
    {"register-usage-level", kNumber},
    {"disable-optimizer-consts"},
    {"disable-optimizer-constants"},
    {"dont-merge-basicblocks"},
    {"no-bb-merge"},
    {"enable-func-clone-sc", kWord},
    {"ewp"},
    {"extensible-whole-program"},
    {"lineinfo"},
    {"generate-line-info"},
    {"make-errors-visible-at-exit"},
    {"opt-fp-atomics"},
    {"optimize-float-atomics"},
    {"override-directive-values"},
    {"pic", kWord},
    {"position-independent-code", kWord},
    {"preserve-relocs"},
    {"ret-end"},
    {"return-at-end"},
    {"sp-bounds-check"},
    {"device-stack-protector", kWord},
};

// cudafe++'s, with two dashes.
constexpr ListedFlag kCudafeFlags[] = {
    {"diag_suppress", kWord}, {"diag_warning", kWord}, {"diag_error", kWord},    {"diag_remark", kWord},
    {"diag_once", kWord},     {"diag_default", kWord}, {"display_error_number"}, {"no_display_error_number"},
};

// The value of -Xptxas, which may hold values of its own as pieces: "-O 3".
bool ArePtxasFlags(const std::vector<std::string>& pieces) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string_view name = WithoutDashes(pieces[i]);
    if (name.size() == pieces[i].size()) return false;
    if (IsListed(kPtxasFlags, name)) continue;
    if (i + 1 == pieces.size() || !IsListed(kPtxasFlags, StrCat(name, "=", pieces[++i]))) return false;
  }
  return true;
}

absl::Status CheckPtxas(const FlagContext& context, const Given& given, const std::vector<std::string>& pieces) {
  for (const std::string& piece : pieces) {
    const std::string_view name = WithoutDashes(piece);
    const bool file = name.starts_with("o=") || name == "o" || name.starts_with("output-file") ||
                      name.starts_with("opt") || piece.find('/') != std::string::npos;
    const bool known = IsListed(kPtxasFlags, name) || name == "opt-level";
    if (file && !known) return RefuseFlag(given.text + " " + piece, kMechanics);
  }
  if (!context.shared() || ArePtxasFlags(pieces)) return absl::OkStatus();
  return RefuseFlag(StrCat(given.text, " ", absl::StrJoin(pieces, " ")), kNotListed);
}

absl::Status CheckCudafe(const Given& given, const std::vector<std::string>& pieces) {
  for (const std::string& piece : pieces) {
    if (piece.starts_with("--") && IsListed(kCudafeFlags, std::string_view(piece).substr(2))) continue;
    return RefuseFlag(given.text + " " + piece, "cudafe++ is given --diag_... and --display_error_number only");
  }
  return absl::OkStatus();
}

absl::Status ReadThreads(const Given& given, int& threads) {
  if (absl::SimpleAtoi(given.value, &threads) && threads >= 0) return absl::OkStatus();
  return RefuseFlag(given.text, "its value is a number of threads");
}

// nvcc itself says of an unknown flag only that it is one.
absl::Status CheckUnknown(const FlagContext& context, const std::string& flag) {
  for (const std::string_view prefix : {"-f", "-m", "-W", "-pthread", "-pedantic"}) {
    if (!flag.starts_with(prefix)) continue;
    return RefuseFlag(flag, StrCat("nvcc does not know it; for the host compiler write -Xcompiler=", flag));
  }
  return CheckUnknownFlag(context, flag);
}

// What goes on to nvcc: nothing in it that a shell would read, and when shared only values of the flag's kind.
absl::Status PassOn(FlagContext& context, const Given& given) {
  for (const std::string& word : given.words) KERNIX_RETURN_IF_ERROR(CheckWord(given.text, word));
  const bool checked = given.rule == nullptr || given.rule->verdict == Verdict::kPtxas ||
                       given.rule->verdict == Verdict::kCudafe || given.rule->kinds == kBare;
  if (context.shared() && !checked && !IsOfKind(given.rule->kinds, given.value)) {
    return RefuseFlag(given.text, kNotListed);
  }
  context.result.compile.insert(context.result.compile.end(), given.words.begin(), given.words.end());
  return absl::OkStatus();
}

// Without blanks: "-Xptxas" "-v -O3" becomes "-Xptxas" "-v,-O3".
Given WithPieces(Given given, const std::vector<std::string>& pieces) {
  const std::string joined = absl::StrJoin(pieces, ",");
  std::string& last = given.words.back();
  last = last.substr(0, last.size() - given.value.size()) + joined;
  given.value = joined;
  return given;
}

absl::Status CheckToolFlags(FlagContext& context, const Given& given) {
  const std::vector<std::string> pieces = Pieces(given.value);
  for (const std::string& piece : pieces) KERNIX_RETURN_IF_ERROR(CheckWord(given.text, piece));
  const bool ptxas = given.rule->verdict == Verdict::kPtxas;
  KERNIX_RETURN_IF_ERROR(ptxas ? CheckPtxas(context, given, pieces) : CheckCudafe(given, pieces));
  return PassOn(context, WithPieces(given, pieces));
}

// nvcc takes a list of macros.
absl::Status AddMacros(FlagContext& context, const Given& given) {
  const bool define = given.rule->verdict == Verdict::kDefine;
  std::vector<std::string>& lines = context.result.definitions;
  for (const std::string& macro : SplitNvccList(given.value, ",")) {
    KERNIX_RETURN_IF_ERROR(define ? AddDefinition(given.text, macro, lines)
                                  : AddUndefinition(given.text, macro, lines));
  }
  return absl::OkStatus();
}

absl::Status CheckOne(FlagContext& context, const Given& given, std::vector<std::string>& host_flags) {
  CheckedFlags& result = context.result;
  if (given.rule == nullptr) KERNIX_RETURN_IF_ERROR(CheckUnknown(context, given.text));
  const Verdict verdict = given.rule == nullptr ? Verdict::kPass : given.rule->verdict;
  switch (verdict) {
    case Verdict::kRefuse:
      return RefuseFlag(given.text, given.rule->why);
    case Verdict::kDefine:
    case Verdict::kUndefine:
      return AddMacros(context, given);
    case Verdict::kHost:
      for (std::string& piece : Pieces(given.value)) host_flags.push_back(std::move(piece));
      return absl::OkStatus();
    case Verdict::kDrop:
      return absl::OkStatus();
    case Verdict::kThreads:
      return ReadThreads(given, result.nvcc_threads);
    case Verdict::kCudart:
      return given.value == "static" ? absl::OkStatus() : RefuseFlag(given.text, "cudart is always linked statically");
    case Verdict::kPtxas:
    case Verdict::kCudafe:
      return CheckToolFlags(context, given);
    case Verdict::kRelocatable:
      result.relocatable_device_code = given.value == "true";
      break;
    case Verdict::kDeviceCompile:
      result.relocatable_device_code = true;
      result.compile.push_back("-rdc=true");
      return absl::OkStatus();
    case Verdict::kQuotesFiles:
      if (context.shared()) return RefuseFlag(given.text, kQuotesFiles);
      break;
    case Verdict::kPass:
      break;
  }
  return PassOn(context, given);
}

}  // namespace

absl::Status CheckNvccFlags(FlagContext& context, const std::vector<std::string>& flags) {
  std::vector<std::string> host_flags;
  for (size_t next = 0; next < flags.size();) {
    KERNIX_ASSIGN_OR_RETURN(const Given given, ReadFlag(flags, next));
    KERNIX_RETURN_IF_ERROR(CheckOne(context, given, host_flags));
  }
  // nvcc gives the host compiler these before its own macros.
  std::vector<std::string> own_definitions = std::exchange(context.result.definitions, {});
  std::vector<std::string> passed;
  KERNIX_RETURN_IF_ERROR(CheckHostFlags(context, host_flags, passed));
  context.result.definitions.insert(context.result.definitions.end(), own_definitions.begin(), own_definitions.end());
  for (std::string& flag : passed) {
    if (flag.find(',') != std::string::npos) return RefuseFlag(flag, kNvccCuts);
    context.result.compile.insert(context.result.compile.end(), {"-Xcompiler", std::move(flag)});
  }
  return absl::OkStatus();
}

}  // namespace kernix::toolchain
