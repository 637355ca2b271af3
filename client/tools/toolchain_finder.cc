// SPDX-License-Identifier: Apache-2.0
#include "client/tools/toolchain_finder.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/tools/environment.h"
#include "common/base/error.h"
#include "common/base/processor.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/flags/languages.h"

namespace kernix {

bool IsProgram(Env& env, const std::string& path) {
  const absl::StatusOr<FileInfo> info = env.Stat(path);
  return info.ok() && info->type == FileType::kRegular && (info->mode & 0111) != 0;
}

std::optional<std::string> FirstOnPath(Env& env, const GetEnv& get_env, const std::string& name,
                                       const std::function<bool(const std::string& program)>& fits) {
  const std::string path = get_env("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (const absl::string_view folder : absl::StrSplit(path, ':')) {
    std::string candidate = AbsolutePath(JoinPath(std::string(folder), name));
    if (IsProgram(env, candidate) && fits(candidate)) return candidate;
  }
  return std::nullopt;
}

bool IsCompilerLauncher(Env& env, const std::string& path) {
  static constexpr std::string_view kLaunchers[] = {"ccache", "sccache", "distcc", "icecc", "buildcache"};
  const auto is_launcher = [](const std::string& name) {
    return std::find(std::begin(kLaunchers), std::end(kLaunchers), name) != std::end(kLaunchers);
  };
  if (is_launcher(Basename(path))) return true;
  const absl::StatusOr<std::string> real = env.RealPath(path);
  return real.ok() && is_launcher(Basename(*real));
}

namespace {

constexpr char kSystemToolkit[] = "/usr/local/cuda";

absl::Status ToolchainError(const std::string& message) { return MakeError(v1::ErrorDetail::TOOLCHAIN, message); }

absl::Status NoTool(const std::string& message) {
  return MakeError(v1::ErrorDetail::TOOLCHAIN, message, absl::StatusCode::kUnimplemented);
}

std::optional<std::string> FirstCompilerOnPath(Env& env, const GetEnv& get_env, const std::string& name) {
  return FirstOnPath(env, get_env, name, [&](const std::string& program) { return !IsCompilerLauncher(env, program); });
}

// --- Host compiler ---------------------------------------------------------------------------------------------------

// The compiler that serves if the user asks for none.
std::optional<std::string> AnyCompiler(Env& env, const GetEnv& get_env) {
  for (const char* name : {"c++", "g++", "clang++"}) {
    if (std::optional<std::string> found = FirstCompilerOnPath(env, get_env, name)) return found;
  }
  return std::nullopt;
}

// Resolves a compiler that the user asked for: a path, a name on PATH, or a folder that contains g++.
absl::StatusOr<std::string> ResolveCompiler(Env& env, const GetEnv& get_env, const std::string& asked,
                                            const std::string& from) {
  const bool is_path = absl::StrContains(asked, '/');
  const std::string path = AbsolutePath(asked);
  if (is_path && IsProgram(env, path) && !IsCompilerLauncher(env, path)) return path;
  if (is_path && IsProgram(env, JoinPath(path, "g++"))) return JoinPath(path, "g++");
  // A link such as /usr/lib/ccache/g++ stands for the next compiler of that name on PATH.
  if (!is_path || IsProgram(env, path)) {
    if (std::optional<std::string> found = FirstCompilerOnPath(env, get_env, Basename(asked))) return *std::move(found);
  }
  const std::string missing =
      StrCat(from, " asks for the C++ compiler \"", asked, "\", but there is no such program. Correct it or unset it.");
  return AnyCompiler(env, get_env) ? ToolchainError(missing) : NoTool(missing);
}

absl::StatusOr<std::string> CompilerFromCxx(Env& env, const GetEnv& get_env, const std::string& value) {
  const std::string whole(absl::StripAsciiWhitespace(value));
  if (absl::StrContains(whole, '/') && IsProgram(env, whole)) return ResolveCompiler(env, get_env, whole, "CXX");
  absl::StatusOr<std::vector<std::string>> words = SplitShellWords(value);
  if (!words.ok()) return ToolchainError(StrCat("cannot read CXX=", value, ": ", ToStd(words.status().message())));
  if (words->size() > 1 && IsCompilerLauncher(env, words->front())) words->erase(words->begin());
  if (words->size() == 1) return ResolveCompiler(env, get_env, words->front(), "CXX");
  return ToolchainError(StrCat("CXX=\"", value,
                               "\" is more than a compiler: set CXX to the compiler alone, and pass \"",
                               absl::StrJoin(words->begin() + (words->empty() ? 0 : 1), words->end(), " "),
                               "\" in extra_cflags (extra_cuda_cflags, behind -Xcompiler, for CUDA)."));
}

absl::StatusOr<std::string> FindHostCompiler(Env& env, const GetEnv& get_env, const ToolchainSearch& search) {
  if (!search.host_compiler.empty()) {
    return ResolveCompiler(env, get_env, search.host_compiler, search.host_compiler_from);
  }
  const std::optional<std::string> cxx = get_env("CXX");
  if (cxx && !absl::StripAsciiWhitespace(*cxx).empty()) return CompilerFromCxx(env, get_env, *cxx);
  if (std::optional<std::string> found = AnyCompiler(env, get_env)) return *std::move(found);
  return NoTool(StrCat(
      "no C++ compiler found. Looked for: $CXX (not set); c++, g++ and clang++ on PATH (",
      get_env("PATH").value_or("not set"),
      "). Install one (Debian, Ubuntu: apt-get install g++; Fedora: dnf install gcc-c++; conda: conda install -c "
      "conda-forge gxx), or set CXX to its path."));
}

// --- nvcc ------------------------------------------------------------------------------------------------------------

// "cu13" -> 13.
std::optional<int> ConsolidatedVersion(std::string_view package) {
  int version = 0;
  if (!absl::StartsWith(ToAbsl(package), "cu") || !absl::SimpleAtoi(ToAbsl(package.substr(2)), &version))
    return std::nullopt;
  return version;
}

// Where the `packages` of a folder of wheels would have nvcc, newest first: nvidia/cu13/bin/nvcc (since CUDA 13),
// nvidia/cuda_nvcc/bin/nvcc (12).
std::vector<std::string> WheelCandidates(const std::string& nvidia, const std::vector<std::string>& packages) {
  std::vector<std::pair<int, std::string>> found;
  for (const std::string& package : packages) {
    const std::optional<int> version = package == "cuda_nvcc" ? 12 : ConsolidatedVersion(package);
    if (version) found.emplace_back(*version, JoinPath(JoinPath(nvidia, package), "bin/nvcc"));
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> candidates;
  candidates.reserve(found.size());
  for (auto& [version, path] : found) candidates.push_back(std::move(path));
  return candidates;
}

constexpr int kOldestToolkit = 12;

// CUDA_VERSION as this text of cuda.h defines it, on a line that is complete: 11080 for CUDA 11.8.
std::optional<int> VersionIn(std::string_view text) {
  constexpr std::string_view kDefinition = "#define CUDA_VERSION ";
  const size_t found = text.find(kDefinition);
  const size_t end = found == std::string_view::npos ? found : text.find('\n', found);
  int version = 0;
  if (end == std::string_view::npos) return std::nullopt;
  const size_t begin = found + kDefinition.size();
  return absl::SimpleAtoi(ToAbsl(text.substr(begin, end - begin)), &version) ? std::optional(version) : std::nullopt;
}

// cuda.h has more than a megabyte, but defines its version at the beginning.
std::optional<int> VersionInFile(Env& env, const std::string& path) {
  const absl::StatusOr<std::unique_ptr<ReadableFile>> file = env.OpenFile(path);
  if (!file.ok()) return std::nullopt;
  std::string beginning(32 << 10, '\0');
  const absl::StatusOr<size_t> count = (*file)->ReadAt(0, beginning);
  if (!count.ok()) return std::nullopt;
  if (const auto version = VersionIn(std::string_view(beginning).substr(0, *count))) return version;
  return *count < beginning.size() ? std::nullopt : VersionIn(env.ReadFile(path).value_or(""));
}

// The version of the toolkit that contains `nvcc`, as in its cuda.h. Returns nullopt if that header is not found beside
// nvcc; the daemon then asks nvcc. Asking nvcc here would cost each load a process.
std::optional<int> ToolkitVersion(Env& env, const std::string& nvcc) {
  const std::string root = Dirname(Dirname(env.RealPath(nvcc).value_or(nvcc)));
  for (const std::string& header : {std::string("include/cuda.h"), StrCat(kCudaTarget, "/include/cuda.h")}) {
    if (const std::optional<int> version = VersionInFile(env, JoinPath(root, header))) return version;
  }
  return std::nullopt;
}

// An nvcc, and the version of its toolkit if its headers tell (11080 for CUDA 11.8).
struct FoundNvcc {
  std::string path;
  std::optional<int> version;
};

// Tries one place after another, and remembers them for the error message.
class NvccSearch {
 public:
  NvccSearch(Env& env, const GetEnv& get_env, const std::vector<std::string>& site_packages)
      : env_(env), get_env_(get_env), site_packages_(site_packages) {}

  absl::StatusOr<FoundNvcc> Find() {
    const std::optional<std::string> asked = get_env_("BRAINEVENT_NVCC_PATH");
    if (!asked) return FindAny();
    if (IsProgram(env_, *asked)) return FoundNvcc{AbsolutePath(*asked), ToolkitVersion(env_, AbsolutePath(*asked))};
    const std::string missing = StrCat("BRAINEVENT_NVCC_PATH=", *asked, " is not a program. Correct it or unset it.");
    return FindAny().ok() ? ToolchainError(missing) : NoTool(missing);
  }

 private:
  absl::StatusOr<FoundNvcc> FindAny() {
    const bool wheels_first = get_env_("BRAINEVENT_NVCC_PREFER").value_or("") == "pip";
    if (FromRootVariable("CUDA_HOME") || FromRootVariable("CUDA_PATH") || (wheels_first && FromWheels()) ||
        FromPath() || Try(StrCat(kSystemToolkit, "/bin/nvcc")) || FromWheels()) {
      return found_;
    }
    return NoTool(StrCat(
        "no nvcc found. Looked at: ", absl::StrJoin(looked_at_, "; "),
        ". Install a CUDA toolkit (12 or newer) and set CUDA_HOME to its folder, or install the wheels: pip install "
        "nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm nvidia-cuda-runtime nvidia-cuda-cccl (CUDA 13; the wheels of "
        "CUDA 12 have no nvcc).",
        site_packages_.empty() ? " No folder of wheels was searched: name one with --site-packages (kernixctl), "
                                 "KERNIX_SITE_PACKAGES or ClientOptions::site_packages."
                               : ""));
  }

  bool Try(const std::string& path) {
    if (!IsProgram(env_, path)) {
      looked_at_.push_back(path);
      return false;
    }
    const std::optional<int> version = ToolkitVersion(env_, path);
    if (version && *version < kOldestToolkit * 1000) {
      looked_at_.push_back(StrCat(path, " (CUDA ", *version / 1000, ".", *version % 1000 / 10, ", too old)"));
      return false;
    }
    found_ = {path, version};
    return true;
  }

  bool FromRootVariable(const char* variable) {
    const std::optional<std::string> root = get_env_(variable);
    if (root) return Try(AbsolutePath(JoinPath(*root, "bin/nvcc")));
    looked_at_.push_back(StrCat("$", variable, " (not set)"));
    return false;
  }

  bool FromPath() {
    bool tried = false;
    const auto found = FirstOnPath(env_, get_env_, "nvcc", [&](const std::string& program) {
      tried = true;
      return Try(program);
    });
    if (!tried) looked_at_.push_back("nvcc on PATH");
    return found.has_value();
  }

  // Most folders of a Python's path have no wheels.
  bool FromWheels() {
    std::vector<std::string> without_wheels;
    for (const std::string& site : site_packages_) {
      const std::string nvidia = JoinPath(site, "nvidia");
      const absl::StatusOr<std::vector<std::string>> packages = env_.ListDirectory(nvidia);
      if (!packages.ok()) {
        without_wheels.push_back(site);
        continue;
      }
      for (const std::string& candidate : WheelCandidates(nvidia, *packages)) {
        if (Try(candidate)) return true;
      }
      looked_at_.push_back(StrCat(nvidia, "/{cu13,cuda_nvcc}/bin/nvcc"));
    }
    if (!without_wheels.empty()) {
      looked_at_.push_back(StrCat("NVIDIA's wheels in ", absl::StrJoin(without_wheels, ", "), " (none)"));
    }
    return false;
  }

  Env& env_;
  const GetEnv& get_env_;
  const std::vector<std::string>& site_packages_;
  FoundNvcc found_;
  std::vector<std::string> looked_at_;
};

// Wheel packages with headers and libraries (cuBLAS, cuRAND, ...) for toolkits of CUDA `major`, wherever nvcc itself
// is. The kernel should use the libraries that JAX and other packages have installed.
std::vector<std::string> LibraryPackages(Env& env, const std::vector<std::string>& site_packages, int major) {
  std::vector<std::string> packages;
  for (const std::string& site : site_packages) {
    const std::string nvidia = JoinPath(site, "nvidia");
    for (const std::string& name : env.ListDirectory(nvidia).value_or(std::vector<std::string>())) {
      // The wheels of CUDA 12 have a folder each, whose name does not tell the version.
      const int version = ConsolidatedVersion(name).value_or(kOldestToolkit);
      if (version == major && name != "cuda_nvcc") packages.push_back(JoinPath(nvidia, name));
    }
  }
  return packages;
}

// The wheel folders that contain parts of the toolkit of `nvcc`. Empty for a toolkit in a single folder.
std::vector<std::string> WheelPackages(Env& env, const std::string& nvcc) {
  const std::string package = Dirname(Dirname(nvcc));
  const std::string nvidia = Dirname(package);
  if (Basename(nvidia) != "nvidia") return {};
  if (ConsolidatedVersion(Basename(package))) return {package};
  if (Basename(package) != "cuda_nvcc") return {};
  std::vector<std::string> packages = {package};
  for (const std::string& name : env.ListDirectory(nvidia).value_or(std::vector<std::string>())) {
    if (name != "cuda_nvcc" && !ConsolidatedVersion(name)) packages.push_back(JoinPath(nvidia, name));
  }
  return packages;
}

int MajorVersion(const FoundNvcc& nvcc) {
  if (Basename(Dirname(Dirname(nvcc.path))) == "cuda_nvcc") return kOldestToolkit;
  return nvcc.version.value_or(0) / 1000;
}

void AddWheelFolders(Env& env, const std::vector<std::string>& site_packages, const FoundNvcc& nvcc,
                     v1::ToolchainPaths& paths) {
  const auto is_folder = [&](const std::string& path) {
    const absl::StatusOr<FileInfo> info = env.Stat(path);
    return info.ok() && info->type == FileType::kDirectory;
  };
  std::vector<std::string> packages = WheelPackages(env, nvcc.path);
  for (std::string& package : LibraryPackages(env, site_packages, MajorVersion(nvcc))) {
    if (std::find(packages.begin(), packages.end(), package) == packages.end()) packages.push_back(std::move(package));
  }
  for (const std::string& package : packages) {
    const std::string include = JoinPath(package, "include");
    const std::string lib = JoinPath(package, "lib");
    if (is_folder(include)) paths.add_cuda_include_directories(include);
    if (is_folder(lib)) paths.add_cuda_library_directories(lib);
  }
}

}  // namespace

bool LacksTools(const absl::Status& status) {
  return absl::IsUnimplemented(status) && KindOf(status) == v1::ErrorDetail::TOOLCHAIN;
}

std::vector<std::string> CudaRootWarnings(Env& env, const GetEnv& get_env) {
  std::vector<std::string> warnings;
  if (get_env("BRAINEVENT_NVCC_PATH")) return warnings;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const std::optional<std::string> root = get_env(variable);
    if (!root) continue;
    const std::string nvcc = AbsolutePath(JoinPath(*root, "bin/nvcc"));
    if (IsProgram(env, nvcc)) break;  // what comes later is not asked
    warnings.push_back(StrCat(variable, "=", *root, " does not lead to an nvcc: there is no program ", nvcc,
                              ", so kernix looks elsewhere. Set it to the folder of a CUDA toolkit, or unset it."));
  }
  return warnings;
}

absl::StatusOr<v1::ToolchainPaths> FindToolchain(Env& env, const GetEnv& get_env, const ToolchainSearch& search) {
  v1::ToolchainPaths paths;
  if (TraitsOf(search.language).needs_nvcc) {
    KERNIX_ASSIGN_OR_RETURN(const FoundNvcc nvcc, NvccSearch(env, get_env, search.site_packages).Find());
    paths.set_nvcc(nvcc.path);
    AddWheelFolders(env, search.site_packages, nvcc, paths);
  }
  KERNIX_ASSIGN_OR_RETURN(*paths.mutable_host_compiler(), FindHostCompiler(env, get_env, search));
  for (std::string& variable : VariablesOfCompilers(get_env)) paths.add_variable(std::move(variable));
  return paths;
}

}  // namespace kernix
