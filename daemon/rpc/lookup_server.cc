// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/lookup_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/wire/quick_lookup.h"
#include "daemon/rpc/load_log.h"

namespace kernix::server {
namespace {

// Ends the connection, also for the accept loop, which holds a descriptor of it.
void End(const UniqueFd& connection) { shutdown(connection.get(), SHUT_RDWR); }

void LogFailure(const Identity& user, std::string_view error) {
  Log(LogLevel::kWarning, "lookup_failed", {{"user", user.name()}, {"error", error}});
}

class Lookup {
 public:
  Lookup(Backend& backend, UniqueFd connection, IdentityPtr user, Duration patience)
      : backend_(backend), connection_(std::move(connection)), user_(std::move(user)), patience_(patience) {}

  ~Lookup() {
    cancellation_->Remove(on_cancel_);
    End(connection_);
  }
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  absl::Status Enter(UserLimit& limit, LoadGate& gate) {
    KERNIX_ASSIGN_OR_RETURN(pass_, gate.Enter(cancellation_));
    KERNIX_ASSIGN_OR_RETURN(place_, limit.Enter(*user_));
    return absl::OkStatus();
  }

  // If one request exhausts memory, the daemon must survive for all others.
  void Run() {
    try {
      Answer().IgnoreError();  // the client is gone or slow
    } catch (const std::exception& error) {
      LogFailure(*user_, error.what());
    }
  }

 private:
  absl::Status Answer() {
    const MonotonicTime begin = backend_.env.Now();
    const MonotonicTime deadline = std::chrono::steady_clock::now() + patience_;
    const int socket = connection_.get();
    const uint64_t limit = std::min<uint64_t>(kMaxLookupBytes, backend_.options.max_request_bytes);
    KERNIX_RETURN_IF_ERROR(ReceiveBytes(socket, kLookupMagic.size(), deadline).status());
    KERNIX_ASSIGN_OR_RETURN(const std::string text, ReceiveFrame(socket, limit, deadline));
    v1::LookupRequest request;
    const bool readable = request.ParseFromString(text) && request.build_id() == BuildId();
    v1::LookupReply reply;
    std::optional<absl::Status> sent;
    const auto deliver = [&](const v1::LoadResult& hit) {
      *reply.mutable_result() = hit;
      sent = Send(reply, deadline);
      return sent->ok();
    };
    const std::string name = request.load().name();
    const bool hit = readable && LookUp(std::move(*request.mutable_load()), deliver);
    const auto took = backend_.env.Now() - begin;
    backend_.metrics.NoteQuickLookup(hit, took);
    if (hit) LogLoad(*user_, name, reply.result(), std::chrono::duration_cast<Duration>(took));
    return sent ? *sent : Send(reply, deadline);
  }

  template <typename Deliver>
  bool LookUp(v1::LoadRequest request, const Deliver& deliver) {
    auto toolchain = backend_.toolchains.Choose(request.toolchain(), request.language());
    if (!toolchain.ok()) return false;
    *request.mutable_toolchain() = *std::move(toolchain);
    return backend_.builder.LookUp(std::move(request), user_->id(), deliver);
  }

  absl::Status Send(const v1::LookupReply& reply, MonotonicTime deadline) const {
    return SendFrame(connection_.get(), "", reply.SerializeAsString(), deadline);
  }

  Backend& backend_;
  const UniqueFd connection_;
  const IdentityPtr user_;
  const Duration patience_;
  const CancellationPtr cancellation_ = std::make_shared<Cancellation>();
  const int on_cancel_ = cancellation_->OnCancel([this] { End(connection_); });
  std::unique_ptr<LoadGate::Pass> pass_;  // once it is given back, the server may be gone
  std::unique_ptr<UserLimit::Pass> place_;
};

}  // namespace

bool BeginsLookup(int connection) {
  std::array<char, kLookupMagic.size()> first{};
  const ssize_t count = recv(connection, first.data(), first.size(), MSG_PEEK | MSG_DONTWAIT);
  return count == static_cast<ssize_t>(first.size()) && std::string_view(first.data(), first.size()) == kLookupMagic;
}

LookupServer::LookupServer(Backend& backend, Duration patience) : backend_(backend), patience_(patience) {}

LookupServer::~LookupServer() { Stop(); }

void LookupServer::Serve(UniqueFd connection, IdentityPtr user) {
  auto lookup = std::make_shared<Lookup>(backend_, std::move(connection), user, patience_);
  if (const absl::Status entered = lookup->Enter(limit_, gate_); !entered.ok()) {
    return backend_.metrics.NoteRefusal(absl::IsUnavailable(entered) ? Refusal::kDraining : Refusal::kLookups);
  }
  try {
    std::thread([lookup = std::move(lookup)] { lookup->Run(); }).detach();
  } catch (const std::system_error& error) {
    LogFailure(*user, error.what());
  }
}

void LookupServer::Stop() {
  gate_.Close();
  gate_.CancelAll();
  gate_.WaitUntilEmpty(MonotonicTime::max());
}

}  // namespace kernix::server
