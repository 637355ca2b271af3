// SPDX-License-Identifier: Apache-2.0
//
// Flags of nvcc. Each has a long and often a short name, both with one dash or two, and a value after '=' or in the
// next word.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/strings.h"
#include "daemon/toolchain/flag_context.h"

namespace kernix::toolchain {
namespace {

enum class Verdict {
  kPass,
  kHost,           // -Xcompiler: flags of the host compiler
  kPtxas,          // -Xptxas
  kCudafe,         // -Xcudafe
  kRelocatable,    // -rdc
  kDeviceCompile,  // -dc: -rdc=true and -c, which is kernix's business
  kToolkitPaths,   // line tables
  kThreads,
  kCudart,
  kDrop,  // says what is the case anyway
  kRefuse,
};

struct Rule {
  std::string_view name;
  std::string_view short_name;
  bool has_value;
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
constexpr std::string_view kDeviceLto = "device link-time optimisation is not supported";

constexpr Rule kRules[] = {
    {"std", "", true, Verdict::kPass},
    {"optimize", "O", true, Verdict::kPass},
    {"Ofast-compile", "Ofc", true, Verdict::kPass},
    {"dopt", "", true, Verdict::kPass},
    {"define-macro", "D", true, Verdict::kPass},
    {"undefine-macro", "U", true, Verdict::kPass},
    {"debug", "g", false, Verdict::kPass},
    {"device-debug", "G", false, Verdict::kToolkitPaths},
    {"generate-line-info", "lineinfo", false, Verdict::kToolkitPaths},
    {"source-in-ptx", "src-in-ptx", false, Verdict::kToolkitPaths},
    {"use_fast_math", "", false, Verdict::kPass},
    {"ftz", "", true, Verdict::kPass},
    {"prec-div", "", true, Verdict::kPass},
    {"prec-sqrt", "", true, Verdict::kPass},
    {"fmad", "", true, Verdict::kPass},
    {"extra-device-vectorization", "", false, Verdict::kPass},
    {"expt-relaxed-constexpr", "", false, Verdict::kPass},
    {"extended-lambda", "", false, Verdict::kPass},
    {"expt-extended-lambda", "", false, Verdict::kPass},
    {"no-host-device-initializer-list", "nohdinitlist", false, Verdict::kPass},
    {"no-host-device-move-forward", "nohdmoveforward", false, Verdict::kPass},
    {"no-exceptions", "noeh", false, Verdict::kPass},
    {"ftemplate-depth", "", true, Verdict::kPass},
    {"ftemplate-backtrace-limit", "", true, Verdict::kPass},
    {"fmax-errors", "", true, Verdict::kPass},
    {"maxrregcount", "", true, Verdict::kPass},
    {"restrict", "", false, Verdict::kPass},
    {"default-stream", "", true, Verdict::kPass},
    {"keep-device-functions", "", false, Verdict::kPass},
    {"disable-warnings", "w", false, Verdict::kPass},
    {"Werror", "", true, Verdict::kPass},
    {"Wreorder", "", false, Verdict::kPass},
    {"Wdefault-stream-launch", "", false, Verdict::kPass},
    {"Wmissing-launch-bounds", "", false, Verdict::kPass},
    {"Wext-lambda-captures-this", "", false, Verdict::kPass},
    {"Wno-deprecated-declarations", "", false, Verdict::kPass},
    {"Wno-deprecated-gpu-targets", "", false, Verdict::kPass},
    {"Wconversion", "", false, Verdict::kPass},
    {"diag-error", "", true, Verdict::kPass},
    {"diag-suppress", "", true, Verdict::kPass},
    {"diag-warn", "", true, Verdict::kPass},
    {"display-error-number", "err-no", false, Verdict::kPass},
    {"no-display-error-number", "no-err-no", false, Verdict::kPass},
    {"brief-diagnostics", "brief-diag", true, Verdict::kPass},
    {"resource-usage", "res-usage", false, Verdict::kPass},
    {"opt-info", "", true, Verdict::kPass},
    {"threads", "t", true, Verdict::kThreads},
    {"split-compile", "", true, Verdict::kRefuse, kThreads},
    {"split-compile-extended", "", true, Verdict::kRefuse, kThreads},
    {"jump-table-density", "jtd", true, Verdict::kPass},
    {"no-compress", "", false, Verdict::kPass},
    {"compress-mode", "", true, Verdict::kPass},
    {"device-stack-protector", "", true, Verdict::kPass},
    {"static-global-template-stub", "", true, Verdict::kPass},
    {"device-entity-has-hidden-visibility", "", true, Verdict::kPass},
    {"frandom-seed", "", true, Verdict::kPass},
    {"profile", "pg", false, Verdict::kPass},
    {"stdlib", "", true, Verdict::kPass},
    {"allow-unsupported-compiler", "", false, Verdict::kPass},
    {"m64", "", false, Verdict::kDrop},
    {"shared", "", false, Verdict::kDrop},
    {"compiler-options", "Xcompiler", true, Verdict::kHost},
    {"ptxas-options", "Xptxas", true, Verdict::kPtxas},
    {"Xcudafe", "", true, Verdict::kCudafe},
    {"relocatable-device-code", "rdc", true, Verdict::kRelocatable},
    {"cudart", "", true, Verdict::kCudart},

    {"gpu-architecture", "arch", true, Verdict::kRefuse, kArchitecture},
    {"gpu-code", "code", true, Verdict::kRefuse, kArchitecture},
    {"generate-code", "gencode", true, Verdict::kRefuse, kArchitecture},
    {"include-path", "I", true, Verdict::kRefuse, kInclude},
    {"system-include", "isystem", true, Verdict::kRefuse, kInclude},
    {"pre-include", "include", true, Verdict::kRefuse, "write an #include at the top of the source instead"},
    {"library", "l", true, Verdict::kRefuse, kLinkFlag},
    {"library-path", "L", true, Verdict::kRefuse, kLinkFlag},
    {"linker-options", "Xlinker", true, Verdict::kRefuse, kLinkFlag},
    {"nvlink-options", "Xnvlink", true, Verdict::kRefuse, kTools},
    {"compiler-bindir", "ccbin", true, Verdict::kRefuse, "choose the host compiler with CXX"},
    {"options-file", "optf", true, Verdict::kRefuse, "write the flags of the file out"},
    {"forward-unknown-to-host-compiler", "", false, Verdict::kRefuse, kForward},
    {"forward-unknown-to-host-linker", "", false, Verdict::kRefuse, kForward},
    {"forward-unknown-opts", "", false, Verdict::kRefuse, kForward},
    {"device-c", "dc", false, Verdict::kDeviceCompile},
    {"device-w", "dw", false, Verdict::kRefuse, kMechanics},
    {"device-link", "dlink", false, Verdict::kRefuse, kMechanics},
    {"dlink-time-opt", "dlto", false, Verdict::kRefuse, kDeviceLto},
    {"lto", "", false, Verdict::kRefuse, kDeviceLto},
    {"gen-opt-lto", "", false, Verdict::kRefuse, kDeviceLto},
    {"output-file", "o", true, Verdict::kRefuse, kMechanics},
    {"output-directory", "odir", true, Verdict::kRefuse, kMechanics},
    {"x", "", true, Verdict::kRefuse, kMechanics},
    {"machine", "m", true, Verdict::kRefuse, "kernix compiles for 64 bits"},
    {"compile", "c", false, Verdict::kRefuse, kMechanics},
    {"link", "", false, Verdict::kRefuse, kMechanics},
    {"lib", "", false, Verdict::kRefuse, kMechanics},
    {"run", "", false, Verdict::kRefuse, kMechanics},
    {"run-args", "", true, Verdict::kRefuse, kMechanics},
    {"cuda", "", false, Verdict::kRefuse, kMechanics},
    {"cubin", "", false, Verdict::kRefuse, kMechanics},
    {"fatbin", "", false, Verdict::kRefuse, kMechanics},
    {"ptx", "", false, Verdict::kRefuse, kMechanics},
    {"optix-ir", "", false, Verdict::kRefuse, kMechanics},
    {"ltoir", "", false, Verdict::kRefuse, kMechanics},
    {"preprocess", "E", false, Verdict::kRefuse, kMechanics},
    {"generate-dependencies", "M", false, Verdict::kRefuse, kMechanics},
    {"generate-nonsystem-dependencies", "MM", false, Verdict::kRefuse, kMechanics},
    {"generate-dependencies-with-compile", "MD", false, Verdict::kRefuse, kMechanics},
    {"generate-nonsystem-dependencies-with-compile", "MMD", false, Verdict::kRefuse, kMechanics},
    {"dependency-output", "MF", true, Verdict::kRefuse, kMechanics},
    {"dependency-target-name", "MT", true, Verdict::kRefuse, kMechanics},
    {"generate-dependency-targets", "MP", false, Verdict::kRefuse, kMechanics},
    {"keep", "", false, Verdict::kRefuse, kMechanics},
    {"keep-dir", "", true, Verdict::kRefuse, kMechanics},
    {"save-temps", "", false, Verdict::kRefuse, kMechanics},
    {"clean-targets", "clean", false, Verdict::kRefuse, kMechanics},
    {"objdir-as-tempdir", "objtemp", false, Verdict::kRefuse, kMechanics},
    {"dryrun", "", false, Verdict::kRefuse, kMechanics},
    {"verbose", "v", false, Verdict::kRefuse, "ask for verbose instead"},
    {"time", "", true, Verdict::kRefuse, kMechanics},
    {"fdevice-time-trace", "", true, Verdict::kRefuse, kMechanics},
    {"fdevice-syntax-only", "", false, Verdict::kRefuse, kMechanics},
    {"help", "h", false, Verdict::kRefuse, kMechanics},
    {"version", "V", false, Verdict::kRefuse, kMechanics},
    {"list-gpu-code", "code-ls", false, Verdict::kRefuse, kMechanics},
    {"list-gpu-arch", "arch-ls", false, Verdict::kRefuse, kMechanics},
    {"cudadevrt", "", true, Verdict::kRefuse, kMechanics},
    {"libdevice-directory", "ldir", true, Verdict::kRefuse, kTools},
    {"target-directory", "target-dir", true, Verdict::kRefuse, kTools},
    {"archiver-binary", "arbin", true, Verdict::kRefuse, kTools},
    {"dont-use-profile", "noprof", false, Verdict::kRefuse, kTools},
    {"apply-controls", "", true, Verdict::kRefuse, kTools},
    {"qpp-config", "", true, Verdict::kRefuse, kTools},
    {"host-linker-script", "hls", true, Verdict::kRefuse, kMechanics},
    {"augment-host-linker-script", "aug-hls", false, Verdict::kRefuse, kMechanics},
    {"relocatable-link", "r", false, Verdict::kRefuse, kMechanics},
    {"jobserver", "", false, Verdict::kRefuse, kMechanics},
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
  if (given.rule == nullptr || !given.rule->has_value || !given.value.empty()) return given;
  if (next == flags.size()) return RefuseFlag(given.text, "its value is missing");
  given.value = flags[next++];
  given.words.push_back(given.value);
  return given;
}

std::vector<std::string> Pieces(const std::string& value) {
  return absl::StrSplit(value, absl::ByAnyChar(", "), absl::SkipEmpty());
}

absl::Status CheckPtxas(const Given& given) {
  for (const std::string& piece : Pieces(given.value)) {
    const std::string_view name = WithoutDashes(piece);
    const bool file = name.starts_with("o=") || name == "o" || name.starts_with("output-file") ||
                      name.starts_with("opt") || piece.find('/') != std::string::npos;
    if (file && !name.starts_with("opt-level")) return RefuseFlag(given.text + " " + piece, kMechanics);
  }
  return absl::OkStatus();
}

absl::Status CheckCudafe(const Given& given) {
  for (const std::string& piece : Pieces(given.value)) {
    if (piece.starts_with("--diag_") || piece.starts_with("--display_error_number")) continue;
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

absl::Status CheckOne(FlagContext& context, const Given& given, std::vector<std::string>& host_flags) {
  CheckedFlags& result = context.result;
  if (given.rule == nullptr) KERNIX_RETURN_IF_ERROR(CheckUnknown(context, given.text));
  const Verdict verdict = given.rule == nullptr ? Verdict::kPass : given.rule->verdict;
  switch (verdict) {
    case Verdict::kRefuse:
      return RefuseFlag(given.text, given.rule->why);
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
      KERNIX_RETURN_IF_ERROR(CheckPtxas(given));
      break;
    case Verdict::kCudafe:
      KERNIX_RETURN_IF_ERROR(CheckCudafe(given));
      break;
    case Verdict::kRelocatable:
      result.relocatable_device_code = given.value == "true";
      break;
    case Verdict::kDeviceCompile:
      result.relocatable_device_code = true;
      result.compile.push_back("-rdc=true");
      return absl::OkStatus();
    case Verdict::kToolkitPaths:
      result.toolkit_path_in_artifact = true;
      break;
    case Verdict::kPass:
      break;
  }
  result.compile.insert(result.compile.end(), given.words.begin(), given.words.end());
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckNvccFlags(FlagContext& context, const std::vector<std::string>& flags) {
  std::vector<std::string> host_flags;
  for (size_t next = 0; next < flags.size();) {
    KERNIX_ASSIGN_OR_RETURN(const Given given, ReadFlag(flags, next));
    KERNIX_RETURN_IF_ERROR(CheckOne(context, given, host_flags));
  }
  std::vector<std::string> passed;
  KERNIX_RETURN_IF_ERROR(CheckHostFlags(context, host_flags, passed));
  for (std::string& flag : passed) {
    context.result.compile.insert(context.result.compile.end(), {"-Xcompiler", std::move(flag)});
  }
  return absl::OkStatus();
}

}  // namespace kernix::toolchain
