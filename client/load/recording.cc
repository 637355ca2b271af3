// SPDX-License-Identifier: Apache-2.0
#include "client/load/recording.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string_view>
#include <tuple>
#include <utility>

#include "client/load/load_request.h"
#include "client/tools/environment.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

// Writes a file that appears with its whole content, unless it is there.
absl::Status Add(Env& env, const std::string& path, std::string_view content) {
  if (env.Stat(path).ok()) return absl::OkStatus();
  static std::atomic<int> next = 0;
  const std::string temporary = StrCat(path, ".", getpid(), ".", next++);
  KERNIX_RETURN_IF_ERROR(env.WriteFile(temporary, content, 0600));
  return env.Rename(temporary, path);
}

std::string TextPath(const std::string& folder, const Digest& digest) {
  return JoinPath(folder, StrCat(digest.Hex(), kTextSuffix));
}

absl::Status AddHeaders(Env& env, const std::string& folder, const PreparedLoad& load) {
  for (const v1::Header& header : load.request.header()) {
    KERNIX_ASSIGN_OR_RETURN(const Digest digest, Digest::FromRaw(header.digest()));
    const std::string path = TextPath(folder, digest);
    if (env.Stat(path).ok()) continue;
    KERNIX_ASSIGN_OR_RETURN(const std::string text, load.headers.Read(env, digest));
    KERNIX_RETURN_IF_ERROR(Add(env, path, text));
  }
  return absl::OkStatus();
}

// Clears the fields that another machine decides by itself, and those that do not affect the artifact.
void ForgetAsker(v1::LoadRequest& request) {
  request.clear_toolchain();
  request.clear_force_rebuild();
  request.clear_verbose();
  request.clear_max_parallel_jobs();
  request.clear_batch();
  request.clear_only_cached();
  request.clear_frozen();
}

absl::Status AddTexts(Env& env, const std::string& folder, const PreparedLoad& load, const v1::RecordedLoad& noted) {
  for (int i = 0; i < noted.source_digest_size(); ++i) {
    KERNIX_ASSIGN_OR_RETURN(const Digest digest, Digest::FromRaw(noted.source_digest(i)));
    KERNIX_RETURN_IF_ERROR(Add(env, TextPath(folder, digest), load.request.source(i).text()));
  }
  return AddHeaders(env, folder, load);
}

v1::RecordedLoad RecordWithKey(const PreparedLoad& load, const std::string& key) {
  v1::RecordedLoad noted = RecordOf(load);
  noted.set_key(key);
  return noted;
}

// Texts first: a reader that finds a load finds its texts, too.
absl::Status NoteAs(Env& env, const std::string& path, const PreparedLoad& load, const v1::RecordedLoad& noted) {
  KERNIX_RETURN_IF_ERROR(AddTexts(env, Dirname(path), load, noted));
  return Add(env, path, noted.SerializeAsString());
}

// Removes a text that is not whole, as after a power cut: then the next load that has it adds it again.
absl::StatusOr<std::string> ReadText(Env& env, const std::string& folder, const Digest& digest) {
  const std::string path = TextPath(folder, digest);
  KERNIX_ASSIGN_OR_RETURN(std::string text, env.ReadFile(path));
  if (DigestOf(text) == digest) return text;
  (void)env.RemoveFile(path);
  return absl::InternalError(StrCat(path, " has another content than its name says"));
}

bool ComesFirst(const v1::RecordedLoad& a, const v1::RecordedLoad& b) {
  return std::tuple(a.request().name(), a.key(), a.SerializeAsString()) <
         std::tuple(b.request().name(), b.key(), b.SerializeAsString());
}

}  // namespace

v1::RecordedLoad RecordOf(const PreparedLoad& load) {
  v1::RecordedLoad record;
  record.set_architecture_of_machine(load.architecture_of_machine);
  record.set_host_compiler(load.host_compiler);
  *record.mutable_absolute_header() = {load.headers.absolute_headers.begin(), load.headers.absolute_headers.end()};
  *record.mutable_request() = load.request;
  ForgetAsker(*record.mutable_request());
  for (v1::Source& source : *record.mutable_request()->mutable_source()) {
    record.add_source_digest(DigestOf(source.text()).Raw());
    source.clear_text();
  }
  return record;
}

absl::Status NoteLoad(Env& env, const std::string& folder, const PreparedLoad& load, const std::string& key) {
  const v1::RecordedLoad noted = RecordWithKey(load, key);
  const std::string name = DigestOf(noted.SerializeAsString()).Hex();
  return NoteAs(env, JoinPath(folder, StrCat(name, kLoadSuffix)), load, noted);
}

absl::Status NoteLoadAs(Env& env, const std::string& path, const PreparedLoad& load, const std::string& key) {
  return NoteAs(env, path, load, RecordWithKey(load, key));
}

absl::StatusOr<v1::RecordedLoad> ParseLoad(Env& env, const std::string& path) {
  KERNIX_ASSIGN_OR_RETURN(const std::string content, env.ReadFile(path));
  v1::RecordedLoad load;
  if (load.ParseFromString(content)) return load;
  return absl::InternalError(StrCat(path, " is no recorded load"));
}

absl::Status ReadLoad(Env& env, const std::string& path, Recording& recording) {
  KERNIX_ASSIGN_OR_RETURN(v1::RecordedLoad load, ParseLoad(env, path));
  KERNIX_ASSIGN_OR_RETURN(const std::vector<Digest> digests, TextsOf(load));
  for (const Digest& digest : digests) {
    if (recording.texts.contains(digest)) continue;
    KERNIX_ASSIGN_OR_RETURN(recording.texts[digest], ReadText(env, Dirname(path), digest));
  }
  recording.loads.push_back(std::move(load));
  return absl::OkStatus();
}

absl::StatusOr<Recording> ReadRecording(Env& env, const std::string& folder) {
  Recording recording;
  KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> names, env.ListDirectory(folder));
  for (const std::string& name : names) {
    if (name.ends_with(kLoadSuffix)) KERNIX_RETURN_IF_ERROR(ReadLoad(env, JoinPath(folder, name), recording));
  }
  std::sort(recording.loads.begin(), recording.loads.end(), ComesFirst);
  return recording;
}

absl::StatusOr<RecordingFolder> RecordingFolder::Make() {
  const std::string parent = AbsolutePath(ProcessGetEnv("TMPDIR").value_or("/tmp"));
  KERNIX_ASSIGN_OR_RETURN(std::string path, Env::Posix().CreateTempDirectory(JoinPath(parent, "kernix-record-")));
  return RecordingFolder(std::move(path));
}

RecordingFolder::~RecordingFolder() {
  if (!path_.empty()) (void)Env::Posix().RemoveTree(path_);
}

std::vector<std::string> RecordingFolder::Environment(const std::string& more) const {
  std::vector<std::string> variables = ProcessVariables();
  for (const std::string& variable : {StrCat(kRecordVariable, "=", path_), more}) {
    const std::string beginning = variable.substr(0, variable.find('=') + 1);
    if (beginning.empty()) continue;
    std::erase_if(variables, [&](const std::string& other) { return other.starts_with(beginning); });
    variables.push_back(variable);
  }
  return variables;
}

absl::StatusOr<std::vector<Digest>> TextsOf(const v1::RecordedLoad& load) {
  if (load.source_digest_size() != load.request().source_size()) {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST, "each source of a recorded load needs a digest");
  }
  std::vector<Digest> digests;
  const auto add = [&digests](const std::string& raw) -> absl::Status {
    const absl::StatusOr<Digest> digest = Digest::FromRaw(raw);
    if (!digest.ok()) return MakeError(v1::ErrorDetail::INVALID_REQUEST, ToStd(digest.status().message()));
    digests.push_back(*digest);
    return absl::OkStatus();
  };
  for (const std::string& raw : load.source_digest()) KERNIX_RETURN_IF_ERROR(add(raw));
  for (const v1::Header& header : load.request().header()) KERNIX_RETURN_IF_ERROR(add(header.digest()));
  return digests;
}

absl::StatusOr<v1::LoadResult> LoadRecorded(DaemonClient& daemon, const Recording& recording,
                                            const v1::RecordedLoad& load, const LoadOptions& options) {
  const GetEnv get_env = GetEnvOf(options.environment ? *options.environment : ProcessVariables());
  KERNIX_ASSIGN_OR_RETURN(const LoadPolicy policy, PolicyOf(options, get_env));
  const LoadSurroundings surroundings{.env = Env::Posix(),
                                      .get_env = get_env,
                                      .site_packages = daemon.options().site_packages,
                                      .header_folder = nullptr};
  KERNIX_ASSIGN_OR_RETURN(RequestToSend here, RequestHere(surroundings, load));
  KERNIX_RETURN_IF_ERROR(WrongTools(here.no_tools));
  v1::LoadRequest& request = here.request;
  request.set_batch(true);
  request.set_only_cached(policy == LoadPolicy::kCached);
  KERNIX_ASSIGN_OR_RETURN(const std::vector<Digest> digests, TextsOf(load));
  for (int i = 0; i < request.source_size(); ++i) {
    request.mutable_source(i)->set_text(recording.texts.at(digests[static_cast<size_t>(i)]));
  }
  const BlobProvider texts = [&](const Digest& digest) -> absl::StatusOr<std::string> {
    const auto text = recording.texts.find(digest);
    if (text != recording.texts.end()) return text->second;
    return absl::NotFoundError(StrCat("the daemon asks for ", digest.Hex(), ", which this load has not named"));
  };
  absl::StatusOr<v1::LoadResult> result = daemon.SendLoad(request, texts, options.callbacks);
  if (!result.ok()) return WithoutTools(result.status(), here);
  return result;
}

}  // namespace kernix
