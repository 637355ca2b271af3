// SPDX-License-Identifier: Apache-2.0
#include "client/connection/daemon_client.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "client/connection/connector.h"
#include "client/connection/daemon_process.h"
#include "client/connection/grpc_call.h"
#include "client/connection/load_runner.h"
#include "client/connection/quick_lookup.h"
#include "client/tools/environment.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/folders.h"
#include "common/os/private_directory.h"
#include "common/wire/call_status.h"

namespace kernix {
namespace {

using std::chrono::milliseconds;

// How long to wait for a daemon that drains with its own timeout: longer than its default.
constexpr milliseconds kDefaultDrain{30'000};
constexpr milliseconds kDrainMargin{5'000};

// How long a daemon that runs may take to say so.
constexpr milliseconds kAnswerPatience{5'000};

// How long a daemon may take to notice a signal, if it does not hang: one that ends takes none while it writes what
// it has.
constexpr milliseconds kSignalPatience{30'000};

std::atomic<uint64_t> cache_removals = 0;

void IgnoreWarning(std::string_view) {}

bool AwaitGone(const DaemonWatch& watch, milliseconds timeout) {
  const MonotonicTime deadline = std::chrono::steady_clock::now() + timeout;
  for (milliseconds pause{1}; !watch.Gone(); pause = std::min(2 * pause, milliseconds(20))) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

// --- Artifacts -------------------------------------------------------------------------------------------------------

constexpr mode_t kWritableByOthers = 0022;

absl::StatusOr<std::string> GuardedFolder(const ClientEnvironment& environment, const std::string& folder,
                                          uid_t owner) {
  if (!IsTrustedUser(owner, environment.uid)) {
    return absl::PermissionDeniedError(StrCat("will not run files in ", folder, ": it belongs to ", DescribeUser(owner),
                                              ", and would run as ", DescribeUser(environment.uid)));
  }
  return GuardedRealPath(*environment.env, folder, {owner, environment.uid});
}

absl::StatusOr<std::string> ReadStream(GrpcCall& call, uint64_t size) {
  std::string content;
  v1::ArtifactChunk chunk;
  while (call.Read(chunk)) {
    if (content.size() + chunk.data().size() > size)
      return absl::OutOfRangeError("the daemon sent more bytes than it announced");
    content += chunk.data();
  }
  return content;
}

// The path of this user's copy of `digest`, which need not exist yet.
absl::StatusOr<std::string> FetchedArtifactPath(const ClientEnvironment& environment, const Digest& digest) {
  KERNIX_ASSIGN_OR_RETURN(const std::string store,
                          DefaultStoreDirectory(*environment.env, environment.get_env, environment.uid));
  return JoinPath(JoinPath(store, "fetched"), digest.Hex() + ".so");
}

// Creates a folder for copies. RESOURCE, with the owner's name, if another user could put a file there, because this
// process runs the files in it.
absl::Status EnsureFetchedFolder(const ClientEnvironment& environment, const std::string& folder) {
  const absl::Status status = EnsureOwnDirectory(*environment.env, folder, environment.uid);
  if (status.ok()) return status;
  return MakeError(v1::ErrorDetail::RESOURCE, StrCat("an artifact cannot be kept in ", folder, ": ", Sentence(status),
                                                     " To keep it elsewhere, set KERNIX_CACHE_DIR."));
}

// NOT_FOUND if the daemon no longer has it, and INTERNAL if the daemon sends other content.
absl::StatusOr<std::string> DownloadArtifact(const Session& session, const Digest& digest, uint64_t size,
                                             Caller& caller) {
  GrpcCall call(*session.connection, "FetchArtifact", std::nullopt, caller);
  v1::FetchArtifactRequest request;
  request.set_artifact_digest(digest.Raw());
  call.Write(request, /*last=*/true);
  const absl::StatusOr<std::string> content = ReadStream(call, size);
  if (content.ok()) KERNIX_RETURN_IF_ERROR(FromCallStatus(call.status(), session.peer));
  if (content.ok() && DigestOf(*content) == digest) return content;
  return MakeError(v1::ErrorDetail::INTERNAL,
                   StrCat(session.peer, " sent other content than the artifact ", digest.Hex()));
}

// --- The client ------------------------------------------------------------------------------------------------------

// Has no lock, so that a forked child can continue to use it.
class ConnectedClient : public DaemonClient {
 public:
  ConnectedClient(ClientEnvironment environment, ClientOptions options, Endpoint endpoint)
      : connector_(std::move(environment), std::move(options)), endpoint_(std::move(endpoint)) {}

  const ClientOptions& options() const override { return connector_.options(); }

  absl::StatusOr<DaemonInfo> Info(bool start) override {
    v1::GetInfoResponse response;
    std::string socket;
    const milliseconds timeout =
        start ? options().call_timeout : std::min<milliseconds>(options().call_timeout, kAnswerPatience);
    KERNIX_RETURN_IF_ERROR(WithSession(start, [&](const Session& session, Caller& caller) {
      socket = session.socket;
      return CallOnce(*session.connection, session.peer, "GetInfo", v1::GetInfoRequest(), response, timeout, caller);
    }));
    return DaemonInfo{.address = StrCat("unix:", socket),
                      .version = response.version(),
                      .build_id = response.build_id(),
                      .pid = response.pid(),
                      .uptime_ms = response.uptime_ms(),
                      .store_directory = response.store_directory(),
                      .read_stores = {response.read_store().begin(), response.read_store().end()},
                      .unwritable_store = response.unwritable_store(),
                      .shared = response.shared(),
                      .draining = response.draining(),
                      .running_jobs = response.running_jobs(),
                      .queued_jobs = response.queued_jobs()};
  }

  absl::Status Shutdown(milliseconds drain_timeout) override {
    const absl::StatusOr<DaemonInfo> info = Info(/*start=*/false);
    // Nobody may be able to connect, because the socket is gone; or the daemon hangs.
    const std::optional<pid_t> holder = info.ok() ? std::nullopt : HolderOf(connector_.environment(), endpoint_);
    if (!info.ok() && !holder) return info.status();
    const pid_t pid = holder ? *holder : static_cast<pid_t>(info->pid);
    const DaemonWatch watch(connector_.environment(), endpoint_, pid);
    KERNIX_RETURN_IF_ERROR(holder ? watch.Terminate() : AskToStop(drain_timeout));
    if (holder && !AwaitGone(watch, kSignalPatience)) watch.KillIfDeaf();
    const milliseconds drain = drain_timeout.count() > 0 ? drain_timeout : kDefaultDrain;
    if (AwaitGone(watch, drain + kDrainMargin)) return absl::OkStatus();
    const std::string where = holder ? StrCat("with the store ", endpoint_.store_directory) : "at " + info->address;
    return absl::DeadlineExceededError(StrCat("kernixd (process ", pid, ") ", where, " still runs after ",
                                              (drain + kDrainMargin).count(), " ms: kill that process if it hangs"));
  }

  absl::Status Call(std::string_view method, const google::protobuf::MessageLite& request, bool start,
                    google::protobuf::MessageLite& response) override {
    if (!start) KERNIX_RETURN_IF_ERROR(Info(/*start=*/false).status());  // a daemon that hangs is named in seconds
    absl::Status status = WithSession(start, [&](const Session& session, Caller& caller) {
      return CallOnce(*session.connection, session.peer, method, request, response, options().call_timeout, caller);
    });
    if (method == "PurgeCache") ++cache_removals;  // even if it failed: it may have begun
    return status;
  }

  void AnnounceLoad() override {
    if (endpoint_.warning.empty() && endpoint_.unusable.ok()) AnnounceLookup(connector_.environment(), endpoint_);
  }

  absl::StatusOr<v1::LoadResult> SendLoad(const v1::LoadRequest& request, const BlobProvider& blobs,
                                          const LoadCallbacks& callbacks) override {
    if (auto hit = LookUp(request)) return *std::move(hit);
    return RunLoad(connector_, endpoint_, request, blobs, callbacks);
  }

  // If this process cannot open the artifact, or may not run it at its place, fetches a copy.
  absl::StatusOr<std::string> LocalArtifact(const v1::LoadResult& result) override {
    const ClientEnvironment& environment = connector_.environment();
    absl::StatusOr<std::string> in_store = CheckArtifact(environment, result.artifact_path(), result.artifact_size());
    if (in_store.ok()) return in_store;
    KERNIX_ASSIGN_OR_RETURN(const Digest digest, Digest::FromRaw(result.artifact_digest()));
    KERNIX_ASSIGN_OR_RETURN(const std::string path, FetchedArtifactPath(environment, digest));
    KERNIX_RETURN_IF_ERROR(EnsureFetchedFolder(environment, Dirname(path)));
    absl::StatusOr<std::string> present = CheckArtifact(environment, path, result.artifact_size());
    if (present.ok()) return present;

    std::string content;
    KERNIX_RETURN_IF_ERROR(WithSession(/*start=*/true, [&](const Session& session, Caller& caller) -> absl::Status {
      KERNIX_ASSIGN_OR_RETURN(content, DownloadArtifact(session, digest, result.artifact_size(), caller));
      return absl::OkStatus();
    }));
    KERNIX_RETURN_IF_ERROR(environment.env->WriteFileDurably(path, content, 0600));
    return CheckArtifact(environment, path, result.artifact_size());
  }

  absl::StatusOr<std::string> OwnFolder(const std::string& name) override {
    const ClientEnvironment& environment = connector_.environment();
    std::string store = endpoint_.store_directory;
    if (store.empty()) {
      KERNIX_ASSIGN_OR_RETURN(store, DefaultStoreDirectory(*environment.env, environment.get_env, environment.uid));
    }
    return JoinPath(store, name);
  }

 private:
  // Calls `attempt(session, caller)`. Repeats it while the daemon is too busy, and once if the daemon was lost.
  // `attempt` returns an absl::Status.
  template <typename Attempt>
  absl::Status WithSession(bool start, Attempt attempt) {
    Endpoint endpoint = endpoint_;
    const MonotonicTime deadline = std::chrono::steady_clock::now() + options().call_timeout;
    const Connector::Need need = start ? Connector::Need::kFit : Connector::Need::kAnyDaemon;
    bool lost_before = false;
    while (true) {
      Caller caller;
      const absl::StatusOr<Session> session = connector_.Open(endpoint, need, caller, IgnoreWarning);
      const absl::Status status = session.ok() ? attempt(*session, caller) : session.status();
      if (status.ok()) return status;
      const milliseconds pause = RetryAfter(status);
      if (pause.count() > 0 && std::chrono::steady_clock::now() + pause < deadline) {
        caller.Pause(pause);
        continue;
      }
      if (!DaemonWasLost(status) || std::exchange(lost_before, true)) return status;
      connector_.Distrust();
    }
  }

  // Returns at once; the daemon ends later.
  absl::Status AskToStop(milliseconds drain_timeout) {
    v1::ShutdownRequest request;
    request.set_drain_timeout_ms(drain_timeout.count());
    request.set_reason("a client asked for it");
    return Ask<v1::ShutdownResponse>("Shutdown", request).status();
  }

  // Most loads are hits, and a lookup is enough for them. It is not enough if the user wants to see commands, if there
  // is a warning, or if the request forces a build.
  std::optional<v1::LoadResult> LookUp(const v1::LoadRequest& request) {
    const bool has_to_tell = request.verbose() || !endpoint_.warning.empty();
    if (has_to_tell || request.force_rebuild() || !endpoint_.unusable.ok()) return std::nullopt;
    return LookUpQuickly(connector_.environment(), endpoint_, request);
  }

  Connector connector_;
  const Endpoint endpoint_;
};

}  // namespace

uint64_t CacheRemovals() { return cache_removals; }

absl::StatusOr<std::string> CheckArtifact(const ClientEnvironment& environment, const std::string& path,
                                          uint64_t size) {
  if (!path.starts_with('/')) return absl::NotFoundError(StrCat("\"", path, "\" is not a path on this machine"));
  KERNIX_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, environment.env->OpenFile(path));
  KERNIX_ASSIGN_OR_RETURN(const FileInfo info, file->Stat());
  if (info.size != size) return absl::NotFoundError(StrCat(path, " is not the artifact: it has another size"));
  if ((info.mode & kWritableByOthers) != 0) {
    return absl::PermissionDeniedError(StrCat("will not run ", path, ": users other than its owner may write to it"));
  }
  KERNIX_ASSIGN_OR_RETURN(const std::string folder, GuardedFolder(environment, Dirname(path), info.uid));
  return JoinPath(folder, Basename(path));
}

absl::StatusOr<v1::BuildTrace> DaemonClient::Trace(const std::string& key, bool start) {
  KERNIX_ASSIGN_OR_RETURN(const Digest digest, Digest::FromHex(key));
  v1::GetTraceRequest request;
  request.set_key(digest.Raw());
  KERNIX_ASSIGN_OR_RETURN(auto response, Ask<v1::GetTraceResponse>("GetTrace", request, start));
  return std::move(*response.mutable_trace());
}

absl::StatusOr<std::unique_ptr<Client>> Client::Create(ClientOptions options) {
  ClientEnvironment environment;
  environment.get_env = GetEnvOf(ProcessVariables());  // a snapshot: other threads may change it during later calls
  return DaemonClient::Create(std::move(environment), std::move(options));
}

absl::StatusOr<std::unique_ptr<DaemonClient>> DaemonClient::Create(ClientEnvironment environment,
                                                                   ClientOptions options) {
  KERNIX_ASSIGN_OR_RETURN(Endpoint endpoint, ResolveEndpoint(environment, options));
  return std::make_unique<ConnectedClient>(std::move(environment), std::move(options), std::move(endpoint));
}

}  // namespace kernix
