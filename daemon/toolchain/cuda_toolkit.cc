// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/cuda_toolkit.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/processor.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/toolchain/file_digests.h"
#include "daemon/toolchain/tool_query.h"

namespace kernix::toolchain {
namespace {

constexpr int kOldestMajor = 12;

absl::Status ToolchainError(std::string_view message) { return MakeError(v1::ErrorDetail::TOOLCHAIN, message); }

// nvcc's own variables in the output of a dry run, "#$ NAME=value". Only these are read: the commands after them change
// from release to release.
class DryRun {
 public:
  explicit DryRun(std::string text) : text_(std::move(text)) {}

  std::string Variable(std::string_view name) const { return LineAfter(text_, StrCat("#$ ", name, "=")).value_or(""); }

  // The folders in a list of flags, such as "-Ia" "-isystem" "b".
  std::vector<std::string> Folders(std::string_view name, std::string_view flag) const {
    std::vector<std::string> folders;
    bool next = false;
    for (const std::string& word : SplitCommand(Variable(name))) {
      if (next) folders.push_back(word);
      next = word == flag;
      if (!next && word.starts_with(flag)) folders.push_back(word.substr(flag.size()));
    }
    return folders;
  }

 private:
  std::string text_;
};

// The sibling folders of a root in the pip layout of CUDA 12.
std::vector<std::string> SisterFolders(Env& env, const std::string& root, const std::string& name) {
  std::vector<std::string> folders;
  if (Basename(root) != "cuda_nvcc") return folders;
  const absl::StatusOr<std::vector<std::string>> sisters = env.ListDirectory(Dirname(root));
  if (!sisters.ok()) return folders;
  for (const std::string& sister : *sisters) folders.push_back(JoinPath(JoinPath(Dirname(root), sister), name));
  return folders;
}

void Append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// Folders that the host compiler searches anyway must not come earlier than in the compiler's own order.
std::vector<std::string> IncludeFolders(Env& env, const DryRun& dry_run, const v1::ToolchainPaths& paths,
                                        const std::string& root, const HostCompiler& host) {
  std::vector<std::string> folders = dry_run.Folders("INCLUDES", "-I");
  Append(folders, dry_run.Folders("SYSTEM_INCLUDES", "-isystem"));
  Append(folders, {JoinPath(root, kCudaTarget) + "/include", root + "/include", root + "/include/cccl"});
  Append(folders, {paths.cuda_include_directories().begin(), paths.cuda_include_directories().end()});
  Append(folders, SisterFolders(env, root, "include"));
  folders = ExistingFolders(env, folders);
  const std::vector<std::string> system = ExistingFolders(env, host.system_include_directories);
  std::erase_if(folders, [&](const std::string& folder) {
    return std::find(system.begin(), system.end(), folder) != system.end();
  });
  return folders;
}

std::vector<std::string> LibraryFolders(Env& env, const DryRun& dry_run, const v1::ToolchainPaths& paths,
                                        const std::string& root) {
  std::vector<std::string> folders = dry_run.Folders("LIBRARIES", "-L");
  std::erase_if(folders, [](const std::string& folder) { return Basename(folder) == "stubs"; });
  Append(folders, {JoinPath(root, kCudaTarget) + "/lib", root + "/lib64", root + "/lib"});
  Append(folders, {paths.cuda_library_directories().begin(), paths.cuda_library_directories().end()});
  Append(folders, SisterFolders(env, root, "lib"));
  folders = ExistingFolders(env, folders);
  std::stable_partition(folders.begin(), folders.end(), [&](const std::string& folder) {
    return FindFile(env, {folder}, "libcudart_static.a").has_value();
  });
  return folders;
}

// A part that nvcc needs, and how to install it.
struct RequiredPart {
  const char* name;
  std::vector<std::string> folders;
  const char* package;  // on PyPI, with the names of CUDA 13
};

absl::StatusOr<Parts> FindParts(Env& env, const CudaToolkit& cuda, const HostCompiler& host, const DryRun& dry_run) {
  const std::string bin = Dirname(cuda.nvcc);
  const std::vector<std::string> programs = ProgramFolders(cuda, host);
  const std::string nvvm = cuda.root + "/nvvm";
  const std::vector<std::string> cicc = {dry_run.Variable("CICC_PATH"), nvvm + "/bin", bin};
  const std::string next = cuda.root + "/nvvm-next";
  const std::vector<std::string> libdevice = {dry_run.Variable("NVVMIR_LIBRARY_DIR"), nvvm + "/libdevice"};
  const RequiredPart required[] = {
      {"cudafe++", programs, "nvidia-cuda-nvcc"},
      {"cicc", cicc, "nvidia-nvvm"},
      {"ptxas", programs, "nvidia-cuda-nvcc"},
      {"fatbinary", programs, "nvidia-cuda-nvcc"},
      {"nvlink", programs, "nvidia-cuda-nvcc"},
      {"libdevice.10.bc", libdevice, "nvidia-nvvm"},
      {"libcudart_static.a", cuda.library_directories, "nvidia-cuda-runtime"},
  };
  Parts parts;
  parts.Add("nvcc", cuda.nvcc);
  for (const RequiredPart& part : required) {
    std::optional<std::string> path = FindFile(env, part.folders, part.name);
    if (!path) {
      return ToolchainError(StrCat("the CUDA toolkit at ", cuda.root, " has no ", part.name,
                                   ": install the whole toolkit (with pip: ", part.package, ")"));
    }
    parts.Add(part.name, *std::move(path));
  }
  parts.AddIfThere("next cicc", FindFile(env, {dry_run.Variable("CICC_NEXT_PATH"), next + "/bin"}, "cicc"));
  parts.AddIfThere("next libdevice", FindFile(env, {next + "/libdevice"}, "libdevice.10.bc"));
  parts.AddIfThere("nvcc.profile", FindFile(env, {bin}, "nvcc.profile"));
  parts.AddIfThere("link.stub", FindFile(env, {bin + "/crt"}, "link.stub"));
  parts.AddIfThere("prelink.stub", FindFile(env, {bin + "/crt"}, "prelink.stub"));
  parts.AddIfThere("libcudadevrt.a", FindFile(env, cuda.library_directories, "libcudadevrt.a"));
  return parts;
}

bool AreBesideHostCompiler(Env& env, const CudaToolkit& cuda, const HostCompiler& host) {
  const std::string own = Dirname(cuda.nvcc), beside = Dirname(host.path);
  constexpr const char* kPrograms[] = {"cudafe++", "ptxas", "fatbinary"};
  return std::all_of(std::begin(kPrograms), std::end(kPrograms),
                     [&](const char* name) { return !FindFile(env, {own}, name) && FindFile(env, {beside}, name); });
}

// A distribution installs the toolkit's headers where every compiler finds them.
std::optional<std::string> FindHeader(Env& env, const CudaToolkit& cuda, const HostCompiler& host, const char* name) {
  std::vector<std::string> folders = cuda.include_directories;
  Append(folders, host.system_include_directories);
  return FindFile(env, folders, name);
}

absl::Status CheckHeaders(Env& env, const CudaToolkit& cuda, const HostCompiler& host) {
  constexpr std::pair<const char*, const char*> kHeaders[] = {{"cuda_runtime.h", "nvidia-cuda-runtime"},
                                                              {"crt/host_config.h", "nvidia-cuda-crt"}};
  for (const auto& [name, package] : kHeaders) {
    if (FindHeader(env, cuda, host, name)) continue;
    return ToolchainError(StrCat("the CUDA toolkit at ", cuda.root, " has no header ", name,
                                 ": install the whole toolkit (with pip: ", package, ")"));
  }
  return absl::OkStatus();
}

// "Cuda compilation tools, release 13.0, V13.0.88"
absl::Status ReadVersion(const std::string& answer, CudaToolkit& cuda) {
  const size_t found = answer.find("release ");
  if (found != std::string::npos) {
    cuda.version = answer.substr(found + 8, answer.find_first_not_of("0123456789.", found + 8) - found - 8);
    const std::vector<std::string> numbers = absl::StrSplit(cuda.version, '.');
    if (numbers.size() == 2 && absl::SimpleAtoi(numbers[0], &cuda.major_version) &&
        absl::SimpleAtoi(numbers[1], &cuda.minor_version)) {
      return absl::OkStatus();
    }
  }
  return ToolchainError(StrCat(cuda.nvcc, " does not report its version as nvcc does:\n", answer));
}

absl::Status ReadArchitectures(const std::string& answer, CudaToolkit& cuda) {
  for (const std::string& line : SplitLines(answer)) {
    int number = 0;
    if (line.starts_with("sm_") && absl::SimpleAtoi(line.substr(3), &number)) cuda.architectures.push_back(number);
  }
  std::sort(cuda.architectures.begin(), cuda.architectures.end());
  if (!cuda.architectures.empty()) return absl::OkStatus();
  return ToolchainError(
      StrCat(cuda.nvcc, " does not report which architectures it supports; kernix needs CUDA 12 or newer"));
}

HostLimits ReadHostLimits(Env& env, const CudaToolkit& cuda, const HostCompiler& host) {
  const std::optional<std::string> path = FindHeader(env, cuda, host, "crt/host_config.h");
  if (!path) return {};
  const absl::StatusOr<std::string> text = env.ReadFile(*path);
  return text.ok() ? ParseHostLimits(*text) : HostLimits();
}

int NewestHost(Env& env, const CudaToolkit& cuda, const HostCompiler& host) {
  const HostLimits limits = ReadHostLimits(env, cuda, host);
  return host.kind == HostCompilerKind::kGcc ? limits.newest_gcc : limits.newest_clang;
}

std::string Refusal(Env& env, const CudaToolkit& cuda, const HostCompiler& host) {
  const bool gcc = host.kind == HostCompilerKind::kGcc;
  const int newest = NewestHost(env, cuda, host);
  const std::string program = gcc ? "g++" : "clang++";
  std::string text = StrCat("nvcc ", cuda.version, " (", cuda.nvcc, ") does not support ", gcc ? "GCC " : "Clang ",
                            host.version, " (", host.path, ") as its host compiler");
  if (newest > 0) {
    StrAppend(&text, ": the newest ", gcc ? "GCC" : "Clang", " that it supports is ", newest, ". Install ", program,
              "-", newest, " and set CXX=", program, "-", newest);
  } else {
    StrAppend(&text, ": set CXX to one that it supports");
  }
  return text + ", or pass the flag -allow-unsupported-compiler at your own risk.";
}

// The toolkit's header decides which host compilers nvcc accepts; the host compiler reads it.
absl::Status AskAboutHost(Env& env, const HostCompiler& host, const CudaToolkit& cuda) {
  std::vector<std::string> argv = {host.path, "-E", "-x", "c++", "-D__CUDACC__", "-include", "crt/host_config.h"};
  for (const std::string& folder : cuda.include_directories) argv.push_back("-I" + folder);
  argv.push_back("/dev/null");
  return AskTool(env, argv, host.variables, cuda.include_directories).status();
}

absl::Status CheckHost(Env& env, const HostCompiler& host, const absl::Status& answer, CudaToolkit& cuda) {
  if (answer.ok()) return answer;
  if (GetErrorDetail(answer).compiler_output().find("unsupported") == std::string::npos) return answer;
  cuda.host_refusal = Refusal(env, cuda, host);
  return absl::OkStatus();
}

absl::Status CheckThere(Env& env, const std::string& path) {
  const absl::StatusOr<FileInfo> info = env.Stat(path);
  if (path.starts_with("/") && info.ok() && info->type == FileType::kRegular) return absl::OkStatus();
  return ToolchainError(StrCat("there is no nvcc at ", path));
}

// Resolves links and wrapper scripts: the program itself reports where it is.
absl::StatusOr<std::string> RealNvcc(Env& env, const std::string& path, const DryRun& dry_run) {
  const std::string here = dry_run.Variable("_HERE_");
  const std::optional<std::string> found = FindFile(env, {here}, "nvcc");
  return env.RealPath(!here.empty() && found ? *found : path);
}

// What nvcc would run for a unit, without the names of temporary files.
absl::StatusOr<std::string> CommandsOf(Env& env, const std::string& nvcc, const HostCompiler& host) {
  KERNIX_ASSIGN_OR_RETURN(
      const std::string text,
      AskTool(env, {nvcc, "-ccbin", host.path, "--dryrun", "-x", "cu", "-c", "/dev/null"}, host.variables));
  std::string commands;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view words = absl::StripPrefix(line, "#$ ");
    const bool sets_variable = words.find_first_of("= ") == words.find('=');
    if (words.size() == line.size() || sets_variable) continue;
    for (const absl::string_view word : absl::StrSplit(words, ' ')) {
      if (!absl::StrContains(word, "tmpxft_")) absl::StrAppend(&commands, word, " ");
    }
  }
  return commands;
}

// kernixd calls nvcc itself, so flags that a script around it adds would be lost without a word. `given`: perhaps such
// a script. `program`: nvcc, by the path that the script calls, which its commands contain.
absl::Status CheckAddsNoFlags(Env& env, const std::string& given, const std::string& program,
                              const HostCompiler& host) {
  const absl::StatusOr<std::string> given_program = env.RealPath(given);
  const absl::StatusOr<std::string> real_program = env.RealPath(program);
  if (!real_program.ok() || (given_program.ok() && *given_program == *real_program)) return absl::OkStatus();
  const absl::StatusOr<std::string> commands = CommandsOf(env, given, host);
  const absl::StatusOr<std::string> own = CommandsOf(env, program, host);
  // A launcher such as ccache may refuse: that proves nothing.
  if (!commands.ok() || !own.ok() || *commands == *own) return absl::OkStatus();
  return ToolchainError(StrCat(given, " is a script that changes the flags of ", program,
                               ", which kernixd calls itself: put these flags into NVCC_PREPEND_FLAGS or "
                               "extra_cuda_cflags, and choose that nvcc with BRAINEVENT_NVCC_PATH"));
}

}  // namespace

std::vector<std::string> ProgramFolders(const CudaToolkit& cuda, const HostCompiler& host) {
  std::vector<std::string> folders = {Dirname(cuda.nvcc)};
  Append(folders, absl::StrSplit(ToolEnvironment(host.path).at("PATH"), ':'));
  return folders;
}

absl::StatusOr<CudaToolkit> ProbeCudaToolkit(Env& env, FileDigests& digests, const v1::ToolchainPaths& paths,
                                             const HostCompiler& host, std::vector<WatchedFile>& files) {
  KERNIX_RETURN_IF_ERROR(CheckThere(env, paths.nvcc()));
  KERNIX_RETURN_IF_ERROR(Watch(env, paths.nvcc(), files));
  KERNIX_ASSIGN_OR_RETURN(
      std::string dry_run_text,
      AskTool(env, {paths.nvcc(), "-ccbin", host.path, "--dryrun", "-x", "cu", "-E", "/dev/null"}, host.variables));
  const DryRun dry_run(std::move(dry_run_text));
  CudaToolkit cuda;
  KERNIX_ASSIGN_OR_RETURN(cuda.nvcc, RealNvcc(env, paths.nvcc(), dry_run));
  KERNIX_RETURN_IF_ERROR(CheckAddsNoFlags(env, paths.nvcc(), JoinPath(dry_run.Variable("_HERE_"), "nvcc"), host));
  cuda.root = Dirname(Dirname(cuda.nvcc));
  cuda.include_directories = IncludeFolders(env, dry_run, paths, cuda.root, host);
  cuda.library_directories = LibraryFolders(env, dry_run, paths, cuda.root);
  absl::StatusOr<std::string> version, architectures;
  absl::Status about_host;
  RunSideBySide({[&] { about_host = AskAboutHost(env, host, cuda); },
                 [&] {
                   version = AskTool(env, {cuda.nvcc, "--version"}, host.variables);
                 },
                 [&] {
                   architectures = AskTool(env, {cuda.nvcc, "--list-gpu-code"}, host.variables);
                 }});
  KERNIX_RETURN_IF_ERROR(version.status());
  KERNIX_RETURN_IF_ERROR(ReadVersion(*version, cuda));
  if (cuda.major_version < kOldestMajor) {
    return ToolchainError(StrCat("the nvcc at ", cuda.nvcc, " belongs to CUDA ", cuda.version,
                                 ", but kernix needs CUDA ", kOldestMajor,
                                 " or newer: set CUDA_HOME to a newer toolkit"));
  }
  KERNIX_RETURN_IF_ERROR(architectures.status());
  KERNIX_RETURN_IF_ERROR(ReadArchitectures(*architectures, cuda));
  KERNIX_ASSIGN_OR_RETURN(const Parts parts, FindParts(env, cuda, host, dry_run));
  cuda.programs_beside_host_compiler = AreBesideHostCompiler(env, cuda, host);
  KERNIX_RETURN_IF_ERROR(CheckHeaders(env, cuda, host));
  KERNIX_RETURN_IF_ERROR(CheckHost(env, host, about_host, cuda));
  KERNIX_ASSIGN_OR_RETURN(cuda.identity, parts.Identity(digests, "kernix-cuda-toolkit-1", files));
  return cuda;
}

namespace {

// The largest number that follows `comparison` anywhere. 0 if there is none.
int LargestAfter(const std::string& text, std::string_view comparison) {
  int largest = 0;
  for (size_t at = text.find(comparison); at != std::string::npos; at = text.find(comparison, at + 1)) {
    const size_t begin = at + comparison.size();
    size_t end = begin;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    int number = 0;
    if (absl::SimpleAtoi(text.substr(begin, end - begin), &number)) largest = std::max(largest, number);
  }
  return largest;
}

}  // namespace

HostLimits ParseHostLimits(const std::string& host_config) {
  HostLimits limits;
  limits.newest_gcc = LargestAfter(host_config, "__GNUC__ > ");
  // The text has separate limits for several Clangs; LLVM's is never the lowest.
  limits.newest_clang = std::max(0, LargestAfter(host_config, "(__clang_major__ >= ") - 1);
  return limits;
}

}  // namespace kernix::toolchain
