// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/files_read.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/flags/languages.h"
#include "common/wire/input_root.h"
#include "daemon/builder/dependency_file.h"
#include "daemon/language/read/file_questions.h"
#include "daemon/language/read/file_reads.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/plan/compiled_preamble.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/tool_paths.h"
#include "daemon/toolchain/description.h"

namespace kernix::build {
namespace {

constexpr char kSharedAdvice[] =
    "this kernixd is shared and reads no files of the machine except the toolchain's. Put the header's folder into "
    "extra_include_paths and include it by its name";
constexpr char kQuestionAdvice[] =
    "kernix cannot notice when the answer changes. Put the header's folder into extra_include_paths and ask for its "
    "name, or pass -D with the answer";

bool InToolchain(const std::vector<NamedFolder>& folders, const std::string& path) {
  return PortablePath(folders, path) != NormalizePath(path);
}

// Compilers resolve links to shorten the paths of system headers.
bool InToolchain(Env& env, const toolchain::Toolchain& toolchain, const std::string& path) {
  std::vector<NamedFolder> folders = ToolchainFolders(toolchain);
  const bool climbs = path.find("/../") != std::string::npos;  // ".." may follow a link, so the text proves nothing
  if (!climbs && InToolchain(folders, path)) return true;
  if (toolchain.described != nullptr) return toolchain::IsDescribed(toolchain, NormalizePath(path));
  const absl::StatusOr<std::string> real = env.RealPath(path);
  if (!real.ok()) return false;
  for (NamedFolder& folder : folders) folder.path = env.RealPath(folder.path).value_or(folder.path);
  return InToolchain(folders, *real);
}

// Links to the kernel headers, the include roots and the toolchain's folders.
bool IsLink(const std::vector<absl::string_view>& folders) {
  if (folders.size() == 1) return folders.front() == kKernelHeaders;
  return folders.size() == 2 && (folders.front() == kIncludeRootsFolder || folders.front() == kLinkFolder);
}

// Whether a path leaves the input root or a folder behind a link through "..", even if it comes back: the parent folder
// of such a folder is not the one that the text suggests.
bool LeavesRoot(const std::string& relative) {
  std::vector<absl::string_view> folders;
  for (const absl::string_view part : absl::StrSplit(ToAbsl(relative), '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      folders.push_back(part);
      continue;
    }
    if (folders.empty() || IsLink(folders)) return true;
    folders.pop_back();
  }
  return false;
}

absl::Status ReadError(std::string_view tool, const std::string& path) {
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat("the ", tool, " has read ", path,
                          ", because a macro or an assembler directive of the sources names it, and kernix cannot take "
                          "its content into account: the build was discarded. Put the folders of headers into "
                          "extra_include_paths, and turn data into a header (with `xxd -i`, for example)"));
}

// Uses the same words whether or not the file exists. For a path that climbs, compilers report the two cases
// differently.
absl::Status SharedReadError(const std::string& path) {
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat("the compiler was told to read ", path.starts_with('/') ? path : "a file outside the request",
                          ", because a macro of the sources names it: ", kSharedAdvice));
}

// A worker has other headers than the description, or a source names one by an absolute path.
absl::Status NotDescribedError(const toolchain::Toolchain& toolchain, const std::string& path) {
  return MakeError(v1::ErrorDetail::TOOLCHAIN,
                   StrCat("a worker has read ", path, ", which ", toolchain.described->file,
                          " lacks: the build was discarded. Describe the toolchain of the workers' image "
                          "again, and put the folders of your own headers into extra_include_paths"));
}

// Which checks of the texts to make, beyond those that no tool can replace.
struct Asked {
  bool absolute_includes;
  bool climbing_includes;
  bool assembler_text;
  bool shared;
  bool all_texts;  // whether all texts that may define a macro are present
};

using HeadersByContent = std::map<Digest, std::vector<std::string>>;

// The files that a request brings into an input root, by the names that tools give them.
class RequestFiles {
 public:
  explicit RequestFiles(const BuildRequest& request) : request_(request) {}

  // Whether a normalised relative path names a header of the request.
  bool HasHeader(const std::string& path) const {
    if (headers_.empty()) {
      for (const HeaderRef& header : request_.headers) headers_.insert(NormalizePath(HeaderName(request_, header)));
    }
    return headers_.contains(path);
  }

  // Whether a normalised relative path may name a file of a step's input root: a header, a source, or a file in one of
  // kernixd's own folders, in which requests name nothing.
  bool Has(const std::string& path) const {
    if (IsBelow(path, kIncludeRootsFolder)) return HasHeader(path);
    if (IsBelow(path, language::kSourceFolder)) return HasSource(path);
    constexpr std::string_view kOwnFolders[] = {kUnitFolder,  kKernelHeaders,  kMacroFolder,           kSlimFolder,
                                                kProbeFolder, kPreambleFolder, kCompiledPreambleFolder};
    return std::any_of(std::begin(kOwnFolders), std::end(kOwnFolders),
                       [&](std::string_view folder) { return IsBelow(path, folder); });
  }

 private:
  bool HasSource(const std::string& path) const {
    return std::any_of(request_.units.begin(), request_.units.end(), [&](const Unit& unit) {
      return std::any_of(unit.sources.begin(), unit.sources.end(),
                         [&](const language::SourceText& source) { return path == language::ToolName(source.label); });
    });
  }

  const BuildRequest& request_;
  mutable absl::flat_hash_set<std::string> headers_;  // made on first use
};

// The texts of a translation unit and their places.
class UnitTexts {
 public:
  explicit UnitTexts(const BuildRequest& request) : request_(request), files_(request) {
    for (const Unit& unit : request.units) {
      for (const language::SourceText& source : unit.sources) views_.push_back({source.label, source.text});
    }
    for (const std::string& line : request.definitions) StrAppend(&flags_, line, "\n");
    views_.push_back({kFlagsLabel, flags_});
  }
  UnitTexts(const UnitTexts&) = delete;
  UnitTexts& operator=(const UnitTexts&) = delete;

  // A content may have several names; errors show the first.
  void Add(const std::vector<std::string>& names, std::string_view text) {
    views_.push_back({names.front(), text});
    names_[names.front()] = &names;
  }

  const std::vector<language::TextView>& views() const { return views_; }

  // Whether `path`, which climbs, leads from the text to a header of the request, under any name under which the text
  // was read.
  bool Has(std::string_view label, const language::Include& name) const {
    const auto header = names_.find(label);
    if (header == names_.end()) return IsInRoots(std::string(name.path));
    return std::all_of(header->second->begin(), header->second->end(), [&](const std::string& of) {
      return (name.quoted && IsHeader(JoinPath(Dirname(of), name.path))) || IsInRoots(std::string(name.path));
    });
  }

 private:
  static constexpr char kFlagsLabel[] = "<command-line>";

  bool IsHeader(const std::string& path) const { return !LeavesRoot(path) && files_.HasHeader(NormalizePath(path)); }

  bool IsInRoots(const std::string& path) const {
    for (uint32_t root = 0; root < request_.include_root_count; ++root) {
      if (IsHeader(HeaderName(request_, {root, path, Digest()}))) return true;
    }
    return false;
  }

  const BuildRequest& request_;
  const RequestFiles files_;
  std::string flags_;
  std::vector<language::TextView> views_;
  std::map<std::string, const std::vector<std::string>*, std::less<>> names_;
};

absl::Status CheckTexts(Env& env, const BuildRequest& request, const UnitTexts& texts, const Asked& asked) {
  const auto is_known = [&](std::string_view label, const language::Include& name) {
    return name.path.starts_with('/') ? InToolchain(env, *request.toolchain, std::string(name.path))
                                      : texts.Has(label, name);
  };
  const auto include = [&](std::string_view label, const language::Include& name) -> std::string {
    const bool counts = name.path.starts_with('/') ? asked.absolute_includes : asked.climbing_includes;
    return counts && !is_known(label, name) ? kSharedAdvice : "";
  };
  const auto question = [&](std::string_view label, const language::Include& name) -> std::string {
    return is_known(label, name) ? "" : kQuestionAdvice;
  };
  KERNIX_RETURN_IF_ERROR(language::CheckFileReads(
      texts.views(), {.outside = include,
                      .assembler_text = asked.assembler_text,
                      .dependency_pragmas = asked.shared,
                      .made_directives = asked.shared && TraitsOf(request.language).reads_twice}));
  return language::CheckFileQuestions(texts.views(), {.outside = question, .all_texts = asked.all_texts});
}

// Whether a relative name in a list of files is one that the list can be believed to hold. Lists of nvcc have the names
// of `#line` directives, too, which need be no files. But what has a blank and is no input may be two names that a tool
// has written as one.
bool IsPlausible(const RequestFiles& files, const BuildRequest& request, const std::string& path) {
  if (LeavesRoot(path)) return false;
  if (files.Has(NormalizePath(path))) return true;
  return TraitsOf(request.language).reads_twice && path.find_first_of(" \t\\") == std::string::npos;
}

absl::Status CheckToolReads(Env& env, const BuildRequest& request, const std::vector<std::string>& compiler,
                            const std::vector<std::string>& assembler, toolchain::FlagPolicy policy) {
  const toolchain::Toolchain& toolchain = *request.toolchain;
  const bool shared = policy == toolchain::FlagPolicy::kShared;
  const RequestFiles files(request);
  for (const std::string& path : compiler) {
    const bool absolute = path.front() == '/';
    // A private daemon records an absolute path, by digest, with the artifact.
    const bool known = absolute ? !shared || InToolchain(env, toolchain, path) : IsPlausible(files, request, path);
    if (!known) return shared ? SharedReadError(path) : ReadError("compiler", path);
    const bool is_elsewhere = absolute && toolchain.described != nullptr;
    if (is_elsewhere && !toolchain::IsDescribed(toolchain, NormalizePath(path))) {
      return NotDescribedError(toolchain, path);
    }
  }
  for (const std::string& path : assembler) {
    if (path.front() != '/' && !LeavesRoot(path)) continue;
    return shared ? AssemblerTextError() : ReadError("assembler", path);
  }
  return absl::OkStatus();
}

std::vector<std::string> PathsIn(const std::vector<std::string_view>& dependency_files) {
  std::vector<std::string> paths;
  for (const std::string_view file : dependency_files) {
    const std::vector<std::string> more = ParseDependencyFile(file);
    paths.insert(paths.end(), more.begin(), more.end());
  }
  return paths;
}

// The headers of the request that were read, by content.
HeadersByContent HeadersRead(const BuildRequest& request, const std::vector<std::string>& read) {
  absl::flat_hash_set<std::string> paths;
  for (const std::string& path : read) paths.insert(NormalizePath(path));
  HeadersByContent headers;
  for (const HeaderRef& header : request.headers) {
    std::string name = HeaderName(request, header);
    if (paths.contains(NormalizePath(name))) headers[header.digest].push_back(std::move(name));
  }
  return headers;
}

// `by_tools`: the result of checking what the tools report.
absl::Status CheckUnit(Env& env, const BuildRequest& request, const HeaderContents& contents,
                       const std::vector<std::string>& read, const absl::Status& by_tools, const Asked& asked) {
  const HeadersByContent headers = HeadersRead(request, read);
  UnitTexts texts(request);
  for (const auto& [digest, names] : headers) texts.Add(names, *contents.at(digest));
  KERNIX_RETURN_IF_ERROR(CheckTexts(env, request, texts, asked));
  return by_tools;
}

}  // namespace

absl::Status AssemblerTextError() {
  return MakeError(
      v1::ErrorDetail::INVALID_REQUEST,
      "the assembler text of the sources has directives that may read files (.include, .incbin, .macro, "
      ".irp, .rept, ...), and it either names a file outside the request or is rejected by the assembler: this kernixd "
      "is shared and does not say more. Remove these directives, or load with a private kernixd");
}

absl::Status CheckSources(Env& env, const BuildRequest& request, toolchain::FlagPolicy policy) {
  const bool shared = policy == toolchain::FlagPolicy::kShared;
  return CheckTexts(env, request, UnitTexts(request),
                    {.absolute_includes = shared,
                     .climbing_includes = false,  // the compiler notices if such a header is missing
                     .assembler_text = true,
                     .shared = shared,
                     .all_texts = request.headers.empty()});
}

absl::Status CheckFilesRead(Env& env, const BuildRequest& request, const HeaderContents& contents,
                            const ToolReads& reads, toolchain::FlagPolicy policy) {
  const std::vector<std::string> read = PathsIn(reads.compiler);
  const absl::Status by_tools = CheckToolReads(env, request, read, PathsIn(reads.assembler), policy);
  // If a tool reports what it reads, its report decides, and the texts only serve to find the line of a bad read.
  const bool shared = policy == toolchain::FlagPolicy::kShared;
  return CheckUnit(env, request, contents, read, by_tools,
                   {.absolute_includes = shared && !by_tools.ok(),
                    .climbing_includes = shared && !by_tools.ok(),
                    .assembler_text = !by_tools.ok() || reads.assembler.empty(),
                    .shared = shared,
                    .all_texts = true});
}

absl::Status CheckIncludes(Env& env, const BuildRequest& request, const HeaderContents& contents,
                           const IncludesTried& includes) {
  absl::Status by_compiler = CheckToolReads(env, request, includes.read, {}, toolchain::FlagPolicy::kShared);
  for (const std::string& path : includes.not_read) {
    const bool known = path.starts_with('/') ? InToolchain(env, *request.toolchain, path) : !LeavesRoot(path);
    if (by_compiler.ok() && !known) by_compiler = SharedReadError(path);
  }
  return CheckUnit(env, request, contents, includes.read, by_compiler,
                   {.absolute_includes = !by_compiler.ok(),
                    .climbing_includes = !by_compiler.ok(),
                    .assembler_text = false,
                    .shared = true,
                    .all_texts = true});
}

}  // namespace kernix::build
