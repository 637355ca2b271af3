// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/error.h"
#include "common/base/exceptions.h"
#include "common/base/log.h"
#include "common/base/output_buffer.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/wire/grpc_status.h"
#include "daemon/rpc/backend.h"
#include "daemon/rpc/blob_receiver.h"
#include "daemon/rpc/kernix_service.h"
#include "daemon/rpc/load_gate.h"
#include "daemon/rpc/service_metrics.h"

namespace kernix::server {
namespace {

absl::Status Invalid(std::string_view message) { return MakeError(v1::ErrorDetail::INVALID_REQUEST, message); }

std::string TooLarge(std::string_view what, uint64_t bytes, uint64_t limit) {
  return StrCat(what, " ", bytes, " bytes, but this kernixd accepts at most ", limit,
                ": raise max_request_bytes in its config (--max-request-bytes, KERNIX_MAX_REQUEST_BYTES)");
}

constexpr std::string_view kRaise =
    "raise max_request_bytes_per_user (--max-request-bytes-per-user, KERNIX_MAX_REQUEST_BYTES_PER_USER)";

// An error quotes the faulty text, which may be most of a request.
std::string BothEnds(const std::string& message) {
  constexpr size_t kLongestMessage = 64 << 10;
  if (message.size() <= kLongestMessage) return message;
  OutputBuffer ends(kLongestMessage);
  ends.Append(message);
  return ToValidUtf8(ends.Text());
}

using HeaderSizes = absl::flat_hash_map<Digest, uint64_t>;

HeaderSizes SizesOf(const v1::LoadRequest& request) {
  HeaderSizes sizes;
  for (const v1::Header& header : request.header()) {
    const absl::StatusOr<Digest> digest = Digest::FromRaw(header.digest());
    if (digest.ok()) sizes[*digest] = header.size();  // else the load will be refused
  }
  return sizes;
}

// The total size of the headers with these digests.
uint64_t UploadBytes(const HeaderSizes& sizes, const std::vector<Digest>& digests) {
  uint64_t bytes = 0;
  for (const Digest& digest : digests) {
    const auto found = sizes.find(digest);
    if (found != sizes.end()) bytes += found->second;
  }
  return bytes;
}

// Reading: the request first, then nothing until headers are requested. Writing: one event at a time, from a queue.
// End: the load's thread queues the last event and sets the status; whichever thread finds the queue empty finishes the
// call. gRPC runs reactions (On...) in threads of its own, never inside the call that started an operation, so
// operations may be started under the lock.
class LoadCall final : public grpc::ServerBidiReactor<v1::LoadClientMessage, v1::LoadEvent>,
                       public build::LoadObserver,
                       public std::enable_shared_from_this<LoadCall> {
 public:
  LoadCall(Backend& backend, IdentityPtr caller)
      : backend_(backend), caller_(std::move(caller)), cancellation_(std::make_shared<Cancellation>()) {}

  void Start() {
    self_ = shared_from_this();
    StartRead(&incoming_);
  }

  // --- gRPC --------------------------------------------------------------------------------------------------------
  void OnReadDone(bool ok) override {
    if (!started_) {
      started_ = true;
      return ok ? Begin() : End(Invalid("a Load begins with a request, and the client sent none"));
    }
    const MutexLock lock(mutex_);
    if (upload_ && !upload_->done) ReceiveBlob(ok);
  }

  void OnWriteDone(bool ok) override {
    const MutexLock lock(mutex_);
    writing_ = false;
    if (!ok) queue_.clear();  // the client is gone
    SendNext();
  }

  void OnCancel() override { cancellation_->Cancel(); }

  void OnDone() override { self_.reset(); }

  // --- build::LoadObserver -----------------------------------------------------------------------------------------
  absl::StatusOr<build::HeaderContents> FetchHeaders(const std::vector<Digest>& digests) override {
    if (digests.empty()) return build::HeaderContents{};
    const uint64_t limit = backend_.options.max_request_bytes;
    const uint64_t bytes = UploadBytes(std::exchange(header_sizes_, {}), digests);
    if (bytes > limit) return Invalid(TooLarge("the headers of this load are", bytes, limit));
    KERNIX_RETURN_IF_ERROR(ReserveUpload(bytes));
    AskFor(digests, bytes);
    const ScopedOnCancel on_cancel(cancellation_.get(), [this] { CancelUpload(); });
    return WaitForUpload(UploadTime(bytes));
  }

  void OnProgress(const v1::Progress& progress) override {
    permit_->Note(progress);
    v1::LoadEvent event;
    *event.mutable_progress() = progress;
    const MutexLock lock(mutex_);
    Send(std::move(event));
  }

  void OnOutput(const v1::Output& output) override {
    v1::LoadEvent event;
    *event.mutable_output() = output;
    const MutexLock lock(mutex_);
    Send(std::move(event));
  }

 private:
  struct Upload {
    Upload(const std::vector<Digest>& digests, uint64_t bytes) : receiver(digests, bytes) {}
    BlobReceiver receiver;
    bool done = false;
    absl::Status status;
  };

  // Handles the request, which has arrived.
  void Begin() {
    // Drops a refused request at once, because clients can be slow to receive the refusal.
    v1::LoadClientMessage first = std::exchange(incoming_, {});
    if (!first.has_request()) return Refuse(std::move(first), Invalid("a Load begins with a request"));
    LeaveLostStore(backend_);
    auto permit = backend_.gate.Enter(cancellation_);
    if (!permit.ok()) {
      backend_.metrics.NoteRefusal(Refusal::kDraining);
      return Refuse(std::move(first), permit.status());
    }
    permit_ = *std::move(permit);
    auto user_permit = backend_.loads.Enter(*caller_);
    if (!user_permit.ok()) {
      backend_.metrics.NoteRefusal(Refusal::kLoads);
      return Refuse(std::move(first), user_permit.status());
    }
    user_permit_ = *std::move(user_permit);
    const absl::Status room = TakeRoom(first.request());
    if (!room.ok()) {
      backend_.metrics.NoteRefusal(Refusal::kRequestBytes);
      return Refuse(std::move(first), room);
    }
    request_ = std::move(*first.mutable_request());
    try {
      std::thread([self = shared_from_this()] { self->Run(); }).detach();
    } catch (const std::system_error& error) {
      End(MakeBusyError(StrCat("no thread for this load: ", error.what())));
    }
  }

  void Refuse(v1::LoadClientMessage message, const absl::Status& status) {
    message = {};
    End(status);
  }

  // Counts the load as what it costs, until the call is destroyed.
  absl::Status TakeRoom(const v1::LoadRequest& request) {
    const uint64_t cost = LoadCost(request);
    const uint64_t limit = backend_.requests.max_per_user();
    if (limit != 0 && cost > limit) return CostsTooMuch(request, cost, limit);
    request_share_ = backend_.requests.Take(caller_->id(), cost);
    return request_share_ != nullptr ? absl::OkStatus() : TooMuchAtOnce(cost, limit);
  }

  static absl::Status CostsTooMuch(const v1::LoadRequest& request, uint64_t cost, uint64_t limit) {
    return Invalid(StrCat("this load would take about ", cost,
                          " bytes of kernixd's memory; all loads of a user may take ", limit, ". Most of it is for ",
                          CostliestPart(request), ": put less into one load, or ", kRaise));
  }

  absl::Status TooMuchAtOnce(uint64_t cost, uint64_t limit) const {
    return MakeBusyError(StrCat("this load takes about ", cost, " bytes of kernixd's memory; together with the loads ",
                                "under way of user ", caller_->name(), " it exceeds the limit of ", limit,
                                " bytes for one user: wait for some of them, or ", kRaise),
                         backend_.loads.NextTurn(caller_->id()));
  }

  // Waits until other uploads of this user make room, but no longer than an upload may take: others may wait for the
  // same build, and are then asked for the headers.
  absl::Status ReserveUpload(uint64_t bytes) {
    const Duration timeout = backend_.options.upload_timeout;
    upload_share_ = backend_.uploads.Await(caller_->id(), bytes, backend_.env.Now() + timeout, cancellation_.get());
    if (upload_share_ != nullptr) return absl::OkStatus();
    if (cancellation_->cancelled()) return MakeError(v1::ErrorDetail::CANCELLED, "the load was cancelled");
    backend_.metrics.NoteRefusal(Refusal::kUploadBytes);
    return MakeBusyError(
        StrCat("user ", caller_->name(), " has uploaded so many headers for loads under way that there was no ",
               "room for another ", bytes, " bytes within ", std::chrono::duration<double>(timeout).count(),
               " s: load fewer kernels at once, or ", kRaise));
  }

  // Runs in the load's thread.
  void Run() {
    const MonotonicTime begin = backend_.env.Now();
    const std::string name = request_.name();
    const bool frozen = request_.frozen();
    permit_->Show(caller_->id(), request_, begin);
    // If one request exhausts memory, the daemon must survive for all others.
    absl::StatusOr<v1::LoadResult> result = CatchExceptions(kLoadNotHandled, [&] { return LoadOrFail(); });
    if (LeaveLostStore(backend_)) {
      result = absl::UnavailableError(StrCat("the store ", backend_.cache.directory(),
                                             " was removed while this load ran, and this kernixd ends: load again"));
    }
    if (!result.ok() && KindOf(result.status()) == v1::ErrorDetail::CANCELLED && backend_.gate.cancels_all()) {
      result = absl::UnavailableError("this kernixd stops, and has ended the loads that still ran: load again");
    }
    permit_->Hide();
    const auto took = backend_.env.Now() - begin;
    backend_.metrics.NoteLoad(result, took);
    if (frozen) backend_.metrics.NoteFrozenLoad(result);
    LogLoad(*caller_, name, result, std::chrono::duration_cast<Duration>(took));
    if (!result.ok()) return End(result.status());
    v1::LoadEvent event;
    *event.mutable_result() = *result;
    const MutexLock lock(mutex_);
    Finish(absl::OkStatus(), std::move(event));
  }

  absl::StatusOr<v1::LoadResult> LoadOrFail() {
    const uint64_t limit = backend_.options.max_request_bytes;
    const uint64_t bytes = request_.ByteSizeLong();
    if (bytes > limit) return Invalid(TooLarge("the request has", bytes, limit));
    KERNIX_ASSIGN_OR_RETURN(*request_.mutable_toolchain(),
                            backend_.toolchains.Choose(request_.toolchain(), request_.language()));
    header_sizes_ = SizesOf(request_);
    return backend_.builder.Load(std::move(request_), caller_->id(), *this, cancellation_);
  }

  // Ends the call with an error: in full as an event, and shortened as the call's status.
  void End(const absl::Status& status) {
    v1::LoadEvent event;
    v1::ErrorDetail& failure = *event.mutable_failure() = GetErrorDetail(status);
    failure.set_message(BothEnds(failure.message()));
    const MutexLock lock(mutex_);
    Finish(status, std::move(event));
  }

  void Finish(const absl::Status& status, v1::LoadEvent last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    end_ = ToGrpcStatus(status);
    Send(std::move(last));
  }

  // Does not wait for a slow client, because others may wait for the same build. So little waits to be sent: newer
  // progress replaces older, and build::Flight bounds the output.
  void Send(v1::LoadEvent event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (event.has_progress() && !queue_.empty() && queue_.back().has_progress()) queue_.pop_back();
    queue_.push_back(std::move(event));
    if (!writing_) SendNext();
  }

  void SendNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!queue_.empty()) {
      outgoing_ = std::move(queue_.front());
      queue_.pop_front();
      writing_ = true;
      StartWrite(&outgoing_);
    } else if (end_ && !finished_) {
      finished_ = true;
      ServerBidiReactor::Finish(*end_);
    }
  }

  void AskFor(const std::vector<Digest>& digests, uint64_t bytes) {
    v1::LoadEvent event;
    for (const Digest& digest : digests) event.mutable_need_blobs()->add_digest(digest.Raw());
    const MutexLock lock(mutex_);
    upload_ = std::make_unique<Upload>(digests, bytes);
    Send(std::move(event));
    StartRead(&incoming_);
  }

  void CancelUpload() {
    const MutexLock lock(mutex_);
    if (!upload_ || upload_->done) return;
    upload_->status = absl::CancelledError("the load was cancelled");
    upload_->done = true;
    upload_changed_.NotifyAll();
  }

  void ReceiveBlob(bool ok) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Upload& upload = *upload_;
    if (!ok) {
      upload.status = Invalid("the client ended its side of the call before it had sent the requested headers");
    } else if (!incoming_.has_blob()) {
      upload.status = Invalid("kernixd asked for headers, and the client sent something else");
    } else {
      upload.status = upload.receiver.Add(incoming_.blob());
    }
    upload.done = !upload.status.ok() || upload.receiver.complete();
    if (upload.done) return upload_changed_.NotifyAll();
    if (!finished_) StartRead(&incoming_);
  }

  // Others may wait for the same build. The limit covers the whole upload, not each pause, so a client cannot prolong
  // it.
  Duration UploadTime(uint64_t bytes) const {
    constexpr uint64_t kMebibyte = 1 << 20;
    return backend_.options.upload_timeout + std::chrono::seconds(bytes / kMebibyte);
  }

  absl::StatusOr<build::HeaderContents> WaitForUpload(Duration timeout) {
    const MonotonicTime deadline = backend_.env.Now() + timeout;
    const MutexLock lock(mutex_);
    while (!upload_->done) {
      if (!upload_changed_.WaitUntil(mutex_, deadline) && !upload_->done) {
        upload_->done = true;
        upload_->status = MakeError(
            v1::ErrorDetail::RESOURCE,
            StrCat("this client did not send the headers requested from it within ",
                   std::chrono::duration<double>(timeout).count(), " s (kernixd's upload_timeout): was it stopped?"));
      }
    }
    const std::unique_ptr<Upload> upload = std::move(upload_);
    KERNIX_RETURN_IF_ERROR(upload->status);
    return upload->receiver.TakeContents();
  }

  Backend& backend_;
  const IdentityPtr caller_;
  const CancellationPtr cancellation_;
  // Given back when the call is destroyed: when gRPC is done with it and the load's thread has returned. `permit_` goes
  // last, because the daemon may end without it.
  std::unique_ptr<LoadGate::Permit> permit_;
  std::unique_ptr<UserLimit::Permit> user_permit_;
  std::shared_ptr<LoadCall> self_;  // until OnDone()
  bool started_ = false;  // whether the request has arrived; only used in read reactions, which run one after another
  v1::LoadClientMessage incoming_;  // of the read in progress
  v1::LoadRequest request_;         // used by the load's thread until the builder has it
  HeaderSizes header_sizes_;        // used by the load's thread until it has asked for headers
  std::unique_ptr<exec::ByteQuota::Share> request_share_;
  std::unique_ptr<exec::ByteQuota::Share> upload_share_;

  Mutex mutex_;
  CondVar upload_changed_;
  std::unique_ptr<Upload> upload_ ABSL_GUARDED_BY(mutex_);
  std::deque<v1::LoadEvent> queue_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  v1::LoadEvent outgoing_ ABSL_GUARDED_BY(mutex_);  // of the write in progress
  std::optional<grpc::Status> end_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerBidiReactor<v1::LoadClientMessage, v1::LoadEvent>* StartLoadCall(Backend& backend, IdentityPtr caller) {
  const auto call = std::make_shared<LoadCall>(backend, std::move(caller));
  call->Start();
  return call.get();
}

}  // namespace kernix::server
