// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/description.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/flags/languages.h"
#include "common/os/file_identity.h"
#include "daemon/toolchain/cuda_toolkit.h"
#include "daemon/toolchain/tool_query.h"
#include "daemon/toolchain/toolchain_description.pb.h"

namespace kernix::toolchain {
namespace {

using internal::ToolchainDescription;

constexpr uint32_t kFormat = 1;

using Texts = google::protobuf::RepeatedPtrField<std::string>;

void Assign(const std::vector<std::string>& from, Texts* to) { to->Assign(from.begin(), from.end()); }

std::vector<std::string> ListOf(const Texts& texts) { return {texts.begin(), texts.end()}; }

// The folders that headers of `toolchain` come from; none lies in another one.
std::vector<std::string> HeaderFolders(const Toolchain& toolchain) {
  std::vector<std::string> all = toolchain.host.system_include_directories;
  if (toolchain.cuda) {
    all.insert(all.end(), toolchain.cuda->include_directories.begin(), toolchain.cuda->include_directories.end());
    all.push_back(JoinPath(toolchain.cuda->root, "include"));
  }
  for (std::string& folder : all) folder = NormalizePath(folder);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<std::string> outer;
  std::copy_if(all.begin(), all.end(), std::back_inserter(outer), [&](const std::string& folder) {
    return std::none_of(all.begin(), all.end(), [&](const std::string& other) { return IsBelow(folder, other); });
  });
  return outer;
}

// The files of a toolchain that a load may read, by the names under which compilers reach them.
class FileList {
 public:
  explicit FileList(Env& env) : env_(env) {}

  // A folder that is not there has no headers: compilers search for more than there are.
  absl::Status AddTree(const std::string& folder) {
    const absl::StatusOr<FileInfo> info = env_.Stat(folder);
    if (absl::IsNotFound(info.status())) return absl::OkStatus();
    KERNIX_RETURN_IF_ERROR(CanRead(info.status(), folder));
    const FileId id = FileId::Of(*info);
    if (std::find(open_.begin(), open_.end(), id) != open_.end()) return absl::OkStatus();  // a link back up
    open_.push_back(id);
    const absl::Status added = AddContent(folder);
    open_.pop_back();
    return added;
  }

  void Add(const std::vector<std::string>& paths) { paths_.insert(paths.begin(), paths.end()); }

  absl::Status Describe(FileDigests& digests, ToolchainDescription& description) const {
    for (const std::string& path : paths_) {
      const absl::StatusOr<Digest> digest = digests.Get(path);
      if (absl::IsPermissionDenied(digest.status())) continue;  // compilers cannot read it either
      KERNIX_RETURN_IF_ERROR(CanRead(digest.status(), path));
      ToolchainDescription::File& file = *description.add_file();
      file.set_path(path);
      file.set_digest(digest->Raw());
    }
    return absl::OkStatus();
  }

 private:
  absl::Status AddContent(const std::string& folder) {
    const absl::StatusOr<std::vector<std::string>> names = env_.ListDirectory(folder);
    KERNIX_RETURN_IF_ERROR(CanRead(names.status(), folder));
    for (const std::string& name : *names) {
      const std::string path = JoinPath(folder, name);
      const absl::StatusOr<FileInfo> info = env_.Stat(path);
      if (!info.ok()) continue;  // a link to nowhere
      if (info->type == FileType::kRegular) paths_.insert(path);
      if (info->type == FileType::kDirectory) KERNIX_RETURN_IF_ERROR(AddTree(path));
    }
    return absl::OkStatus();
  }

  static absl::Status CanRead(const absl::Status& status, const std::string& path) {
    if (status.ok()) return status;
    return MakeError(v1::ErrorDetail::RESOURCE,
                     StrCat("cannot describe the toolchain: ", path, " cannot be read: ", ToStd(status.message())));
  }

  Env& env_;
  std::vector<FileId> open_;  // the folders on the way to the one that is being added
  std::set<std::string> paths_;
};

void Describe(const HostCompiler& host, ToolchainDescription::HostCompiler& description) {
  description.set_is_clang(host.kind == HostCompilerKind::kClang);
  description.set_path(host.path);
  description.set_major_version(host.major_version);
  description.set_version(host.version);
  description.set_identity(host.identity.Raw());
  Assign(host.lto_programs, description.mutable_lto_program());
  Assign(host.sanitizer_files, description.mutable_sanitizer_file());
  Assign(host.system_include_directories, description.mutable_system_include_directory());
  Assign(host.library_directories, description.mutable_library_directory());
  description.set_links_no_cxx(!host.links_cxx);
  description.mutable_variable()->insert(host.variables.begin(), host.variables.end());
}

void Describe(const CudaToolkit& cuda, ToolchainDescription::CudaToolkit& description) {
  description.set_nvcc(cuda.nvcc);
  description.set_root(cuda.root);
  description.set_major_version(cuda.major_version);
  description.set_minor_version(cuda.minor_version);
  description.set_version(cuda.version);
  description.set_identity(cuda.identity.Raw());
  Assign(cuda.include_directories, description.mutable_include_directory());
  Assign(cuda.library_directories, description.mutable_library_directory());
  description.mutable_architecture()->Assign(cuda.architectures.begin(), cuda.architectures.end());
  description.set_host_refusal(cuda.host_refusal);
  description.set_programs_beside_host_compiler(cuda.programs_beside_host_compiler);
}

ToolchainDescription WithoutFiles(const Toolchain& toolchain) {
  ToolchainDescription description;
  description.set_format(kFormat);
  Describe(toolchain.host, *description.mutable_host());
  if (toolchain.cuda) Describe(*toolchain.cuda, *description.mutable_cuda());
  description.set_complete(true);
  return description;
}

absl::StatusOr<HostCompiler> HostOf(const ToolchainDescription::HostCompiler& description) {
  HostCompiler host;
  host.kind = description.is_clang() ? HostCompilerKind::kClang : HostCompilerKind::kGcc;
  host.path = description.path();
  host.major_version = description.major_version();
  host.version = description.version();
  KERNIX_ASSIGN_OR_RETURN(host.identity, Digest::FromRaw(description.identity()));
  host.lto_programs = ListOf(description.lto_program());
  host.sanitizer_files = ListOf(description.sanitizer_file());
  host.system_include_directories = ListOf(description.system_include_directory());
  host.library_directories = ListOf(description.library_directory());
  host.links_cxx = !description.links_no_cxx();
  host.variables = {description.variable().begin(), description.variable().end()};
  return host;
}

absl::StatusOr<CudaToolkit> CudaOf(const ToolchainDescription::CudaToolkit& description) {
  CudaToolkit cuda;
  cuda.nvcc = description.nvcc();
  cuda.root = description.root();
  cuda.major_version = description.major_version();
  cuda.minor_version = description.minor_version();
  cuda.version = description.version();
  KERNIX_ASSIGN_OR_RETURN(cuda.identity, Digest::FromRaw(description.identity()));
  cuda.include_directories = ListOf(description.include_directory());
  cuda.library_directories = ListOf(description.library_directory());
  cuda.architectures = {description.architecture().begin(), description.architecture().end()};
  cuda.host_refusal = description.host_refusal();
  cuda.programs_beside_host_compiler = description.programs_beside_host_compiler();
  return cuda;
}

absl::StatusOr<Toolchain> ToolchainOf(const ToolchainDescription& description, const std::string& file) {
  Toolchain toolchain;
  KERNIX_ASSIGN_OR_RETURN(toolchain.host, HostOf(description.host()));
  if (description.has_cuda()) {
    KERNIX_ASSIGN_OR_RETURN(toolchain.cuda, CudaOf(description.cuda()));
  }
  auto files = std::make_shared<DescribedFiles>(DescribedFiles{.file = file});
  for (const ToolchainDescription::File& part : description.file()) {
    KERNIX_ASSIGN_OR_RETURN(files->digests[part.path()], Digest::FromRaw(part.digest()));
  }
  toolchain.described = std::move(files);
  return toolchain;
}

absl::Status Unreadable(const std::string& file, std::string_view why) {
  return MakeError(v1::ErrorDetail::TOOLCHAIN, StrCat("toolchain_description: ", file, " ", why,
                                                      ": make it again with kernixd --describe-toolchain"));
}

}  // namespace

absl::StatusOr<std::string> DescribeToolchain(Env& env, FileDigests& digests, const Toolchain& toolchain) {
  ToolchainDescription description = WithoutFiles(toolchain);
  FileList files(env);
  for (const std::string& folder : HeaderFolders(toolchain)) KERNIX_RETURN_IF_ERROR(files.AddTree(folder));
  files.Add(toolchain.host.lto_programs);
  files.Add(toolchain.host.sanitizer_files);
  if (toolchain.cuda) {
    const auto disassembler = FindFile(env, ProgramFolders(*toolchain.cuda, toolchain.host), kDisassembler);
    if (disassembler) files.Add({*disassembler});
  }
  KERNIX_RETURN_IF_ERROR(files.Describe(digests, description));
  return description.SerializeAsString();
}

std::string DescribeWithoutFiles(const Toolchain& toolchain) { return WithoutFiles(toolchain).SerializeAsString(); }

absl::StatusOr<Toolchain> ReadDescription(const std::string& file, std::string_view text, v1::Language language) {
  ToolchainDescription description;
  if (!description.ParseFromArray(text.data(), static_cast<int>(text.size())) || !description.complete()) {
    return Unreadable(file, "is not a whole description of a toolchain");
  }
  if (description.format() != kFormat) return Unreadable(file, "was made by another release of kernixd");
  absl::StatusOr<Toolchain> toolchain = ToolchainOf(description, file);
  if (!toolchain.ok()) return Unreadable(file, "has an invalid digest");
  if (!TraitsOf(language).needs_nvcc) {
    toolchain->cuda.reset();
  } else if (!toolchain->cuda) {
    return Unreadable(file, "describes no nvcc");
  }
  return toolchain;
}

bool IsDescribed(const Toolchain& toolchain, const std::string& path) {
  return toolchain.described != nullptr && toolchain.described->digests.contains(path);
}

absl::StatusOr<Digest> DigestOfPart(const Toolchain& toolchain, FileDigests& digests, const std::string& path,
                                    std::vector<WatchedFile>* watched) {
  if (toolchain.described == nullptr) return watched == nullptr ? digests.Get(path) : digests.Get(path, *watched);
  const auto found = toolchain.described->digests.find(path);
  if (found == toolchain.described->digests.end()) return absl::NotFoundError(StrCat(path, " is not described"));
  return found->second;
}

std::optional<std::string> FindPart(Env& env, const Toolchain& toolchain, const std::vector<std::string>& folders,
                                    const std::string& name) {
  if (toolchain.described == nullptr) return FindFile(env, folders, name);
  for (const std::string& folder : folders) {
    std::string path = NormalizePath(JoinPath(folder, name));
    if (IsDescribed(toolchain, path)) return path;
  }
  return std::nullopt;
}

}  // namespace kernix::toolchain
