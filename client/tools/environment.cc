// SPDX-License-Identifier: Apache-2.0
#include "client/tools/environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/flags/languages.h"
#include "common/os/fork_safety.h"

namespace kernix {
namespace {

struct Ineffective {
  const char* variable;
  const char* advice;
};

constexpr Ineffective kIneffective[] = {
    {"BRAINEVENT_CACHE_DIR", "the store is chosen with KERNIX_CACHE_DIR or kernix.set_cache_dir()"},
    {"BRAINEVENT_COMPILE_TIMEOUT", "the time limit of a job is a setting of kernixd"},
    {"BRAINEVENT_TOOLCHAIN_DEBUG", "pass verbose=True, or call kernix.print_diagnostics()"},
    {"BRAINEVENT_CSR_HYBRID_CONFIG", "it tunes brainevent's own kernels"},
    {"C_INCLUDE_PATH", "it applies to C; use CPATH, CPLUS_INCLUDE_PATH or extra_include_paths"},
    {"LD_RUN_PATH",
     "a compiled kernel names no folder; set LD_LIBRARY_PATH before the program starts, or open the library before the "
     "load (ctypes.CDLL)"},
};

// Read by clients and daemons: docs/environment.md. First the settings of a daemon that has started for a client.
constexpr char kOfDaemons[] =
    "KERNIX_CACHE_LIMIT_BYTES KERNIX_CACHE_LIMIT_PER_USER KERNIX_DISABLED_SHORTCUTS KERNIX_DRAIN_TIMEOUT "
    "KERNIX_IDLE_TIMEOUT KERNIX_JOBS KERNIX_JOB_TIMEOUT KERNIX_LOG_LEVEL KERNIX_MAX_CONNECTIONS_PER_USER "
    "KERNIX_MAX_FETCHES_PER_USER KERNIX_MAX_LOADS_PER_USER KERNIX_MAX_REQUEST_BYTES KERNIX_MAX_REQUEST_BYTES_PER_USER "
    "KERNIX_MEMORY_BUDGET_BYTES KERNIX_SANDBOX KERNIX_TOOLCHAIN_DESCRIPTION KERNIX_UPSTREAM_ADDRESS "
    "KERNIX_UPSTREAM_BUILD_ONCE KERNIX_UPSTREAM_CA_FILE KERNIX_UPSTREAM_CERTIFICATE_FILE "
    "KERNIX_UPSTREAM_DEVICE_COMPILES KERNIX_UPSTREAM_HOST_COMPILES KERNIX_UPSTREAM_INSTANCE KERNIX_UPSTREAM_JOBS "
    "KERNIX_UPSTREAM_KEY_FILE KERNIX_UPSTREAM_LINKS KERNIX_UPSTREAM_OVERFLOW_AFTER KERNIX_UPSTREAM_PLATFORM "
    "KERNIX_UPSTREAM_QUEUE_TIMEOUT KERNIX_UPSTREAM_READ KERNIX_UPSTREAM_SAME_TOOLS KERNIX_UPSTREAM_SHIPPED_FOLDERS "
    "KERNIX_UPSTREAM_SIGNING_KEY_FILE KERNIX_UPSTREAM_STEPS KERNIX_UPSTREAM_TIMEOUT KERNIX_UPSTREAM_TOKEN_FILE "
    "KERNIX_UPSTREAM_TOKEN_HEADER KERNIX_UPSTREAM_TRUSTED_KEYS KERNIX_UPSTREAM_WRITE";
constexpr char kOthers[] =
    "BRAINEVENT_ALLOW_UNSUPPORTED_COMPILER BRAINEVENT_COMPUTE_CAPABILITIES BRAINEVENT_NVCC_PATH "
    "BRAINEVENT_NVCC_PREFER KERNIX_ADDRESS KERNIX_ADMIN_GROUP KERNIX_BUNDLES KERNIX_BUNDLE_KEYS KERNIX_CACHE_DIR "
    "KERNIX_HISTORY KERNIX_LOG_FILE KERNIX_MAX_OUTPUT_BYTES KERNIX_MAX_PROCESSES_PER_JOB "
    "KERNIX_MAX_PROCESS_MEMORY_BYTES KERNIX_POLICY KERNIX_RECORD KERNIX_SHARED KERNIX_SITE_PACKAGES KERNIX_SOCKET "
    "KERNIX_SOCKET_GROUP KERNIX_SPAWN_SOCKET KERNIX_STORE_DIRECTORY KERNIX_UNKNOWN_USERS KERNIX_UPLOAD_TIMEOUT "
    "KERNIX_WARNINGS";

// Prefixes of the variables that belong to brainevent and kernix, and of those that only tests read.
constexpr std::string_view kOurs[] = {"BRAINEVENT_", "KERNIX_"};
constexpr std::string_view kOfTests = "KERNIX_TEST_";

bool IsOurs(std::string_view name) {
  const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
  return std::any_of(std::begin(kOurs), std::end(kOurs), begins) && !name.starts_with(kOfTests);
}

std::vector<std::string> EffectiveVariables() { return absl::StrSplit(StrCat(kOfDaemons, " ", kOthers), ' '); }

bool IsKnown(std::string_view name) {
  const std::vector<std::string> names = EffectiveVariables();
  return std::find(names.begin(), names.end(), name) != names.end() ||
         std::any_of(std::begin(kIneffective), std::end(kIneffective),
                     [&](const Ineffective& ineffective) { return name == ineffective.variable; });
}

// Variables that a compiler of a module system may need to run. kernixd passes them to compilers that do not run
// without.
constexpr const char* kCompilersOwn[] = {"LD_LIBRARY_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH"};

std::vector<std::string> IneffectiveVariables(const GetEnv& get_env) {
  std::vector<std::string> warnings;
  for (const auto& [variable, advice] : kIneffective) {
    if (get_env(variable))
      warnings.push_back(StrCat("the environment variable ", variable, " has no effect: ", advice));
  }
  const std::string prefer = get_env("BRAINEVENT_NVCC_PREFER").value_or("system");
  if (prefer != "pip" && prefer != "system") {
    warnings.push_back(StrCat("the environment variable BRAINEVENT_NVCC_PREFER has no effect: \"", prefer,
                              "\" is neither \"pip\" nor \"system\""));
  }
  return warnings;
}

// An empty element means the working folder, as in GCC.
std::vector<std::string> PathList(const GetEnv& get_env, const std::string& variable) {
  std::vector<std::string> paths;
  const std::optional<std::string> value = get_env(variable);
  if (!value) return paths;
  for (const absl::string_view path : absl::StrSplit(*value, ':')) paths.emplace_back(path.empty() ? "." : path);
  return paths;
}

absl::StatusOr<std::vector<std::string>> Words(const GetEnv& get_env, const std::string& variable) {
  absl::StatusOr<std::vector<std::string>> words = SplitShellWords(get_env(variable).value_or(""));
  if (words.ok()) return words;
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat("cannot read the environment variable ", variable, ": ", ToStd(words.status().message())));
}

bool IsTrue(const std::optional<std::string>& value) {
  const std::string text = absl::AsciiStrToLower(absl::StripAsciiWhitespace(value.value_or("")));
  return text == "1" || text == "true" || text == "yes" || text == "on";
}

absl::Status ReadCudaVariables(const GetEnv& get_env, CompilerEnvironment& environment) {
  KERNIX_ASSIGN_OR_RETURN(environment.flags_before, Words(get_env, "NVCC_PREPEND_FLAGS"));
  KERNIX_ASSIGN_OR_RETURN(environment.flags_after, Words(get_env, "NVCC_APPEND_FLAGS"));
  if (IsTrue(get_env("BRAINEVENT_ALLOW_UNSUPPORTED_COMPILER"))) {
    environment.flags_before.emplace_back("-allow-unsupported-compiler");
  }
  environment.host_compiler = get_env("NVCC_CCBIN").value_or("");
  environment.compute_capability = get_env("BRAINEVENT_COMPUTE_CAPABILITIES").value_or("");
  return absl::OkStatus();
}

// Prefixes of the variables that a load depends on.
constexpr char kLoadVariables[] =
    "BRAINEVENT_ COMPILER_PATH= CONDA_PREFIX= CPATH= CPLUS_INCLUDE_PATH= CUDAHOSTCXX= CUDA_ CXX= C_INCLUDE_PATH= GCC_ "
    "HOME= KERNIXD= KERNIX_ LD_LIBRARY_PATH= LIBRARY_PATH= NVCC_ PATH= SOURCE_DATE_EPOCH= TMPDIR= XDG_";

void AppendIfOfLoads(std::string_view variable, std::string& text) {
  static const auto& beginnings = *new std::vector<std::string>(absl::StrSplit(kLoadVariables, ' '));
  const bool counts = std::any_of(beginnings.begin(), beginnings.end(), [&](std::string_view beginning) {
    return beginning.front() == variable.front() && variable.starts_with(beginning);
  });
  if (counts) text.append(variable).push_back('\0');
}

struct Warnings {
  ForkSafeMutex mutex;
  absl::flat_hash_set<std::string> given ABSL_GUARDED_BY(mutex);
};

}  // namespace

absl::StatusOr<CompilerEnvironment> ReadCompilerEnvironment(const GetEnv& get_env, v1::Language language) {
  CompilerEnvironment environment;
  environment.include_paths = PathList(get_env, "CPATH");
  environment.system_include_paths = PathList(get_env, "CPLUS_INCLUDE_PATH");
  environment.library_paths = PathList(get_env, "LIBRARY_PATH");
  environment.warnings = IneffectiveVariables(get_env);
  if (TraitsOf(language).needs_nvcc) KERNIX_RETURN_IF_ERROR(ReadCudaVariables(get_env, environment));
  return environment;
}

std::vector<std::string> VariablesOfCompilers(const GetEnv& get_env) {
  std::vector<std::string> variables;
  for (const char* name : kCompilersOwn) {
    const std::optional<std::string> value = get_env(name);
    if (value && IsValidUtf8(*value)) variables.push_back(StrCat(name, "=", *value));
  }
  return variables;
}

std::vector<std::string> DaemonVariables() { return absl::StrSplit(kOfDaemons, ' '); }

std::vector<std::string> UnknownVariableWarnings(const std::vector<std::string>& variables) {
  std::vector<std::string> warnings;
  for (const std::string& variable : variables) {
    const std::string name = variable.substr(0, variable.find('='));
    if (!IsOurs(name) || IsKnown(name)) continue;
    warnings.push_back(StrCat("the environment variable ", name, " has no effect: kernix does not know it.",
                              DidYouMean(name, EffectiveVariables())));
  }
  return warnings;
}

std::vector<std::string> ProcessVariables() {
  std::vector<std::string> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    variables.emplace_back(*variable);
  }
  return variables;
}

std::string AbsolutePath(std::string_view path) {
  if (!path.empty() && path.front() == '/') return std::string(path);
  const std::unique_ptr<char, decltype(&std::free)> folder(getcwd(nullptr, 0), &std::free);
  return JoinPath(folder == nullptr ? "/" : folder.get(), path);
}

std::string VariablesOfLoads(const std::vector<std::string>& variables) {
  std::string text;
  for (const std::string& variable : variables) {
    if (!variable.empty()) AppendIfOfLoads(variable, text);
  }
  return text;
}

std::string VariablesOfLoads() {
  std::string text;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (**variable != '\0') AppendIfOfLoads(*variable, text);
  }
  return text;
}

GetEnv GetEnvOf(std::vector<std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    for (const std::string& variable : variables) {
      if (variable.size() <= name.size() || variable[name.size()] != '=' || !absl::StartsWith(variable, name)) continue;
      std::string value = variable.substr(name.size() + 1);
      return value.empty() ? std::nullopt : std::make_optional(std::move(value));
    }
    return std::nullopt;
  };
}

bool IsFirstWarning(const std::string& warning) {
  auto& warnings = PerProcess<Warnings>::Get();
  MutexLock lock(warnings.mutex);
  return warnings.given.insert(warning).second;
}

namespace {

// Reads words one after another.
class Splitter {
 public:
  explicit Splitter(std::string_view text) : rest_(text) {}

  bool SkipSpace() {
    while (!rest_.empty() && absl::ascii_isspace(rest_.front())) rest_.remove_prefix(1);
    return !rest_.empty();
  }

  absl::StatusOr<std::string> Word() {
    std::string word;
    while (!rest_.empty() && !absl::ascii_isspace(rest_.front())) {
      const char c = Take();
      if (c == '\'' || c == '"') {
        KERNIX_RETURN_IF_ERROR(Quoted(c, word));
      } else if (c == '\\' && !rest_.empty()) {
        word += Take();
      } else {
        word += c;
      }
    }
    return word;
  }

 private:
  char Take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  absl::Status Quoted(char quote, std::string& word) {
    while (!rest_.empty()) {
      const char c = Take();
      if (c == quote) return absl::OkStatus();
      const bool escape = c == '\\' && quote == '"' && !rest_.empty() &&
                          std::string_view("\"\\$`").find(rest_.front()) != std::string_view::npos;
      word += escape ? Take() : c;
    }
    return absl::InvalidArgumentError(StrCat("the quote ", std::string(1, quote), " is not closed"));
  }

  std::string_view rest_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitShellWords(std::string_view text) {
  std::vector<std::string> words;
  Splitter splitter(text);
  while (splitter.SkipSpace()) {
    KERNIX_ASSIGN_OR_RETURN(std::string word, splitter.Word());
    words.push_back(std::move(word));
  }
  return words;
}

namespace {

constexpr char kVariable[] = "KERNIX_WARNINGS";
constexpr std::string_view kNone = "none";

std::vector<std::string> Switches(const GetEnv& get_env) {
  return absl::StrSplit(get_env(kVariable).value_or(""), absl::ByAnyChar(", \t"), absl::SkipEmpty());
}

std::string SwitchOf(std::string_view name) { return StrCat("no-", name); }

std::vector<std::string> AllSwitches() {
  std::vector<std::string> all = {std::string(kNone)};
  for (const std::string_view name : warning::kNames) all.push_back(SwitchOf(name));
  return all;
}

}  // namespace

std::optional<std::string> ShownWarning(const GetEnv& get_env, std::string_view name, std::string_view text) {
  const std::string own = SwitchOf(name);
  const std::vector<std::string> switches = Switches(get_env);
  const bool hidden = std::any_of(switches.begin(), switches.end(),
                                  [&](const std::string& word) { return word == kNone || word == own; });
  if (hidden) return std::nullopt;
  return StrCat(text, " [", kVariable, "=", own, "]");
}

std::vector<std::string> WarningsAboutSwitches(const GetEnv& get_env) {
  const std::vector<std::string> all = AllSwitches();
  std::vector<std::string> warnings;
  for (const std::string& word : Switches(get_env)) {
    if (std::find(all.begin(), all.end(), word) != all.end()) continue;
    warnings.push_back(StrCat("the environment variable ", kVariable, " has \"", word, "\", which has no effect.",
                              DidYouMean(word, all), " It takes ", absl::StrJoin(all, ", "), "."));
  }
  return warnings;
}

}  // namespace kernix
