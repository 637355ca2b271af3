// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/tool_paths.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/language/spec/source_text.h"

namespace kernix::build {
namespace {

void AddFolders(std::vector<NamedFolder>& folders, const std::vector<std::string>& paths, std::string_view name) {
  for (size_t i = 0; i < paths.size(); ++i) folders.push_back({NormalizePath(paths[i]), StrCat(name, "-", i)});
}

// GCC applies the last map that matches, and so do we: the innermost folder. The order is part of the key, so it must
// not depend on where a folder lies.
std::vector<NamedFolder> OutermostFirst(std::vector<NamedFolder> folders) {
  std::vector<std::pair<int64_t, size_t>> order;  // number of folders around it, index
  for (size_t i = 0; i < folders.size(); ++i) {
    const std::string& path = folders[i].path;
    const auto is_around = [&path](const NamedFolder& other) { return IsBelow(path, other.path); };
    order.emplace_back(std::count_if(folders.begin(), folders.end(), is_around), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<NamedFolder> sorted;
  sorted.reserve(folders.size());
  for (const auto& [around, index] : order) sorted.push_back(std::move(folders[index]));
  return sorted;
}

}  // namespace

std::vector<NamedFolder> ToolchainFolders(const toolchain::Toolchain& toolchain) {
  std::vector<NamedFolder> folders;
  AddFolders(folders, toolchain.host.system_include_directories, "kernix-host");
  if (toolchain.cuda.has_value()) {
    folders.push_back({NormalizePath(toolchain.cuda->root), "kernix-cuda"});
    AddFolders(folders, toolchain.cuda->include_directories, "kernix-cuda-include");
  }
  return OutermostFirst(std::move(folders));
}

std::string PortablePath(const std::vector<NamedFolder>& folders, const std::string& path) {
  const std::string normal = NormalizePath(path);
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    if (IsBelow(normal, folder->path)) return StrCat(folder->name, normal.substr(folder->path.size()));
  }
  return normal;
}

std::string LocalPath(const std::vector<NamedFolder>& folders, const std::string& path) {
  if (absl::StartsWith(path, "/")) return path;
  for (const NamedFolder& folder : folders) {
    if (IsBelow(path, folder.name)) return StrCat(folder.path, path.substr(folder.name.size()));
  }
  return "";
}

namespace {

// The placeholder of the host compiler's folder.
constexpr char kHostFolder[] = "{kernix-host-folder}";

bool IsOrIsBelow(std::string_view path, std::string_view folder) { return path == folder || IsBelow(path, folder); }

void AddLink(ToolPaths& tools, const std::string& name, const std::string& folder) {
  if (tools.Reach(folder) == folder) tools.links.push_back({StrCat(kLinkFolder, "/", name), folder});
}

std::vector<std::string> ReachAll(ToolPaths& tools, const std::string& name, const std::vector<std::string>& folders) {
  std::vector<std::string> reached;
  for (size_t i = 0; i < folders.size(); ++i) {
    AddLink(tools, StrCat(name, "-", i), folders[i]);
    reached.push_back(tools.Reach(folders[i]));
  }
  return reached;
}

// The names become words of nvcc's command.
absl::Status CheckName(const std::string& reached, const std::string& path) {
  if (IsHarmlessWord(reached)) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::TOOLCHAIN,
                   StrCat("nvcc would pass the path ", path,
                          " to a shell, which would interpret some of its characters: give the program "
                          "a name of ",
                          kHarmlessCharacters, " (by a link)"));
}

void AddCuda(const toolchain::CudaToolkit& cuda, ToolPaths& tools) {
  AddLink(tools, "cuda", cuda.root);
  AddLink(tools, "nvcc", Dirname(cuda.nvcc));
  tools.nvcc = tools.Reach(cuda.nvcc);
  tools.include_directories = ReachAll(tools, "include", cuda.include_directories);
  tools.library_directories = ReachAll(tools, "lib", cuda.library_directories);
}

// A placeholder, because one compiler may have several names (c++, g++, g++-12), and the salt covers its identity.
// Clang keeps its own path: it finds its headers relative to the folder through which it is called, and names them by
// that folder.
void AddHostCompiler(const toolchain::HostCompiler& host, ToolPaths& tools) {
  const bool absolute = host.kind == toolchain::HostCompilerKind::kClang && IsHarmlessWord(host.path);
  tools.local_paths[kHostFolder] = Dirname(host.path);
  tools.host_compiler = "{kernix-host-compiler}";
  tools.local_paths[tools.host_compiler] = absolute ? host.path : tools.Reach(host.path);
}

// Escapes a path as in a Makefile.
std::string Escaped(const std::string& path) {
  return absl::StrReplaceAll(path, {{"\\", "\\\\"}, {" ", "\\ "}, {"#", "\\#"}, {"$", "$$"}});
}

// Replaces `folder`, which ends in "/", where `begins(text, at)` says that a path begins.
std::string ReplaceFolder(std::string text, const std::string& folder, const std::string& by,
                          bool (*begins)(std::string_view text, size_t at)) {
  for (size_t at = text.find(folder); at != text.npos; at = text.find(folder, at)) {
    const bool is_path = begins(text, at);
    if (is_path) text.replace(at, folder.size(), by);
    at += is_path ? by.size() : folder.size();
  }
  return text;
}

bool BeginsWord(std::string_view text, size_t at) {
  return at == 0 || std::string_view(" \t\n").find(text[at - 1]) != std::string_view::npos;
}

bool BeginsPath(std::string_view text, size_t at) {
  if (at == 0) return true;
  const char before = text[at - 1];
  return !absl::ascii_isalnum(static_cast<unsigned char>(before)) && std::string_view("_-./").find(before) == text.npos;
}

}  // namespace

std::string ToolPaths::Reach(const std::string& path) const {
  for (const exec::InputLink& link : links) {
    if (IsOrIsBelow(path, link.target)) return link.path + path.substr(link.target.size());
  }
  return path;
}

absl::StatusOr<ToolPaths> FindToolPaths(const toolchain::Toolchain& toolchain) {
  ToolPaths tools;
  if (toolchain.cuda) AddCuda(*toolchain.cuda, tools);
  // Last: nvcc finds the toolkit relative to its own folder. In an environment with both, that is the host compiler's
  // folder.
  AddLink(tools, "host", Dirname(toolchain.host.path));
  AddHostCompiler(toolchain.host, tools);
  if (toolchain.cuda) {
    KERNIX_RETURN_IF_ERROR(CheckName(tools.nvcc, toolchain.cuda->nvcc));
    KERNIX_RETURN_IF_ERROR(CheckName(tools.local_paths.at(tools.host_compiler), toolchain.host.path));
  }
  return tools;
}

std::map<std::string, std::string> EnvironmentFor(const toolchain::Toolchain& toolchain) {
  std::map<std::string, std::string> environment = toolchain.environment;
  environment["PATH"] = StrCat(kHostFolder, ":/usr/bin:/bin");
  return environment;
}

std::string BehindLinks(const std::string& path, const std::vector<exec::InputLink>& links) {
  for (const exec::InputLink& link : links) {
    if (IsOrIsBelow(path, link.path)) return link.target + path.substr(link.path.size());
  }
  return path;
}

std::string FollowLinks(std::string_view dependency_file, const std::vector<exec::InputLink>& links) {
  std::string text(dependency_file);
  for (const exec::InputLink& link : links) {
    text = ReplaceFolder(std::move(text), link.path + "/", Escaped(link.target) + "/", BeginsWord);
  }
  return text;
}

std::string WithUsersNames(std::string_view output, const std::vector<exec::InputLink>& links) {
  std::string text = ReplaceFolder(std::string(output), StrCat(language::kSourceFolder, "/"), "", BeginsPath);
  for (const exec::InputLink& link : links) {
    text = ReplaceFolder(std::move(text), link.path + "/", link.target + "/", BeginsPath);
  }
  return text;
}

}  // namespace kernix::build
