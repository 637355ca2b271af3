// SPDX-License-Identifier: Apache-2.0
//
// The implementation of Client and DaemonClient.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/connection/connector.h"
#include "client/connection/daemon_client.h"

namespace kernix {

class ConnectedClient : public DaemonClient {
 public:
  // Like Client::Create(), in an environment of the caller's choice.
  static absl::StatusOr<std::unique_ptr<DaemonClient>> Create(ClientEnvironment environment, ClientOptions options);

  absl::StatusOr<DaemonInfo> Info(bool start) override;
  absl::StatusOr<CacheStats> Stats(bool start) override;
  absl::StatusOr<std::vector<CacheEntryInfo>> List(const std::string& name, bool start) override;
  absl::StatusOr<std::vector<CacheEntryDetail>> Show(const std::string& key_prefix) override;
  absl::StatusOr<BuildTrace> Trace(const std::string& key, bool start) override;
  absl::StatusOr<PurgeResult> Purge(const PurgeFilter& filter, bool start) override;
  absl::StatusOr<DaemonActivity> Activity() override;
  absl::StatusOr<ReloadResult> Reload() override;
  absl::StatusOr<std::string> Metrics() override;
  absl::Status Shutdown(std::chrono::milliseconds drain_timeout) override;
  const ClientOptions& options() const override { return connector_.options(); }

  void AnnounceLoad() override;
  absl::StatusOr<v1::LoadResult> SendLoad(const v1::LoadRequest& request, const BlobProvider& blobs,
                                          const LoadCallbacks& callbacks) override;
  absl::StatusOr<std::string> LocalArtifact(const v1::LoadResult& result) override;
  absl::StatusOr<std::string> HeaderFolder() override;

 private:
  ConnectedClient(ClientEnvironment environment, ClientOptions options, Endpoint endpoint)
      : connector_(std::move(environment), std::move(options)), endpoint_(std::move(endpoint)) {}

  // Returns at once; the daemon ends later.
  absl::Status AskToStop(std::chrono::milliseconds drain_timeout);

  std::optional<v1::LoadResult> LookUp(const v1::LoadRequest& request);

  // Calls `attempt(session, caller)`. Repeats it while the daemon is too busy, and once if the daemon was lost.
  // `attempt` returns an absl::Status.
  template <typename Attempt>
  absl::Status WithSession(bool start, Attempt attempt);

  // One call with one response, made in this way.
  template <typename Response>
  absl::StatusOr<Response> Call(std::string_view method, const google::protobuf::MessageLite& request, bool start);

  // Has no lock, so that a forked child can continue to use it.
  Connector connector_;
  const Endpoint endpoint_;
};

}  // namespace kernix
