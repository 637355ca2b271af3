// SPDX-License-Identifier: Apache-2.0
#include "client/bundle/bundle.h"

#include <minizip/unzip.h>
#include <minizip/zip.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/strings/str_join.h"
#include "client/bundle/bundled_kernel.pb.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/folders.h"
#include "common/os/posix_error.h"
#include "common/os/private_directory.h"
#include "common/wire/statement.h"

namespace kernix {
namespace {

constexpr char kFormatFile[] = "kernix-bundle";
constexpr std::string_view kFormat = "kernix bundle, format 1\n";
constexpr std::string_view kFormatBegins = "kernix bundle, format ";
constexpr std::string_view kKernelSuffix = ".kernel";
constexpr std::string_view kArtifactSuffix = ".so";
constexpr std::string_view kZipSuffix = ".zip";

absl::Status NoBundle(const std::string& path, std::string_view why) {
  return MakeError(v1::ErrorDetail::LOAD, StrCat(path, " is no bundle of kernels: ", why));
}

std::string NameOfArtifact(const Digest& digest) { return StrCat(digest.Hex(), kArtifactSuffix); }
std::string NameOfKernel(const Digest& key) { return StrCat(key.Hex(), kKernelSuffix); }

template <typename To>
void Set(const std::vector<std::string>& from, To& to) {
  to = {from.begin(), from.end()};
}

std::string StatementOf(const BundledKernel& kernel, const Digest& key, const Digest& digest, uint64_t size,
                        const SigningKey* signs_with) {
  internal::BundledKernel detail;
  *detail.mutable_load() = kernel.load;
  *detail.mutable_result() = WithoutCircumstances(kernel.result);
  Set(kernel.targets.machine_code, *detail.mutable_machine_code());
  Set(kernel.targets.ptx, *detail.mutable_ptx());
  detail.set_cuda_version(kernel.targets.cuda_version);
  const Statement statement{.key = key,
                            .headers = {},
                            .files = {{NameOfArtifact(digest), digest, size}},
                            .detail = detail.SerializeAsString()};
  return EncodeStatement(statement, signs_with);
}

// The statements in a file's content, and those of `more`, each once.
std::string WithStatements(const std::string& content, const std::vector<std::string>& more) {
  internal::KernelFile file;
  file.ParseFromString(content);
  std::set<std::string> statements(file.statement().begin(), file.statement().end());
  statements.insert(more.begin(), more.end());
  Set({statements.begin(), statements.end()}, *file.mutable_statement());
  return file.SerializeAsString();
}

// Nullopt unless the statement is one about a kernel of this key, whose result is its only file.
std::optional<BundledKernel> KernelOf(const Statement& statement, const Digest& key) {
  internal::BundledKernel detail;
  if (statement.key != key || statement.files.size() != 1 || !detail.ParseFromString(statement.detail)) {
    return std::nullopt;
  }
  const bool is_whole = detail.result().artifact_digest() == statement.files[0].digest.Raw() &&
                        detail.load().source_digest_size() == detail.load().request().source_size() &&
                        BundleKey(detail.load()) == key;
  if (!is_whole) return std::nullopt;
  return BundledKernel{.load = detail.load(),
                       .result = detail.result(),
                       .targets = {.machine_code = {detail.machine_code().begin(), detail.machine_code().end()},
                                   .ptx = {detail.ptx().begin(), detail.ptx().end()},
                                   .cuda_version = detail.cuda_version()}};
}

absl::Status CheckReplaceable(Env& env, const std::string& path) {
  const absl::Status there = Bundle::Open(env, path).status();
  if (there.ok() || absl::IsNotFound(there)) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat("will not replace ", path, ", which is no bundle of this kernix: choose another name"));
}

// Renames `folder` to `path`. What is there goes to `aside`, or stays if that fails.
absl::Status TakeThePlaceOf(Env& env, const std::string& path, const std::string& folder, const std::string& aside) {
  const absl::Status moved = env.Rename(path, aside);
  if (!moved.ok() && !absl::IsNotFound(moved)) return moved;
  absl::Status status = env.Rename(folder, path);
  if (!status.ok() && moved.ok()) status.Update(env.Rename(aside, path));
  return status;
}

absl::Status WriteFiles(Env& env, const std::string& folder, const BundleFiles& files) {
  KERNIX_RETURN_IF_ERROR(env.CreateDirectories(folder));
  for (const auto& [name, content] : files) {
    KERNIX_RETURN_IF_ERROR(env.WriteFile(JoinPath(folder, name), content, 0644));
  }
  const absl::StatusOr<FileInfo> info = env.Stat(folder);
  if (info.ok()) (void)env.SetModificationTime(JoinPath(folder, kFormatFile), info->mtime_ns);  // see IsWhole()
  return absl::OkStatus();
}

absl::Status WriteFolder(Env& env, const std::string& path, const BundleFiles& files) {
  KERNIX_ASSIGN_OR_RETURN(const std::string made, env.CreateTempDirectory(StrCat(path, ".")));
  const std::string folder = JoinPath(made, "new");
  absl::Status status = WriteFiles(env, folder, files);
  if (status.ok()) status = TakeThePlaceOf(env, path, folder, JoinPath(made, "old"));
  (void)env.RemoveTree(made);
  return status;
}

// Whether `folder` has all that was unpacked. The time of one file says when a name last came to the folder, or went:
// to somebody who cleans up.
bool IsWhole(Env& env, const std::string& folder) {
  const absl::StatusOr<FileInfo> mark = env.Stat(JoinPath(folder, kFormatFile));
  const absl::StatusOr<FileInfo> info = env.Stat(folder);
  return mark.ok() && info.ok() && mark->mtime_ns == info->mtime_ns;
}

// Removes what was unpacked of earlier files. Processes that have just found it may still need it.
void RemoveOlder(Env& env, const std::string& folder, const std::string& but) {
  constexpr int64_t kDayMs = 24LL * 3600 * 1000;
  constexpr int64_t kNsInMs = 1'000'000;
  for (const std::string& name : env.ListDirectory(folder).value_or(std::vector<std::string>())) {
    const std::string path = JoinPath(folder, name);
    const absl::StatusOr<FileInfo> info = env.Stat(path, /*follow=*/false);
    const bool is_old = info.ok() && info->mtime_ns / kNsInMs < env.UnixMillis() - kDayMs;
    if (name != but && is_old) (void)env.RemoveTree(path);
  }
}

// The folder with the files of a zip file, whose name changes with the file. Only this user can change it.
absl::StatusOr<std::string> UnpackedFolder(Env& env, const std::string& zip, const FileInfo& info) {
  KERNIX_ASSIGN_OR_RETURN(const std::string store, DefaultStoreDirectory(env, ProcessGetEnv, geteuid()));
  const std::string own = JoinPath(JoinPath(store, "bundles"), DigestOf(zip).Hex());
  KERNIX_RETURN_IF_ERROR(EnsureOwnDirectory(env, own, geteuid()));
  const std::string name = StrCat(info.inode, "-", info.size, "-", info.mtime_ns);
  std::string folder = JoinPath(own, name);
  if (IsWhole(env, folder)) return folder;
  KERNIX_ASSIGN_OR_RETURN(const BundleFiles files, ReadZip(zip));
  const absl::Status status = WriteFolder(env, folder, files);
  if (!status.ok() && !IsWhole(env, folder)) return status;  // another process may have done the same
  RemoveOlder(env, own, name);
  return folder;
}

absl::StatusOr<std::string> Unpacked(Env& env, const std::string& zip, const FileInfo& info) {
  absl::StatusOr<std::string> folder = UnpackedFolder(env, zip, info);
  if (folder.ok()) return folder;
  if (absl::IsDataLoss(folder.status())) {
    return NoBundle(zip, "it is neither a folder nor a whole zip file of files without folders");
  }
  return MakeError(v1::ErrorDetail::LOAD,
                   StrCat("cannot unpack the bundle ", zip, ": ", GetErrorDetail(folder.status()).message(),
                          ". Set KERNIX_CACHE_DIR to a folder that you can write, or unzip the bundle, and name the "
                          "folder"));
}

}  // namespace

v1::LoadResult WithoutCircumstances(v1::LoadResult result) {
  result.clear_artifact_path();
  result.clear_cache_hit();
  result.clear_build_ms();
  result.clear_miss_reason();
  result.clear_joined();
  result.clear_from_upstream();
  return result;
}

void AddKernel(const BundledKernel& kernel, std::string artifact, const SigningKey* signs_with, BundleFiles& files) {
  const Digest digest = DigestOf(artifact);
  const Digest key = BundleKey(kernel.load);
  std::string& file = files[NameOfKernel(key)];
  file = WithStatements(file, {StatementOf(kernel, key, digest, artifact.size(), signs_with)});
  files[NameOfArtifact(digest)] = std::move(artifact);
}

void AddBundle(const BundleFiles& others, BundleFiles& files) {
  for (const auto& [name, content] : others) {
    const auto [file, is_new] = files.emplace(name, content);
    if (is_new || !name.ends_with(kKernelSuffix)) continue;
    internal::KernelFile more;
    more.ParseFromString(content);
    file->second = WithStatements(file->second, {more.statement().begin(), more.statement().end()});
  }
}

absl::Status WriteBundle(Env& env, std::string path, BundleFiles files) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  KERNIX_RETURN_IF_ERROR(CheckReplaceable(env, path));
  files[kFormatFile] = std::string(kFormat);
  KERNIX_RETURN_IF_ERROR(env.CreateDirectories(Dirname(path)));
  if (!path.ends_with(kZipSuffix)) return WriteFolder(env, path, files);
  KERNIX_ASSIGN_OR_RETURN(const std::string made, env.CreateTempDirectory(StrCat(path, ".")));
  const std::string zip = JoinPath(made, "new");
  absl::Status status = WriteZip(zip, files);
  if (status.ok()) status = env.Rename(zip, path);
  (void)env.RemoveTree(made);
  return status;
}

absl::StatusOr<Bundle> Bundle::Open(Env& env, std::string path) {
  KERNIX_ASSIGN_OR_RETURN(const FileInfo info, env.Stat(path));
  std::string folder = path;
  if (info.type == FileType::kRegular) {
    KERNIX_ASSIGN_OR_RETURN(folder, Unpacked(env, path, info));
  }
  const absl::StatusOr<std::string> format = env.ReadFile(JoinPath(folder, kFormatFile));
  if (absl::IsNotFound(format.status())) return NoBundle(path, StrCat("it lacks the file ", kFormatFile));
  if (!format.ok()) {
    return MakeError(v1::ErrorDetail::LOAD, StrCat("cannot read the bundle: ", ToStd(format.status().message())));
  }
  if (*format == kFormat) return Bundle(env, std::move(path), std::move(folder));
  if (!format->starts_with(kFormatBegins)) return NoBundle(path, StrCat("its file ", kFormatFile, " is damaged"));
  return MakeError(v1::ErrorDetail::LOAD,
                   StrCat(path, " was made by a newer kernix: update kernix, or make the bundle with this one"),
                   absl::StatusCode::kUnimplemented);
}

absl::StatusOr<std::vector<BundledKernel>> Bundle::Find(const Digest& key, const TrustedKeys& trusted) const {
  absl::StatusOr<std::vector<BundledKernel>> kernels = ReadKernels(NameOfKernel(key), trusted);
  if (absl::IsNotFound(kernels.status())) return std::vector<BundledKernel>();
  return kernels;
}

absl::StatusOr<std::vector<BundledKernel>> Bundle::All(const TrustedKeys& trusted) const {
  std::vector<BundledKernel> all;
  KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> names, env_->ListDirectory(folder_));
  for (const std::string& name : names) {
    if (!name.ends_with(kKernelSuffix)) continue;
    KERNIX_ASSIGN_OR_RETURN(std::vector<BundledKernel> kernels, ReadKernels(name, trusted));
    all.insert(all.end(), kernels.begin(), kernels.end());
  }
  std::stable_sort(all.begin(), all.end(), [](const BundledKernel& a, const BundledKernel& b) {
    return a.load.request().name() < b.load.request().name();
  });
  return all;
}

absl::StatusOr<std::vector<BundledKernel>> Bundle::ReadKernels(const std::string& name,
                                                               const TrustedKeys& trusted) const {
  KERNIX_ASSIGN_OR_RETURN(const std::string content, env_->ReadFile(JoinPath(folder_, name)));
  const absl::StatusOr<Digest> key = Digest::FromHex(name.substr(0, name.size() - kKernelSuffix.size()));
  internal::KernelFile file;
  const bool is_whole = key.ok() && file.ParseFromString(content) && !file.statement().empty();
  if (!is_whole) return Damaged(name, "it is damaged");
  std::vector<BundledKernel> kernels;
  for (const std::string& bytes : file.statement()) {
    const absl::StatusOr<Statement> statement = DecodeStatement(bytes, trusted);
    if (absl::IsPermissionDenied(statement.status())) continue;
    std::optional<BundledKernel> kernel = statement.ok() ? KernelOf(*statement, *key) : std::nullopt;
    if (!kernel) return Damaged(name, "it is damaged");
    kernels.push_back(*std::move(kernel));
  }
  return kernels;
}

absl::StatusOr<std::string> Bundle::Artifact(const v1::LoadResult& result, Compare compare) const {
  KERNIX_ASSIGN_OR_RETURN(const Digest digest, Digest::FromRaw(result.artifact_digest()));
  const std::string name = NameOfArtifact(digest);
  std::string path = JoinPath(folder_, name);
  const absl::StatusOr<FileInfo> info = env_->Stat(path);
  if (absl::IsNotFound(info.status())) return Damaged(name, "it is missing");
  if (!info.ok()) return info.status();
  if (info->size != result.artifact_size()) return Damaged(name, "it has another size");
  if (compare == Compare::kSize) return path;
  KERNIX_ASSIGN_OR_RETURN(const std::string content, env_->ReadFile(path));
  if (DigestOf(content) != digest) return Damaged(name, "its content has changed");
  return path;
}

absl::StatusOr<std::vector<std::string>> Bundle::Names() const {
  KERNIX_ASSIGN_OR_RETURN(std::vector<std::string> names, env_->ListDirectory(folder_));
  std::erase_if(names, [](const std::string& name) {
    return !name.ends_with(kKernelSuffix) && !name.ends_with(kArtifactSuffix);
  });
  return names;
}

absl::StatusOr<BundleFiles> Bundle::Files() const {
  BundleFiles files;
  KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names());
  for (const std::string& name : names) {
    KERNIX_ASSIGN_OR_RETURN(files[name], env_->ReadFile(JoinPath(folder_, name)));
  }
  return files;
}

absl::Status Bundle::Damaged(const std::string& name, std::string_view how) const {
  if (folder_ != path_) (void)env_->RemoveFile(JoinPath(folder_, kFormatFile));  // who opens it next unpacks it again
  return MakeError(v1::ErrorDetail::LOAD, StrCat(JoinPath(path_, name), ": ", how,
                                                 ". Copy the bundle again from a whole one, or make it again."));
}

namespace {

using Roots = google::protobuf::RepeatedField<uint32_t>;

// The new numbers of the include roots that have a header.
std::map<uint32_t, uint32_t> NewNumbers(const v1::LoadRequest& request) {
  std::map<uint32_t, uint32_t> numbers;
  for (const v1::Header& header : request.header()) numbers.emplace(header.include_root(), 0);
  uint32_t next = 0;
  for (auto& [root, number] : numbers) number = next++;
  return numbers;
}

void Renumber(const std::map<uint32_t, uint32_t>& numbers, Roots& roots) {
  Roots kept;
  for (const uint32_t root : roots) {
    if (const auto found = numbers.find(root); found != numbers.end()) kept.Add(found->second);
  }
  roots = std::move(kept);
}

void LeaveOutEmptyRoots(v1::LoadRequest& request) {
  const std::map<uint32_t, uint32_t> numbers = NewNumbers(request);
  for (v1::Header& header : *request.mutable_header()) header.set_include_root(numbers.at(header.include_root()));
  for (v1::Source& source : *request.mutable_source()) {
    Renumber(numbers, *source.mutable_include_root());
    Renumber(numbers, *source.mutable_quoted_include_root());
  }
  v1::Options& options = *request.mutable_options();
  Renumber(numbers, *options.mutable_quoted_include_root());
  options.set_include_root_count(static_cast<uint32_t>(numbers.size()));
}

// Drops the texts that begin like this.
void Drop(google::protobuf::RepeatedPtrField<std::string>& texts, std::string_view beginning) {
  google::protobuf::RepeatedPtrField<std::string> kept;
  for (const std::string& text : texts) {
    if (!text.starts_with(beginning)) *kept.Add() = text;
  }
  texts = std::move(kept);
}

// Clears what does not count: also folders of libraries, which a machine's environment may add, and what only says
// which compilers nvcc takes.
void MakeCanonical(v1::RecordedLoad& load) {
  load.clear_key();
  load.clear_architecture_of_machine();
  load.clear_host_compiler();
  v1::LoadRequest& request = *load.mutable_request();
  request.clear_name();
  request.clear_toolchain();
  v1::Options& options = *request.mutable_options();
  Drop(*options.mutable_link_flags(), "-L");
  Drop(*options.mutable_compile_flags(), "-allow-unsupported-compiler");
  options.clear_architectures();
  options.clear_architectures_of_gpu();
  LeaveOutEmptyRoots(request);
}

// Values by the part's name for people.
using Parts = std::map<std::string, std::string>;

std::string Joined(const google::protobuf::RepeatedPtrField<std::string>& texts) { return absl::StrJoin(texts, "\n"); }

Parts PartsOf(v1::RecordedLoad load) {
  MakeCanonical(load);
  const v1::LoadRequest& request = load.request();
  const v1::Options& options = request.options();
  Parts parts = {{"the language", StrCat(request.language())},
                 {"the functions", request.functions().SerializeAsString()},
                 {"compile flags", Joined(options.compile_flags())},
                 {"link flags", Joined(options.link_flags())},
                 {"optimization_level", StrCat(options.optimization_level())},
                 {"use_fast_math", StrCat(options.use_fast_math())},
                 {"allow_cuda_graph", StrCat(options.allow_cuda_graph())},
                 {"separate", StrCat(options.separate_units())},
                 {"keep", StrCat(options.keep())}};
  for (int i = 0; i < request.source_size(); ++i) {
    parts[StrCat("source ", request.source(i).label())] = load.source_digest(i);
  }
  for (const v1::Header& header : request.header()) parts[StrCat("header ", header.path())] += header.digest();
  return parts;
}

}  // namespace

Digest BundleKey(v1::RecordedLoad load) {
  MakeCanonical(load);
  return DigestOf(StrCat("kernix-bundle-1\n", load.SerializeAsString()));
}

std::vector<std::string> DifferencesOf(const v1::RecordedLoad& a, const v1::RecordedLoad& b) {
  const Parts parts_of_a = PartsOf(a);
  const Parts parts_of_b = PartsOf(b);
  std::vector<std::string> differences;
  for (const auto& [name, value] : parts_of_a) {
    const auto other = parts_of_b.find(name);
    if (other == parts_of_b.end() || other->second != value) differences.push_back(name);
  }
  for (const auto& [name, value] : parts_of_b) {
    if (!parts_of_a.contains(name)) differences.push_back(name);
  }
  if (differences.empty() && BundleKey(a) != BundleKey(b))
    differences.emplace_back("where headers are searched, or the order of sources");
  return differences;
}

namespace {

constexpr int kStored = 0;
constexpr zip_fileinfo kNoDate = {{0, 0, 0, 1, 0, 1980}, 0, 0, 0};  // the first day that a zip can say

struct CloseReader {
  void operator()(unzFile file) const { unzClose(file); }
};
using Reader = std::unique_ptr<std::remove_pointer_t<unzFile>, CloseReader>;

absl::Status Damaged(const std::string& path) {
  return absl::DataLossError(StrCat(path, " is no zip file, or damaged, or has folders"));
}

absl::Status CannotWrite(const std::string& path) { return ErrnoStatus(errno == 0 ? EIO : errno, "write", path); }

bool WriteEntry(zipFile file, const std::string& name, const std::string& content) {
  int result = zipOpenNewFileInZip64(file, name.c_str(), &kNoDate, nullptr, 0, nullptr, 0, nullptr, kStored, 0,
                                     content.size() >= UINT_MAX ? 1 : 0);
  if (result == ZIP_OK) result = zipWriteInFileInZip(file, content.data(), static_cast<unsigned>(content.size()));
  if (result == ZIP_OK) result = zipCloseFileInZip(file);
  return result == ZIP_OK;
}

// The entry at which `file` stands.
absl::Status ReadEntry(unzFile file, std::map<std::string, std::string>& contents) {
  unz_file_info64 info = {};
  std::array<char, 256> name = {};
  if (unzGetCurrentFileInfo64(file, &info, name.data(), name.size() - 1, nullptr, 0, nullptr, 0) != UNZ_OK ||
      info.uncompressed_size > INT_MAX || std::string_view(name.data()).find('/') != std::string_view::npos ||
      unzOpenCurrentFile(file) != UNZ_OK) {
    return absl::DataLossError("");
  }
  std::string& content = contents[name.data()];
  content.resize(info.uncompressed_size);
  const int read = unzReadCurrentFile(file, content.data(), static_cast<unsigned>(content.size()));
  const bool is_whole = unzCloseCurrentFile(file) == UNZ_OK && read == static_cast<int>(content.size());
  return is_whole ? absl::OkStatus() : absl::DataLossError("");
}

}  // namespace

absl::Status WriteZip(const std::string& path, const std::map<std::string, std::string>& contents) {
  errno = 0;
  zipFile file = zipOpen64(path.c_str(), APPEND_STATUS_CREATE);
  if (file == nullptr) return CannotWrite(path);
  absl::Status status;
  for (const auto& [name, content] : contents) {
    if (status.ok() && !WriteEntry(file, name, content)) status = CannotWrite(path);
  }
  if (zipClose(file, nullptr) != ZIP_OK) status.Update(CannotWrite(path));
  return status;
}

absl::StatusOr<std::map<std::string, std::string>> ReadZip(const std::string& path) {
  const Reader file(unzOpen64(path.c_str()));
  std::map<std::string, std::string> contents;
  if (file == nullptr) return Damaged(path);
  int at = unzGoToFirstFile(file.get());
  for (; at == UNZ_OK; at = unzGoToNextFile(file.get())) {
    if (!ReadEntry(file.get(), contents).ok()) return Damaged(path);
  }
  if (at != UNZ_END_OF_LIST_OF_FILE) return Damaged(path);
  return contents;
}

}  // namespace kernix
