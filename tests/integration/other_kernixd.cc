// SPDX-License-Identifier: Apache-2.0
//
// A daemon of another build: answers GetInfo so, sends wrong artifacts, and stops when it is asked to.
//
//   other_kernixd SOCKET LOCK PROTOCOL_VERSION
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>

#include "common/os/env.h"
#include "kernix/v1/kernix.grpc.pb.h"

namespace {

class OtherBuild final : public kernix::v1::Kernix::Service {
 public:
  explicit OtherBuild(int protocol_version) : protocol_version_(protocol_version) {}

  grpc::Status GetInfo(grpc::ServerContext*, const kernix::v1::GetInfoRequest*,
                       kernix::v1::GetInfoResponse* response) override {
    response->set_version("9.9.9");
    response->set_build_id("other");
    response->set_protocol_version(protocol_version_);
    response->set_pid(getpid());
    return grpc::Status::OK;
  }

  grpc::Status GetCacheStats(grpc::ServerContext*, const kernix::v1::GetCacheStatsRequest*,
                             kernix::v1::GetCacheStatsResponse* response) override {
    response->set_builds(42);
    return grpc::Status::OK;
  }

  // Whatever it is asked for.
  grpc::Status FetchArtifact(grpc::ServerContext*, const kernix::v1::FetchArtifactRequest*,
                             grpc::ServerWriter<kernix::v1::ArtifactChunk>* writer) override {
    kernix::v1::ArtifactChunk chunk;
    chunk.set_data("not that one");
    writer->Write(chunk);
    return grpc::Status::OK;
  }

  grpc::Status Shutdown(grpc::ServerContext*, const kernix::v1::ShutdownRequest*,
                        kernix::v1::ShutdownResponse*) override {
    stop_.set_value();
    return grpc::Status::OK;
  }

  void AwaitStop() { stop_.get_future().wait(); }

 private:
  const int protocol_version_;
  std::promise<void> stop_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  alarm(300);
  const auto lock = kernix::Env::Posix().TryLockFile(argv[2]);
  if (!lock.ok()) return 4;
  OtherBuild service(atoi(argv[3]));
  grpc::ServerBuilder builder;
  builder.AddListeningPort(std::string("unix:") + argv[1], grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  printf("ready\n");
  fflush(stdout);
  service.AwaitStop();
  server->Shutdown();
  unlink(argv[1]);
  return 0;
}
