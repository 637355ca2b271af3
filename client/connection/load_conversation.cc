// SPDX-License-Identifier: Apache-2.0
#include "client/connection/load_conversation.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/wire/grpc_status.h"

namespace kernix {
namespace {

// gRPC refuses messages over 4 MiB unless told otherwise.
constexpr size_t kChunkBytes = 1 << 20;

class Conversation {
 public:
  Conversation(v1::Kernix::Stub& stub, LoadMailbox& mailbox, ForkGate::Section& section)
      : mailbox_(mailbox), section_(section) {
    mailbox_.ClearWake();
    section_.OnInterrupt([this] { Break(); });
    stream_ = stub.Load(&context_);
  }
  ~Conversation() { section_.OnInterrupt(nullptr); }
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  // Runs until the daemon closes the stream, whose status also shows whether a write failed.
  grpc::Status Run(const v1::LoadClientMessage& request) {
    stream_->Write(request);
    v1::LoadEvent event;
    while (stream_->Read(&event)) Handle(event);
    return stream_->Finish();
  }

  // The result so far: the daemon's answer, or our own reason to stop. Nullopt if there is neither.
  std::optional<absl::StatusOr<v1::LoadResult>>& answer() { return answer_; }

 private:
  void Break() {
    context_.TryCancel();
    mailbox_.Wake();
  }

  void Handle(v1::LoadEvent& event) {
    switch (event.event_case()) {
      case v1::LoadEvent::kNeedBlobs:
        SendBlobs(event.need_blobs());
        break;
      case v1::LoadEvent::kProgress:
        mailbox_.Push(std::move(*event.mutable_progress()));
        break;
      case v1::LoadEvent::kOutput:
        mailbox_.Push(std::move(*event.mutable_output()));
        break;
      case v1::LoadEvent::kResult:
        answer_ = std::move(*event.mutable_result());
        break;
      case v1::LoadEvent::kFailure:
        answer_ = MakeError(std::move(*event.mutable_failure()));
        break;
      case v1::LoadEvent::EVENT_NOT_SET:
        break;  // from a newer daemon; safe to ignore
    }
  }

  void SendBlobs(const v1::NeedBlobs& need) {
    for (const std::string& raw : need.digest()) {
      const absl::StatusOr<Digest> digest = Digest::FromRaw(raw);
      if (!digest.ok()) return Fail(digest.status());
      const std::optional<absl::StatusOr<std::string>> content = mailbox_.FetchBlob(*digest);
      if (!content) return;  // interrupted: the call is being cancelled
      if (!content->ok()) return Fail(content->status());
      SendBlob(raw, **content);
    }
  }

  void Fail(const absl::Status& status) {
    answer_ = status;
    context_.TryCancel();
  }

  void SendBlob(const std::string& digest, const std::string& content) {
    size_t sent = 0;
    do {
      v1::LoadClientMessage message;
      v1::Blob& blob = *message.mutable_blob();
      blob.set_digest(digest);
      blob.set_chunk(content.substr(sent, kChunkBytes));
      sent += blob.chunk().size();
      blob.set_last(sent == content.size());
      if (!stream_->Write(message)) return;
    } while (sent < content.size());
  }

  LoadMailbox& mailbox_;
  ForkGate::Section& section_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::LoadClientMessage, v1::LoadEvent>> stream_;
  std::optional<absl::StatusOr<v1::LoadResult>> answer_;
};

// A stopping daemon accepts no new loads, and finally cancels those that are still running.
bool DaemonStops(const absl::Status& answer, const ForkGate::Section& section) {
  if (answer.ok() || section.interrupted()) return false;
  const ErrorKind kind = KindOf(answer);
  return kind == v1::ErrorDetail::UNREACHABLE || kind == v1::ErrorDetail::CANCELLED;
}

}  // namespace

ConversationOutcome ConverseAboutLoad(v1::Kernix::Stub& stub, std::string_view peer,
                                      const v1::LoadClientMessage& request, LoadMailbox& mailbox,
                                      ForkGate::Section& section) {
  Conversation conversation(stub, mailbox, section);
  const grpc::Status status = conversation.Run(request);
  if (conversation.answer()) {
    const bool stops = DaemonStops(conversation.answer()->status(), section);
    return {*std::move(conversation.answer()), stops};
  }
  if (status.ok()) {
    return {MakeError(v1::ErrorDetail::INTERNAL, StrCat(peer, " ended the load without a result")), false};
  }
  return {FromGrpcStatus(status, peer), DaemonWasLost(status)};
}

}  // namespace kernix
