// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_client.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/digest.h"
#include "common/base/strings.h"
#include "common/wire/grpc_status.h"
#include "tests/support/await.h"

namespace kernix::server {
namespace {

// The deadline of every call, later than a call takes on any machine.
std::chrono::system_clock::time_point Deadline() { return std::chrono::system_clock::now() + std::chrono::minutes(2); }

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  // Each client has its own connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

template <typename Response, typename Request>
absl::StatusOr<Response> Unary(v1::Kernix::Stub& stub,
                               grpc::Status (v1::Kernix::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                        Response*)) {
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  Response response;
  const grpc::Status status = (stub.*method)(&context, Request(), &response);
  if (!status.ok()) return FromGrpcStatus(status, "kernixd");
  return response;
}

std::string Text(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!buffer.Dump(&slices).ok()) return text;
  for (const grpc::Slice& slice : slices) text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

}  // namespace

LoadStream::LoadStream(v1::Kernix::Stub& stub) {
  context_.set_deadline(Deadline());
  stream_ = stub.Load(&context_);
}

LoadStream::~LoadStream() {
  if (over_) return;
  Cancel();
  Finish();
}

void LoadStream::Send(const v1::LoadRequest& request) {
  v1::LoadClientMessage message;
  *message.mutable_request() = request;
  stream_->Write(message);
}

void LoadStream::SendBlob(const std::string& content) {
  v1::LoadClientMessage message;
  message.mutable_blob()->set_digest(DigestOf(content).Raw());
  message.mutable_blob()->set_chunk(content);
  message.mutable_blob()->set_last(true);
  stream_->Write(message);
}

bool LoadStream::SendPiece(const std::string& content, size_t bytes) {
  v1::LoadClientMessage message;
  message.mutable_blob()->set_digest(DigestOf(content).Raw());
  message.mutable_blob()->set_chunk(content.substr(0, bytes));
  return stream_->Write(message);
}

void LoadStream::HalfClose() { stream_->WritesDone(); }

void LoadStream::Cancel() { context_.TryCancel(); }

std::optional<v1::LoadEvent> LoadStream::Next() {
  v1::LoadEvent event;
  while (stream_->Read(&event)) {
    if (!event.has_progress()) return event;
  }
  return std::nullopt;
}

LoadOutcome LoadStream::Finish() {
  LoadOutcome outcome;
  while (std::optional<v1::LoadEvent> event = Next()) {
    if (event->has_result()) outcome.result = event->result();
    if (event->has_failure()) outcome.failure = event->failure();
    if (event->has_output()) outcome.outputs.push_back(event->output());
  }
  outcome.status = stream_->Finish();
  over_ = true;
  return outcome;
}

FetchStream::FetchStream(v1::Kernix::Stub& stub, const std::string& digest) {
  context_.set_deadline(Deadline());
  v1::FetchArtifactRequest request;
  request.set_artifact_digest(digest);
  stream_ = stub.FetchArtifact(&context_, request);
}

FetchStream::~FetchStream() {
  if (over_) return;
  context_.TryCancel();
  Finish();
}

std::optional<std::string> FetchStream::Next() {
  v1::ArtifactChunk chunk;
  if (!stream_->Read(&chunk)) return std::nullopt;
  return chunk.data();
}

grpc::Status FetchStream::Finish() {
  while (Next()) {
  }
  over_ = true;
  return stream_->Finish();
}

TestClient::TestClient(const std::string& socket)
    : channel_(grpc::CreateCustomChannel(StrCat("unix:", socket), grpc::InsecureChannelCredentials(), Arguments())),
      stub_(v1::Kernix::NewStub(channel_)) {}

TestClient::TestClient(UniqueFd connected)
    : channel_(grpc::CreateCustomInsecureChannelFromFd("localhost", connected.release(), Arguments())),
      stub_(v1::Kernix::NewStub(channel_)) {}

absl::StatusOr<v1::GetInfoResponse> TestClient::Info() { return Unary(*stub_, &v1::Kernix::Stub::GetInfo); }

absl::StatusOr<v1::GetCacheStatsResponse> TestClient::Stats() {
  return Unary(*stub_, &v1::Kernix::Stub::GetCacheStats);
}

void TestClient::AwaitEndOfLearning() {
  Await("the end of all learning", [this] {
    const auto metrics = Unary(*stub_, &v1::Kernix::Stub::GetMetrics);
    EXPECT_TRUE(metrics.ok()) << metrics.status();
    return !metrics.ok() || absl::StrContains(metrics->text(), "\nkernix_lessons 0\n");
  });
}

LoadOutcome TestClient::Load(const v1::LoadRequest& request) {
  LoadStream stream(*stub_);
  stream.Send(request);
  return stream.Finish();
}

absl::StatusOr<std::string> TestClient::Fetch(const std::string& digest) {
  FetchStream stream(*stub_, digest);
  std::string content;
  while (const std::optional<std::string> chunk = stream.Next()) content += *chunk;
  const grpc::Status status = stream.Finish();
  if (!status.ok()) return FromGrpcStatus(status, "kernixd");
  return content;
}

absl::StatusOr<uint64_t> TestClient::Purge(const std::string& name) {
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  v1::PurgeCacheRequest request;
  request.set_name(name);
  v1::PurgeCacheResponse purged;
  const grpc::Status status = stub_->PurgeCache(&context, request, &purged);
  if (!status.ok()) return FromGrpcStatus(status, "kernixd");
  return purged.removed_entries();
}

absl::StatusOr<std::string> TestClient::CallRaw(const std::string& method, const std::string& request) {
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  grpc::CompletionQueue queue;
  grpc::GenericStub generic(channel_);
  const auto call = generic.PrepareCall(&context, method, &queue);
  const auto await = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const grpc::Slice slice(request);
  grpc::ByteBuffer response;
  grpc::Status status;
  call->StartCall(nullptr);
  await();
  call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
  await();
  call->Read(&response, nullptr);
  const bool answered = await();
  call->Finish(&status, nullptr);
  await();
  if (!answered) return FromGrpcStatus(status, "kernixd");
  return Text(response);
}

v1::LoadRequest AddKernel(int addend) {
  v1::LoadRequest request;
  request.set_name("adder");
  request.set_language(v1::LANGUAGE_CPP);
  v1::Source& source = *request.add_source();
  source.set_label("adder.cpp");
  source.set_text(StrCat(R"(#include "brainevent/common.h"
void add(const BE::Tensor in, BE::Tensor out) {
  for (int64_t i = 0; i < in.numel(); ++i) {
    static_cast<float*>(out.data_ptr())[i] = static_cast<const float*>(in.data_ptr())[i] + )",
                         addend, ";\n  }\n}\n"));
  v1::Function& function = *request.mutable_functions()->add_function();
  function.set_name("add");
  function.add_tokens("arg");
  function.add_tokens("ret");
  request.mutable_options()->set_optimization_level(1);
  request.mutable_toolchain()->set_host_compiler("/usr/bin/g++");
  return request;
}

}  // namespace kernix::server
