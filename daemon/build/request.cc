// SPDX-License-Identifier: Apache-2.0
#include "daemon/build/request.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_split.h"
#include "daemon/base/error.h"
#include "daemon/base/input_root.h"
#include "daemon/base/paths.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/strings.h"

namespace kernix::build {
namespace {

constexpr uint32_t kMaxIncludeRoots = 1000;
// What a file system takes, with room for the folder of the build.
constexpr size_t kMaxPathBytes = 1024;
constexpr size_t kMaxComponentBytes = 255;
constexpr size_t kMaxComponents = 64;
constexpr size_t kMaxNameBytes = 256;
constexpr uint32_t kMaxOptimizationLevel = 3;

absl::Status Invalid(std::string_view message) { return MakeError(v1::ErrorDetail::INVALID_REQUEST, message); }

bool IsBlank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos; }

bool HasControlCharacter(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// Names are shown in lists and logs.
absl::Status CheckName(std::string_view name) {
  if (name.empty()) return Invalid("the module has no name");
  if (name.size() > kMaxNameBytes) {
    return Invalid(StrCat("the module's name has ", name.size(), " bytes; at most ", kMaxNameBytes, " are possible"));
  }
  if (HasControlCharacter(name)) return Invalid("the module's name holds control characters");
  return absl::OkStatus();
}

absl::Status CheckPathLength(std::string_view path) {
  if (path.size() > kMaxPathBytes) {
    return Invalid(StrCat("the header path \"", path.substr(0, 64), "...\" has ", path.size(), " bytes; at most ",
                          kMaxPathBytes, " are possible"));
  }
  const std::vector<absl::string_view> components = absl::StrSplit(ToAbsl(path), '/');
  if (components.size() > kMaxComponents) {
    return Invalid(StrCat("the header path \"", path.substr(0, 64), "...\" has ", components.size(), " parts; at most ",
                          kMaxComponents, " are possible"));
  }
  for (const absl::string_view component : components) {
    if (component.size() > kMaxComponentBytes) {
      return Invalid(StrCat("the header path \"", path.substr(0, 64), "...\" has a part of ", component.size(),
                            " bytes; at most ", kMaxComponentBytes, " are possible"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLabel(std::string_view label) {
  if (label.empty()) return Invalid("a source has no label: give the name that diagnostics should show");
  if (HasControlCharacter(label)) return Invalid("a source's label holds control characters");
  if (label.front() == '/') {
    return Invalid(StrCat("source label \"", label, "\" is an absolute path: use the file's base name"));
  }
  // It need not be a file: one that cannot be is not staged.
  if (label.size() <= kMaxPathBytes) return absl::OkStatus();
  return Invalid(StrCat("the source label \"", label.substr(0, 64), "...\" has ", label.size(), " bytes; at most ",
                        kMaxPathBytes, " are possible"));
}

absl::StatusOr<std::vector<codegen::SourceText>> ReadSources(const v1::LoadRequest& request,
                                                             const RequestLimits& limits) {
  std::vector<codegen::SourceText> sources;
  uint64_t bytes = 0;
  bool blank = true;
  for (const v1::Source& source : request.source()) {
    KERNIX_RETURN_IF_ERROR(CheckLabel(source.label()));
    bytes += source.text().size();
    blank = blank && IsBlank(source.text());
    sources.push_back({source.label(), source.text()});
  }
  if (blank) return Invalid("the source is empty: there is nothing to compile");
  if (bytes > limits.max_source_bytes) {
    return Invalid(StrCat("the sources have ", bytes, " bytes; this kernixd takes ", limits.max_source_bytes,
                          " (its option max_request_bytes)"));
  }
  return sources;
}

absl::StatusOr<std::vector<codegen::FunctionSpec>> ReadFunctions(const v1::Functions& functions,
                                                                 const std::vector<codegen::SourceText>& sources,
                                                                 const RequestLimits& limits) {
  if (functions.from_annotations() && functions.function_size() > 0) {
    return Invalid("functions are either listed or taken from `// @BE` annotations, not both");
  }
  KERNIX_ASSIGN_OR_RETURN(std::vector<codegen::FunctionSpec> specs, codegen::ResolveFunctions(sources, functions));
  if (specs.empty()) return Invalid("no function to export: list one, or annotate it with `// @BE name [tokens]`");
  if (specs.size() > limits.max_functions) {
    return Invalid(StrCat(specs.size(), " functions in one load; at most ", limits.max_functions, " are possible"));
  }
  return specs;
}

// How often `path` begins with "../"; takes that off.
int TakeClimbs(std::string_view& path) {
  int climbs = 0;
  for (; path.starts_with("../"); path.remove_prefix(3)) ++climbs;
  return climbs;
}

absl::Status CheckHeaderPath(const std::string& path) {
  KERNIX_RETURN_IF_ERROR(CheckPathLength(path));
  std::string_view below = path;
  const int climbs = TakeClimbs(below);
  const bool inside = !below.empty() && below.front() != '/' && below != "." && below != ".." && climbs <= kMaxClimb &&
                      NormalizePath(path) == path;
  // A build's own folder name, which would lead back down.
  const bool own = climbs > 0 && below.substr(0, below.find('/')) == kClimbFolder;
  if (inside && !own && !HasControlCharacter(path)) return absl::OkStatus();
  return Invalid(StrCat("header path \"", path, "\" is not a normalised path below its include root, or at most ",
                        kMaxClimb, " folders above it"));
}

absl::StatusOr<HeaderRef> ReadHeader(const v1::Header& header, uint32_t root_count) {
  KERNIX_RETURN_IF_ERROR(CheckHeaderPath(header.path()));
  if (header.include_root() >= root_count) {
    return Invalid(
        StrCat("header \"", header.path(), "\" names include root ", header.include_root(), " of ", root_count));
  }
  const absl::StatusOr<Digest> digest = Digest::FromRaw(header.digest());
  if (!digest.ok()) return Invalid(StrCat("header \"", header.path(), "\" has no SHA-256 digest"));
  return HeaderRef{header.include_root(), header.path(), *digest};
}

// Orders paths as a walk of the tree meets them: what lies in a folder comes right behind a file of that name.
bool ComesBefore(const HeaderRef& a, const HeaderRef& b) {
  if (a.include_root != b.include_root) return a.include_root < b.include_root;
  return std::lexicographical_compare(a.path.begin(), a.path.end(), b.path.begin(), b.path.end(), [](char x, char y) {
    const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c); };
    return rank(x) < rank(y);
  });
}

// A path is one file: not two, and not a file and a folder. `headers` are sorted.
absl::Status CheckHeadersFitTogether(const std::vector<HeaderRef>& headers) {
  for (size_t i = 1; i < headers.size(); ++i) {
    const HeaderRef& one = headers[i - 1];
    const HeaderRef& next = headers[i];
    if (one.include_root != next.include_root || !next.path.starts_with(one.path)) continue;
    if (next.path.size() == one.path.size()) return Invalid(StrCat("header \"", one.path, "\" is listed twice"));
    if (next.path[one.path.size()] == '/') {
      return Invalid(StrCat("header \"", one.path, "\" is also a folder of other headers"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<HeaderRef>> ReadHeaders(const v1::LoadRequest& request, const RequestLimits& limits) {
  if (static_cast<size_t>(request.header_size()) > limits.max_headers) {
    return Invalid(StrCat(request.header_size(), " headers in one load; at most ", limits.max_headers,
                          " are possible: narrow the include paths"));
  }
  std::vector<HeaderRef> headers;
  headers.reserve(request.header_size());
  for (const v1::Header& header : request.header()) {
    KERNIX_ASSIGN_OR_RETURN(HeaderRef read, ReadHeader(header, request.options().include_root_count()));
    headers.push_back(std::move(read));
  }
  std::sort(headers.begin(), headers.end(), ComesBefore);
  KERNIX_RETURN_IF_ERROR(CheckHeadersFitTogether(headers));
  return headers;
}

std::vector<int> RootClimbs(const std::vector<HeaderRef>& headers, uint32_t root_count) {
  std::vector<int> climbs(root_count);
  for (const HeaderRef& header : headers) {
    std::string_view path = header.path;
    climbs[header.include_root] = std::max(climbs[header.include_root], TakeClimbs(path));
  }
  return climbs;
}

absl::StatusOr<std::vector<std::string>> ReadArchitectures(const v1::Options& options,
                                                           const toolchain::CudaToolkit& cuda) {
  if (options.architectures().empty()) {
    return Invalid("no GPU architecture: give compute_capability, for example \"sm_90\"");
  }
  return toolchain::CheckArchitectures(cuda, {options.architectures().begin(), options.architectures().end()});
}

absl::Status CheckCppOptions(const v1::Options& options) {
  if (!options.architectures().empty()) return Invalid("GPU architectures make sense for CUDA sources only");
  if (options.use_fast_math()) return Invalid("use_fast_math is for CUDA sources; for C++ pass the flag -ffast-math");
  return absl::OkStatus();
}

absl::Status ReadOptions(Env& env, const v1::Options& options, toolchain::FlagPolicy policy, BuildRequest& request) {
  if (options.optimization_level() > kMaxOptimizationLevel) {
    return Invalid(StrCat("optimization_level ", options.optimization_level(), " is not one of 0, 1, 2, 3"));
  }
  if (options.include_root_count() > kMaxIncludeRoots) {
    return Invalid(StrCat(options.include_root_count(), " include paths; at most ", kMaxIncludeRoots, " are possible"));
  }
  KERNIX_ASSIGN_OR_RETURN(toolchain::CheckedFlags flags,
                          toolchain::CheckFlags(env, *request.toolchain, request.language, policy,
                                                {options.compile_flags().begin(), options.compile_flags().end()},
                                                {options.link_flags().begin(), options.link_flags().end()}));
  request.compile_flags = std::move(flags.compile);
  request.link_flags = std::move(flags.link);
  request.flag_files = std::move(flags.files);
  request.nvcc_threads = flags.nvcc_threads;
  request.relocatable_device_code = flags.relocatable_device_code;
  request.toolkit_path_in_artifact = flags.toolkit_path_in_artifact;
  request.optimization_level = static_cast<int>(options.optimization_level());
  request.use_fast_math = options.use_fast_math();
  request.allow_cuda_graph = options.allow_cuda_graph();
  request.include_root_count = options.include_root_count();
  request.quoted_roots = {options.quoted_include_root().begin(), options.quoted_include_root().end()};
  const auto missing = [&](uint32_t root) { return root >= request.include_root_count; };
  if (std::any_of(request.quoted_roots.begin(), request.quoted_roots.end(), missing)) {
    return Invalid(StrCat("quoted_include_root names none of the ", request.include_root_count, " include roots"));
  }
  return absl::OkStatus();
}

absl::Status ReadLanguage(const v1::LoadRequest& request, BuildRequest& result) {
  result.language = request.language();
  if (result.language == v1::LANGUAGE_CPP) return CheckCppOptions(request.options());
  if (result.language != v1::LANGUAGE_CUDA) return Invalid("the request does not say whether it is C++ or CUDA");
  if (!result.toolchain->cuda.has_value()) {
    return MakeError(v1::ErrorDetail::TOOLCHAIN, "CUDA sources need nvcc, and this toolchain has none");
  }
  KERNIX_ASSIGN_OR_RETURN(result.architectures, ReadArchitectures(request.options(), *result.toolchain->cuda));
  return absl::OkStatus();
}

}  // namespace

std::string TranslationUnit(const BuildRequest& request) {
  return codegen::GenerateTranslationUnit(request.language, request.sources, request.functions,
                                          request.allow_cuda_graph, /*has_headers=*/!request.headers.empty());
}

absl::StatusOr<BuildRequest> ValidateRequest(Env& env, const v1::LoadRequest& request,
                                             toolchain::ToolchainPtr toolchain, toolchain::FlagPolicy policy,
                                             const RequestLimits& limits) {
  BuildRequest result;
  result.toolchain = std::move(toolchain);
  KERNIX_RETURN_IF_ERROR(CheckName(request.name()));
  KERNIX_RETURN_IF_ERROR(ReadLanguage(request, result));
  KERNIX_ASSIGN_OR_RETURN(result.sources, ReadSources(request, limits));
  KERNIX_RETURN_IF_ERROR(ReadOptions(env, request.options(), policy, result));
  KERNIX_ASSIGN_OR_RETURN(result.headers, ReadHeaders(request, limits));
  result.root_climbs = RootClimbs(result.headers, result.include_root_count);
  KERNIX_ASSIGN_OR_RETURN(result.functions, ReadFunctions(request.functions(), result.sources, limits));
  return result;
}

}  // namespace kernix::build
