// SPDX-License-Identifier: Apache-2.0
//
// For tests: concise calls to a daemon.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/os/unique_fd.h"
#include "kernix/v1/kernix.grpc.pb.h"

namespace kernix::server {

// The result of one Load.
struct LoadOutcome {
  std::optional<v1::LoadResult> result;
  std::optional<v1::ErrorDetail> failure;
  std::vector<v1::Output> outputs;
  grpc::Status status;
};

// A Load in progress.
class LoadStream {
 public:
  explicit LoadStream(v1::Kernix::Stub& stub);
  ~LoadStream();  // cancels it unless it has ended
  LoadStream(const LoadStream&) = delete;
  LoadStream& operator=(const LoadStream&) = delete;

  void Send(const v1::LoadRequest& request);
  void SendBlob(const std::string& content);
  // Sends the first `bytes` of the content and announces more. Returns false if the call has ended.
  bool SendPiece(const std::string& content, size_t bytes);
  void HalfClose();
  void Cancel();

  // The next event other than progress; nullopt at the end.
  std::optional<v1::LoadEvent> Next();

  // Reads until the end.
  LoadOutcome Finish();

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::LoadClientMessage, v1::LoadEvent>> stream_;
  bool over_ = false;
};

// A FetchArtifact in progress, read as slowly as a test likes.
class FetchStream {
 public:
  FetchStream(v1::Kernix::Stub& stub, const std::string& digest);
  ~FetchStream();  // cancels it unless it has ended
  FetchStream(const FetchStream&) = delete;
  FetchStream& operator=(const FetchStream&) = delete;

  // The next chunk; nullopt at the end.
  std::optional<std::string> Next();

  // Drops the remaining chunks.
  grpc::Status Finish();

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::ArtifactChunk>> stream_;
  bool over_ = false;
};

class TestClient {
 public:
  explicit TestClient(const std::string& socket);
  // Uses a connected socket.
  explicit TestClient(UniqueFd connected);

  v1::Kernix::Stub& stub() { return *stub_; }

  absl::StatusOr<v1::GetInfoResponse> Info();
  absl::StatusOr<v1::GetCacheStatsResponse> Stats();
  LoadOutcome Load(const v1::LoadRequest& request);
  absl::StatusOr<std::string> Fetch(const std::string& digest);
  // Returns how many entries it removed.
  absl::StatusOr<uint64_t> Purge(const std::string& name);

  // Until then, the daemon writes to its store, and uses a processor.
  void AwaitEndOfLearning();

  // Calls a method without a stub: sends `request`, reads one message, and returns it raw.
  absl::StatusOr<std::string> CallRaw(const std::string& method, const std::string& request);

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Kernix::Stub> stub_;
};

// A C++ kernel that adds `addend`, to be built with this machine's g++.
v1::LoadRequest AddKernel(int addend);

}  // namespace kernix::server
