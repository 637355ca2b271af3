// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/failure.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/artifact_symbols.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "daemon/builder/driver_functions.h"
#include "daemon/exec/root_path.h"
#include "daemon/language/spec/words.h"
#include "daemon/language/write/translation_unit.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/tool_paths.h"
#include "daemon/toolchain/description.h"

namespace kernix::build {
namespace {

// The linkers' messages about symbols, libraries and flags, after a position like "unit.o: in function `f':
// unit.cc:(.text+0x1f): ".
constexpr absl::string_view kLinkPhrases[] = {"undefined reference to", "undefined symbol", "multiple definition of",
                                              "duplicate symbol",       "cannot find",      "unable to find",
                                              "unrecognized option"};

// GCC and Clang: "k.cc:3:5: error: ..."; GNU as: "k.cc:3: Error: ..."; nvcc: "k.cu(3): error: ...", "nvcc fatal   :
// ...", "ptxas error   : ..."; the loader, about a tool.
constexpr absl::string_view kErrorWords[] = {
    "error:", ": Error: ", "error :", "fatal   :", "fatal :", "error   :", "error while loading shared libraries"};

std::string LinkError(absl::string_view line) {
  for (const absl::string_view phrase : kLinkPhrases) {
    const size_t at = line.find(phrase);
    if (at != absl::string_view::npos) return std::string(line.substr(at));
  }
  return "";
}

bool LooksLikeError(absl::string_view line) {
  return std::any_of(std::begin(kErrorWords), std::end(kErrorWords),
                     [line](absl::string_view word) { return absl::StrContains(line, word); });
}

// An error that another one has caused, which compilers print after it: a parameter list with an unknown type is none.
bool IsConsequence(absl::string_view line) {
  return absl::StrContains(line, "declared void") || absl::StrContains(line, "incomplete type \"void\" is not allowed");
}

// Of the files that a failed command brings along.
constexpr size_t kMostCommandBytes = 32 << 20;

void AddFile(v1::FailedCommand& command, std::string path, std::string content) {
  v1::FailedCommand::File* file = command.add_file();
  file->set_path(std::move(path));
  file->set_content(std::move(content));
}

// The inputs, and the tree of kernel headers. nullopt if there are too many bytes.
std::optional<v1::FailedCommand> FilesOf(const exec::Action& action) {
  v1::FailedCommand command;
  size_t bytes = 0;
  for (const exec::InputFile& input : action.inputs) {
    if (input.content == nullptr) return std::nullopt;
    bytes += input.content->size();
    if (bytes > kMostCommandBytes) return std::nullopt;
    AddFile(command, input.path, std::string(*input.content));
  }
  if (action.trees == nullptr) return command;
  for (const language::GeneratedFile& header : language::KernelHeaders()) {
    AddFile(command, JoinPath(kKernelHeaders, header.path), header.text);
  }
  return command;
}

// What happened if a signal of a crash has ended the tool, or a program that it ran. Empty otherwise.
std::string Crash(int exit_code) {
  constexpr int kSignals[] = {SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV};
  const int signal = exit_code - 128;  // as shells and Env have it
  if (std::find(std::begin(kSignals), std::end(kSignals), signal) == std::end(kSignals)) return "";
  return StrCat("the compiler crashed (signal ", signal, "). Try another version of it, or a lower optimization level");
}

}  // namespace

std::string FirstError(std::string_view output) {
  std::string consequence;
  std::string last;
  for (const absl::string_view line : absl::StrSplit(ToAbsl(output), '\n')) {
    std::string text(absl::StripAsciiWhitespace(line));
    if (IsConsequence(line)) {
      if (consequence.empty()) consequence = std::move(text);
    } else if (absl::StrContains(line, "ld returned ")) {
      if (last.empty()) last = std::move(text);
    } else if (LooksLikeError(line)) {
      return text;
    } else if (std::string found = LinkError(line); consequence.empty() && !found.empty()) {
      return found;
    } else if (!text.empty()) {
      last = std::move(text);
    }
  }
  return consequence.empty() ? last : consequence;
}

bool WouldEndAgain(const absl::Status& status) {
  const ErrorKind kind = KindOf(status);
  return kind == v1::ErrorDetail::CANCELLED || kind == v1::ErrorDetail::RESOURCE;
}

absl::Status StepFailure(const exec::Action& action, const exec::ActionResult& result) {
  std::string output = WithUsersNames(result.output, action.links);
  std::string error = FirstError(output);
  if (error.empty()) error = Crash(result.exit_code);
  if (error.empty()) error = StrCat("exit code ", result.exit_code, " without a message");
  const std::vector<std::string> words = exec::LocalCommand(action);
  const std::string advice = AdviceForFailure(error, words);
  v1::ErrorDetail detail;
  detail.set_kind(v1::ErrorDetail::COMPILATION);
  // kernix's own part does not fail but for the user's flags.
  const std::string_view what = action.step == "handler" ? "compile" : std::string_view(action.step);
  detail.set_message(StrCat(what, " failed: ", error, advice.empty() ? "" : ". ", advice));
  detail.set_compiler_output(std::move(output));
  detail.set_command(ShellCommand(words));
  detail.set_exit_code(result.exit_code);
  return MakeError(std::move(detail));
}

absl::Status WithFailedCommand(const absl::Status& error, const exec::Action& action) {
  std::optional<v1::FailedCommand> command = FilesOf(action);
  if (!command) return error;
  for (const std::string& word : exec::LocalCommand(action)) command->add_word(exec::ExpandRoot(word, "."));
  for (const auto& [name, value] : exec::LocalEnvironment(action)) {
    (*command->mutable_environment())[name] = exec::ExpandRoot(value, ".");
  }
  for (const exec::InputLink& link : action.links) {
    v1::FailedCommand::Link* added = command->add_link();
    added->set_path(link.path);
    added->set_target(link.target);
  }
  std::set<std::string> folders;
  for (const std::string& output : action.outputs) folders.insert(Dirname(output));
  for (const std::string& folder : folders) command->add_folder(folder);
  v1::ErrorDetail detail = GetErrorDetail(error);
  *detail.mutable_failed_command() = *std::move(command);
  return MakeError(std::move(detail));
}

namespace {

struct KnownLibrary {
  std::string_view prefix;  // of its functions, such as cublasCreate_v2, and of its headers if it has a wheel
  std::string_view name;
  std::string_view flag;
  std::string_view wheel = {};  // which has its headers, too
};

// The first row that matches counts.
constexpr KnownLibrary kLibraries[] = {
    {"cublasLt", "cuBLASLt", "-lcublasLt", "nvidia-cublas"},
    {"cublas", "cuBLAS", "-lcublas", "nvidia-cublas"},
    {"cusparse", "cuSPARSE", "-lcusparse", "nvidia-cusparse"},
    {"cusolver", "cuSOLVER", "-lcusolver", "nvidia-cusolver"},
    {"cufft", "cuFFT", "-lcufft", "nvidia-cufft"},
    {"curand", "cuRAND", "-lcurand", "nvidia-curand"},
    {"cudnn", "cuDNN", "-lcudnn"},
    {"nccl", "NCCL", "-lnccl"},
    {"nvml", "NVML", "-lnvidia-ml"},
    {"nvrtc", "NVRTC", "-lnvrtc", "nvidia-cuda-nvrtc"},
    {"cblas_", "BLAS", "-lopenblas"},
    {"LAPACKE_", "LAPACKE", "-llapacke"},
    {"fftwf_", "FFTW", "-lfftw3f"},
    {"fftw_", "FFTW", "-lfftw3"},
    {"__atomic_", "libatomic", "-latomic"},
};

// Whole names: these words begin other people's functions, too.
constexpr std::string_view kZlib[] = {"deflate", "deflateInit_", "deflateInit2_", "deflateReset", "deflateEnd",
                                      "inflate", "inflateInit_", "inflateInit2_", "inflateReset", "inflateEnd"};

// Of compilers. Nobody else's functions begin so.
constexpr std::string_view kOpenMp[] = {"GOMP_", "__kmpc_"};

// The names of OpenMP's functions without "omp_", with a blank after each.
constexpr std::string_view kOpenMpFunctions =
    " "
    "aligned_alloc aligned_calloc alloc calloc capture_affinity control_tool destroy_allocator destroy_lock "
    "destroy_nest_lock display_affinity display_env free fulfill_event get_active_level get_affinity_format "
    "get_ancestor_thread_num get_cancellation get_default_allocator get_default_device get_device_num "
    "get_dynamic get_initial_device get_interop_int get_interop_name get_interop_ptr get_interop_rc_desc "
    "get_interop_str get_interop_type_desc get_level get_mapped_ptr get_max_active_levels "
    "get_max_task_priority get_max_teams get_max_threads get_nested get_num_devices get_num_interop_properties "
    "get_num_places get_num_procs get_num_teams get_num_threads get_partition_num_places "
    "get_partition_place_nums get_place_num get_place_num_procs get_place_proc_ids get_proc_bind get_schedule "
    "get_supported_active_levels get_team_num get_team_size get_teams_thread_limit get_thread_limit "
    "get_thread_num get_wtick get_wtime in_final in_parallel init_allocator init_lock init_lock_with_hint "
    "init_nest_lock init_nest_lock_with_hint is_initial_device pause_resource pause_resource_all realloc "
    "set_affinity_format set_default_allocator set_default_device set_dynamic set_lock set_max_active_levels "
    "set_nest_lock set_nested set_num_teams set_num_threads set_schedule set_teams_thread_limit target_alloc "
    "target_associate_ptr target_disassociate_ptr target_free target_is_accessible target_is_present "
    "target_memcpy target_memcpy_async target_memcpy_rect target_memcpy_rect_async test_lock test_nest_lock "
    "unset_lock unset_nest_lock ";

constexpr char kLeaveOut[] =
    ". If only unused functions need it, leave them out: pass -ffunction-sections and "
    "-fvisibility=hidden in extra_cflags (CUDA: behind -Xcompiler in extra_cuda_cflags), and -Wl,--gc-sections in "
    "extra_ldflags";
constexpr char kDriverByCuda[] =
    "the CUDA driver: load the source as CUDA, which needs the driver only for calls of its functions";

// The text after the first of `phrases` in `error`, up to a quote or a space; empty if there is none.
std::string_view NameAfter(std::string_view error, std::initializer_list<std::string_view> phrases) {
  for (const std::string_view phrase : phrases) {
    const size_t at = error.find(phrase);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = error.substr(at + phrase.size());
    return rest.substr(0, rest.find_first_of("' \n"));
  }
  return "";
}

// Whether `symbol` is a name of the library whose names begin with `prefix`: for "cu", cuLaunchKernel, but neither
// cudaLaunchKernel nor cu_mine.
bool BeginsWith(std::string_view symbol, std::string_view prefix) {
  if (!symbol.starts_with(prefix) || symbol.size() == prefix.size()) return false;
  return prefix.ends_with('_') || absl::ascii_isupper(static_cast<unsigned char>(symbol[prefix.size()]));
}

bool IsCxxName(std::string_view symbol) { return symbol.find_first_of("(:<") != std::string_view::npos; }

bool Has(std::string_view error, std::string_view words) { return error.find(words) != std::string_view::npos; }

template <typename Matches>
const KnownLibrary* Find(const Matches& matches) {
  const auto* const found = std::find_if(std::begin(kLibraries), std::end(kLibraries), matches);
  return found == std::end(kLibraries) ? nullptr : found;
}

bool IsOfOpenMp(std::string_view symbol) {
  constexpr std::string_view kPrefix = "omp_";
  const bool is_of_compilers = std::any_of(std::begin(kOpenMp), std::end(kOpenMp),
                                           [&](std::string_view prefix) { return symbol.starts_with(prefix); });
  return is_of_compilers ||
         (symbol.starts_with(kPrefix) &&
          kOpenMpFunctions.find(StrCat(" ", symbol.substr(kPrefix.size()), " ")) != kOpenMpFunctions.npos);
}

std::string DefineOrLeaveOut() { return StrCat(kDefineOrNameLibrary, kLeaveOut); }

// Names tell only what a symbol may be part of: a user's own function may begin like cuBLAS's. A library that the link
// has does not define it.
std::string AdviceForSymbol(std::string_view symbol, const std::vector<std::string>& command) {
  const auto has = [&](std::string_view flag) {
    return std::find(command.begin(), command.end(), flag) != command.end();
  };
  const auto part_of = [](std::string_view name, std::string_view remedy) {
    return StrCat("It may be part of ", name, ": ", remedy, "; else define it");
  };
  const auto pass = [](std::string_view flag) { return StrCat("pass ", flag, " in extra_ldflags"); };
  if (IsCxxName(symbol)) return DefineOrLeaveOut();  // none of the known libraries has such names
  if (IsOfOpenMp(symbol) && !has("-fopenmp")) {
    return part_of("OpenMP", "compile with -fopenmp (CUDA: -Xcompiler=-fopenmp)");
  }
  const auto* library = Find([&](const KnownLibrary& each) { return BeginsWith(symbol, each.prefix); });
  if (library != nullptr && !has(library->flag)) return part_of(library->name, pass(library->flag));
  const bool is_of_zlib = std::find(std::begin(kZlib), std::end(kZlib), symbol) != std::end(kZlib);
  if (is_of_zlib && !has("-lz")) return part_of("zlib", pass("-lz"));
  if (IsDriverFunction(symbol)) return StrCat("It is part of ", kDriverByCuda);
  if (BeginsWith(symbol, "cuda") && !has("-lcudart_static"))
    return part_of("CUDA's runtime", "load the source as CUDA");
  return DefineOrLeaveOut();
}

// "a::b" of the mangled name "_ZN1a1bEf": what is before its parameters and template arguments. Reads only plain names.
std::string PlainName(std::string_view mangled) {
  std::string_view rest = mangled;
  if (!language::ConsumePrefix(rest, "_Z")) return std::string(mangled);
  language::ConsumePrefix(rest, "N");
  std::string name;
  const auto at_digit = [&] { return !rest.empty() && absl::ascii_isdigit(static_cast<unsigned char>(rest[0])); };
  while (at_digit()) {
    size_t length = 0;
    for (; at_digit(); rest.remove_prefix(1)) {
      length = std::min(10 * length + static_cast<size_t>(rest[0] - '0'), rest.size());
    }
    StrAppend(&name, name.empty() ? "" : "::", rest.substr(0, length));
    rest.remove_prefix(std::min(length, rest.size()));
  }
  return name.empty() ? std::string(mangled) : name;
}

std::string AdviceForDeviceCode(std::string_view error) {
  if (const std::string_view symbol = NameAfter(error, {"Unresolved extern function '"}); !symbol.empty()) {
    return StrCat("That is ", PlainName(symbol),
                  ": define it in this source; or pass -rdc=true in extra_cuda_cflags, "
                  "and load the source or library that has it, too");
  }
  if (Has(error, "requires separate compilation mode")) return "Pass -rdc=true in extra_cuda_cflags";
  const std::string_view target = NameAfter(error, {"not supported on .target '"});
  if (target == "sm_90" || target == "sm_100" || target == "sm_120") {
    return StrCat("It may be an instruction of ", target, "a: pass compute_capability=\"", target, "a\"");
  }
  return "";
}

std::string AdviceForInstalling(const KnownLibrary* library) {
  if (library == nullptr || library->wheel.empty()) return "";
  return StrCat("It is part of ", library->name,
                ", which CUDA loads search for: install the whole CUDA toolkit, or the wheel ", library->wheel);
}

// The number after the last `before` in `error` up to `end`; empty if there is none.
std::string_view Number(std::string_view error, std::string_view before, size_t end) {
  const size_t at = error.rfind(before, end);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = error.substr(at + before.size());
  return rest.substr(0, rest.find_first_not_of("0123456789"));
}

// The dimensions of the BE::In or BE::Out that `error` says is called with wrong indices, if its type has them: in
// "BE::In<float, 2>" (GCC, Clang) or "kRank=2" (nvcc).
std::string_view RankOfIndexed(std::string_view error) {
  if (Has(error, "BE::internal::Indexed<") && Has(error, "operator()")) {
    return Number(error, "kRank=", std::string_view::npos);
  }
  const bool is_call = Has(error, "no match for call to ") || Has(error, "call to object of type ");
  if (!is_call || !(Has(error, "BE::In<") || Has(error, "BE::Out<"))) return "";
  return Number(error, ", ", std::min(error.find(">)"), error.find(">'")));
}

}  // namespace

std::string AdviceForFailure(std::string_view error, const std::vector<std::string>& command) {
  if (const std::string_view rank = RankOfIndexed(error); !rank.empty()) {
    return StrCat("It takes as many indices as it has dimensions: ", rank);
  }
  const std::string_view symbol = NameAfter(error, {"undefined reference to `", "undefined symbol: "});
  if (!symbol.empty()) return AdviceForSymbol(symbol, command);
  if (std::string advice = AdviceForDeviceCode(error); !advice.empty()) return advice;
  if (Has(error, "error while loading shared libraries")) {
    return "kernixd runs compilers without the variables of your shell. If the compiler's parts need LD_LIBRARY_PATH, "
           "set CXX (CUDA: NVCC_CCBIN) to a script that sets it and runs the compiler";
  }
  const std::string_view header = NameAfter(error, {"fatal error: '", "fatal error: "});  // Clang, GCC
  if (!header.empty()) {
    return AdviceForInstalling(Find([&](const KnownLibrary& each) { return header.starts_with(each.prefix); }));
  }
  std::string_view flag = NameAfter(error, {"cannot find ", "unable to find library "});  // ld, lld
  if (flag.ends_with(":")) flag.remove_suffix(1);
  if (flag == "-lcuda" || flag.starts_with("-l:libcuda.so")) return StrCat("That is ", kDriverByCuda);
  return AdviceForInstalling(Find([&](const KnownLibrary& each) { return flag == each.flag; }));
}

namespace {

// Enough to name one entry of a store: `kernixctl cache show` takes the beginning of a key.
constexpr size_t kShownKeyDigits = 12;

// A client that has found no compiler, either, says where it has looked.
absl::Status NoCompiler(const toolchain::Toolchain& toolchain) {
  return MakeError(v1::ErrorDetail::TOOLCHAIN,
                   StrCat("there is no compiler here, and the cache does not have this kernel. ",
                          toolchain::DescribeTools(toolchain), " was the last to fill it: install a compiler"),
                   absl::StatusCode::kUnimplemented);
}

}  // namespace

absl::Status Outdated(const std::string& what) {
  return MakeError(v1::ErrorDetail::TOOLCHAIN, StrCat(what, " changed while it was being used: load again"),
                   absl::StatusCode::kAborted);
}

absl::Status NotCached(const std::string& name, const Miss& miss, bool frozen) {
  std::string nearest = "You have no kernel of this name there.";
  if (miss.nearest) {
    nearest = StrCat("Your most similar kernel there, ", miss.nearest->Hex().substr(0, kShownKeyDigits),
                     ", differs: ", miss.reason, ".");
  }
  const char* const why =
      frozen ? "this process is frozen: it compiles nothing. " : "the policy \"cached\" compiles nothing. ";
  const char* const advice = frozen ? " Load them before the process is frozen, prefetch them," : " Prefetch them,";
  return MakeError(v1::ErrorDetail::NOT_CACHED,
                   StrCat("the cache does not have the kernels of module \"", Printable(name), "\", and ", why, nearest,
                          advice, " or load with the policy \"build\"."));
}

absl::Status NotTaken(const std::string& name, const toolchain::Toolchain& toolchain, const UpstreamCache* upstream) {
  if (toolchain.described->of_store && upstream == nullptr) return NoCompiler(toolchain);
  std::string where = "upstream.address names no engine to take them from";
  if (upstream != nullptr) {
    where = StrCat("the engine at ", upstream->address(),
                   upstream->IsAnswered() ? " has no matching result" : " does not answer");
  }
  return MakeError(
      v1::ErrorDetail::NOT_CACHED,
      StrCat("this node has no compiler for module \"", Printable(name), "\": its kernels are not in the cache, and ",
             where, ". Load or prefetch them on a node with ", toolchain::DescribeTools(toolchain),
             " that writes to the engine, and load again; or have an engine's workers compile them (upstream.steps)."));
}

absl::Status NothingThere() { return MakeError(v1::ErrorDetail::NOT_CACHED, "it is not in the cache"); }

absl::Status NothingToBuildWith(const toolchain::Toolchain& toolchain) {
  if (toolchain.described->of_store) return NoCompiler(toolchain);
  return MakeError(v1::ErrorDetail::TOOLCHAIN,
                   StrCat("force_rebuild needs a compiler, and this node only has a description, ",
                          toolchain.described->file, ": load without it, or on a node with compilers"));
}

}  // namespace kernix::build
