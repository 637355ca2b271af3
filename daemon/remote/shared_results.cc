// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/shared_results.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/exec/remote_execution.h"
#include "daemon/remote/shared_result.pb.h"

namespace kernix::remote {

namespace {

constexpr char kHeadersFile[] = "headers";
constexpr char kStatementFile[] = "statement";

// Lists of header names, and statements, are far smaller.
constexpr uint64_t kMostTextBytes = 16 << 20;

// What comes along with a statement, or is read together with it, if it is no larger together: the artifact of a load,
// the outputs of a step.
const std::vector<std::string>& NamesOfFirstFiles() {
  static const auto& names = *new std::vector<std::string>{kStatementFile, "file-0", "file-1", "file-2", "file-3"};
  return names;
}
constexpr uint64_t kMostEarlyBytes = 3 << 19;  // with a statement, one message of an engine that names no limit

// A build with all of CUDA's libraries reads some 2,000.
constexpr int kMostHeaders = 20'000;

namespace reapi = exec::reapi;

// An address in an action cache for what is no result of a command: no engine could run the action behind it. Engines
// may ask for the blobs that it names.
struct ResultAddress {
  exec::BlobDigest action;
  std::vector<Blob> blobs;  // the action, its command and its empty input root
};

Blob BlobOf(std::string bytes) {
  const exec::BlobDigest digest = exec::BlobDigestOf(bytes);
  return {digest, exec::MakeContent(std::move(bytes))};
}

// `what` and `salt` make the address.
ResultAddress MakeAddress(std::string_view what, const Digest& salt) {
  reapi::Command command;
  command.add_arguments("kernixd");
  command.add_arguments(std::string(what));
  Blob command_blob = BlobOf(command.SerializeAsString());
  Blob empty_folder = BlobOf(reapi::Directory().SerializeAsString());
  reapi::Action action;
  *action.mutable_command_digest() = exec::ToReapi(command_blob.digest);
  *action.mutable_input_root_digest() = exec::ToReapi(empty_folder.digest);
  action.set_salt(salt.Raw());
  Blob action_blob = BlobOf(action.SerializeAsString());
  const exec::BlobDigest digest = action_blob.digest;
  return {digest, {std::move(command_blob), std::move(empty_folder), std::move(action_blob)}};
}

ResultAddress AddressOfLists(const Digest& key) { return MakeAddress(kHeadersFile, key); }

ResultAddress AddressOfResult(const Digest& key, const std::vector<StatedHeader>& headers) {
  CanonicalHasher hasher("kernix-shared-result");
  hasher.Field("key", key).List("headers", headers.size());
  for (const StatedHeader& header : headers) hasher.Field("name", header.name).Field("digest", header.digest);
  return MakeAddress(kStatementFile, hasher.Finish());
}

const OutputFile* FindFile(const std::vector<OutputFile>& files, std::string_view path) {
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const OutputFile& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

// The blobs that came along with a result.
std::map<exec::BlobDigest, exec::Content> ContentsOf(const std::vector<OutputFile>& files) {
  std::map<exec::BlobDigest, exec::Content> contents;
  for (const OutputFile& file : files) {
    if (file.content != nullptr) contents[file.digest] = file.content;
  }
  return contents;
}

// The statement's digest, and those of the files that `most` bytes have room for.
std::vector<exec::BlobDigest> FirstFiles(const std::vector<OutputFile>& outputs, uint64_t most) {
  std::vector<exec::BlobDigest> digests;
  for (const std::string& name : NamesOfFirstFiles()) {
    const OutputFile* file = FindFile(outputs, name);
    if (file == nullptr || (name != kStatementFile && file->digest.size > most)) continue;
    if (name != kStatementFile) most -= file->digest.size;
    digests.push_back(file->digest);
  }
  return digests;
}

template <typename Message>
std::optional<Message> Parse(std::string_view bytes) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return std::nullopt;
  return message;
}

// This node's headers of these names; nullopt if it lacks one.
std::optional<std::vector<StatedHeader>> OwnHeaders(const std::vector<std::string>& names,
                                                    const DigestOfHeader& digest_of_header) {
  std::vector<StatedHeader> headers;
  headers.reserve(names.size());
  for (const std::string& name : names) {
    const std::optional<Digest> digest = digest_of_header(name);
    if (!digest) return std::nullopt;
    headers.push_back({name, *digest});
  }
  return headers;
}

std::vector<std::string> NamesOf(const std::vector<StatedHeader>& headers) {
  std::vector<std::string> names;
  names.reserve(headers.size());
  for (const StatedHeader& header : headers) names.push_back(header.name);
  return names;
}

Statement StatementOf(const Digest& key, const SharedResult& result, const std::vector<Blob>& files) {
  Statement statement{.key = key, .headers = result.headers, .files = {}, .detail = {}};
  for (size_t i = 0; i < files.size(); ++i) {
    statement.files.push_back({result.files[i].first, files[i].digest.hash, files[i].digest.size});
  }
  return statement;
}

std::vector<exec::BlobDigest> FilesOf(const Statement& statement) {
  std::vector<exec::BlobDigest> files;
  for (const StatedFile& file : statement.files) files.push_back({file.digest, file.size});
  return files;
}

uint64_t BytesOf(const std::vector<exec::BlobDigest>& files) {
  uint64_t bytes = 0;
  for (const exec::BlobDigest& file : files) bytes += std::min(file.size, UINT64_MAX - bytes);
  return bytes;
}

}  // namespace

absl::StatusOr<std::optional<SharedResult>> SharedResults::Find(const Digest& key,
                                                                const DigestOfHeader& digest_of_header,
                                                                uint64_t max_bytes, const Limits& limits) {
  absl::StatusOr<std::optional<SharedResult>> result = FindNow(key, digest_of_header, max_bytes, limits);
  upstream_.NoteQuery(result.status(), result.ok() && result->has_value());
  return result;
}

absl::StatusOr<std::optional<SharedResult>> SharedResults::FindNow(const Digest& key,
                                                                   const DigestOfHeader& digest_of_header,
                                                                   uint64_t max_bytes, const Limits& limits) {
  KERNIX_ASSIGN_OR_RETURN(const std::vector<HeaderNames> lists, ReadLists(key, limits));
  for (const HeaderNames& names : lists) {
    const std::optional<std::vector<StatedHeader>> headers = OwnHeaders(names, digest_of_header);
    if (!headers) continue;
    KERNIX_ASSIGN_OR_RETURN(std::optional<SharedResult> result, FindWith(key, *headers, max_bytes, limits));
    if (!result) continue;
    found_.Add();
    return result;
  }
  (lists.empty() ? absent_ : other_headers_).Add();
  return std::nullopt;
}

absl::StatusOr<std::vector<SharedResults::HeaderNames>> SharedResults::ReadLists(const Digest& key,
                                                                                 const Limits& limits) {
  std::vector<HeaderNames> lists;
  KERNIX_ASSIGN_OR_RETURN(const auto files, upstream_.FindResult(AddressOfLists(key).action, {kHeadersFile}, limits));
  const OutputFile* file = files ? FindFile(*files, kHeadersFile) : nullptr;
  if (file == nullptr) return lists;
  Contents contents = ContentsOf(*files);
  KERNIX_ASSIGN_OR_RETURN(const bool is_there, ReadMissing({file->digest}, kMostTextBytes, limits, contents));
  const auto message = is_there ? Parse<internal::HeaderLists>(*contents.at(file->digest)) : std::nullopt;
  if (!message) return lists;
  for (const internal::HeaderLists::List& list : message->list()) {
    if (list.name_size() > kMostHeaders) continue;
    lists.emplace_back(list.name().begin(), list.name().end());
  }
  lists.resize(std::min(lists.size(), kMostHeaderLists));
  return lists;
}

absl::StatusOr<std::optional<SharedResult>> SharedResults::FindWith(const Digest& key,
                                                                    const std::vector<StatedHeader>& headers,
                                                                    uint64_t max_bytes, const Limits& limits) {
  KERNIX_ASSIGN_OR_RETURN(const auto outputs,
                          upstream_.FindResult(AddressOfResult(key, headers).action, NamesOfFirstFiles(), limits));
  const OutputFile* file = outputs ? FindFile(*outputs, kStatementFile) : nullptr;
  if (file == nullptr) return std::nullopt;
  Contents contents = ContentsOf(*outputs);
  KERNIX_ASSIGN_OR_RETURN(bool is_there, ReadMissing(FirstFiles(*outputs, std::min(kMostEarlyBytes, max_bytes)),
                                                     kMostTextBytes, limits, contents));
  if (!is_there) return std::nullopt;
  const absl::StatusOr<Statement> statement = DecodeStatement(*contents.at(file->digest), trust_.trusted);
  if (!statement.ok()) return NotBelieved(key, ToStd(statement.status().message()));
  if (statement->key != key || statement->headers != headers) {
    return NotBelieved(key, "its statement is about something else");
  }
  const std::vector<exec::BlobDigest> files = FilesOf(*statement);
  if (BytesOf(files) > max_bytes) return TooLarge(key, BytesOf(files), max_bytes);
  KERNIX_ASSIGN_OR_RETURN(is_there, ReadMissing(files, max_bytes, limits, contents));
  if (!is_there) return std::nullopt;
  SharedResult result{.headers = headers, .files = {}};
  for (size_t i = 0; i < files.size(); ++i) {
    result.files.emplace_back(statement->files[i].name, contents.at(files[i]));
  }
  return result;
}

// Returns whether all are there. An engine may keep a result longer than its blobs. A blob that is not what it should
// be is none: else one bad write would stand in the way of all later ones.
absl::StatusOr<bool> SharedResults::ReadMissing(const std::vector<exec::BlobDigest>& digests, uint64_t max_bytes,
                                                const Limits& limits, Contents& contents) {
  std::vector<exec::BlobDigest> missing;
  std::copy_if(digests.begin(), digests.end(), std::back_inserter(missing),
               [&](const exec::BlobDigest& digest) { return !contents.contains(digest); });
  const absl::StatusOr<std::vector<exec::Content>> read = upstream_.Read(missing, max_bytes, limits);
  if (read.ok()) {
    for (size_t i = 0; i < missing.size(); ++i) contents[missing[i]] = (*read)[i];
    return true;
  }
  if (absl::IsNotFound(read.status())) return false;
  const v1::ErrorDetail::Kind kind = KindOf(read.status());
  if (kind != v1::ErrorDetail::INTERNAL && kind != v1::ErrorDetail::RESOURCE) return read.status();
  not_believed_.Add();
  return false;
}

std::nullopt_t SharedResults::NotBelieved(const Digest& key, std::string_view why) {
  not_believed_.Add();
  Log(LogLevel::kWarning, "upstream_result_ignored", {{"key", ShortKey(key)}, {"reason", why}});
  return std::nullopt;
}

std::nullopt_t SharedResults::TooLarge(const Digest& key, uint64_t bytes, uint64_t most) {
  too_large_.Add();
  Log(LogLevel::kWarning, "upstream_result_too_large", {{"key", ShortKey(key)}, {"bytes", bytes}, {"most", most}});
  return std::nullopt;
}

absl::Status SharedResults::Put(const Digest& key, const SharedResult& result, const Limits& limits) {
  ResultAddress address = AddressOfResult(key, result.headers);
  std::vector<Blob> files;
  for (const auto& [name, content] : result.files) files.push_back({exec::BlobDigestOf(*content), content});
  const SigningKey* key_to_sign = trust_.signs_with ? &*trust_.signs_with : nullptr;
  const Blob statement = BlobOf(EncodeStatement(StatementOf(key, result, files), key_to_sign));
  std::vector<OutputFile> outputs = {{kStatementFile, statement.digest}};
  // Engines that lose blobs then see that this result needs them.
  for (size_t i = 0; i < files.size(); ++i) outputs.push_back({StrCat("file-", i), files[i].digest});
  std::vector<Blob> blobs = std::move(address.blobs);
  blobs.push_back(statement);
  blobs.insert(blobs.end(), files.begin(), files.end());
  KERNIX_RETURN_IF_ERROR(upstream_.Write(blobs, limits));
  KERNIX_RETURN_IF_ERROR(upstream_.PutResult(address.action, outputs, limits));
  KERNIX_RETURN_IF_ERROR(AddList(key, NamesOf(result.headers), limits));
  written_.Add();
  return absl::OkStatus();
}

// After the result itself: a node that finds the list then finds the result, too.
absl::Status SharedResults::AddList(const Digest& key, HeaderNames names, const Limits& limits) {
  KERNIX_ASSIGN_OR_RETURN(std::vector<HeaderNames> lists, ReadLists(key, limits));
  if (std::find(lists.begin(), lists.end(), names) != lists.end()) return absl::OkStatus();
  lists.insert(lists.begin(), std::move(names));
  lists.resize(std::min(lists.size(), kMostHeaderLists));
  internal::HeaderLists message;
  for (const HeaderNames& list : lists) message.add_list()->mutable_name()->Assign(list.begin(), list.end());
  ResultAddress address = AddressOfLists(key);
  const Blob content = BlobOf(message.SerializeAsString());
  address.blobs.push_back(content);
  KERNIX_RETURN_IF_ERROR(upstream_.Write(address.blobs, limits));
  return upstream_.PutResult(address.action, {{kHeadersFile, content.digest}}, limits);
}

void SharedResults::Register(MetricsRegistry& registry) const {
  registry.AddCounters("kernix_upstream_lookups_total", "Lookups of keys in the upstream, by outcome.", "result",
                       {{"found", &found_}, {"absent", &absent_}, {"other_headers", &other_headers_}});
  registry.AddCounter("kernix_upstream_results_ignored_total",
                      "Results in the upstream that this node does not trust, or that are damaged.", not_believed_);
  registry.AddCounter("kernix_upstream_results_too_large_total",
                      "Results in the upstream that are too large for this node.", too_large_);
  registry.AddCounter("kernix_upstream_results_written_total", "Results of this node written to the upstream.",
                      written_);
}

namespace {

constexpr char kClaimFile[] = "claim";
constexpr uint64_t kMostClaimBytes = 4096;

// A node of another release may have written another number.
ClaimState StateOf(const internal::Claim& claim) {
  return internal::Claim::State_IsValid(claim.state()) ? static_cast<ClaimState>(claim.state()) : ClaimState::kBuilding;
}

}  // namespace

absl::StatusOr<std::optional<BuildClaim>> BuildClaims::Read(const Digest& key, const Limits& limits) {
  KERNIX_ASSIGN_OR_RETURN(const auto files,
                          upstream_.FindResult(MakeAddress(kClaimFile, key).action, {kClaimFile}, limits));
  if (!files || files->size() != 1) return std::nullopt;
  exec::Content content = files->front().content;
  if (content == nullptr) {
    const auto contents = upstream_.Read({files->front().digest}, kMostClaimBytes, limits);
    if (absl::IsNotFound(contents.status())) return std::nullopt;
    if (!contents.ok()) return contents.status();
    content = contents->front();
  }
  const auto claim = Parse<internal::Claim>(*content);
  if (!claim) return std::nullopt;
  return BuildClaim{claim->node(), claim->beat(), StateOf(*claim)};
}

absl::Status BuildClaims::Write(const Digest& key, uint64_t beat, ClaimState state, const Limits& limits) {
  internal::Claim claim;
  claim.set_node(node_);
  claim.set_beat(beat);
  claim.set_state(static_cast<internal::Claim::State>(state));
  ResultAddress address = MakeAddress(kClaimFile, key);
  const Blob content = BlobOf(claim.SerializeAsString());
  address.blobs.push_back(content);
  KERNIX_RETURN_IF_ERROR(upstream_.Write(address.blobs, limits));
  return upstream_.PutResult(address.action, {{kClaimFile, content.digest}}, limits);
}

}  // namespace kernix::remote
