// SPDX-License-Identifier: Apache-2.0
//
// The daemon's side of common/wire/quick_lookup.h.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/identity.h"
#include "common/base/mutex.h"
#include "common/os/file_identity.h"
#include "common/os/unique_fd.h"
#include "common/wire/quick_lookup.h"
#include "daemon/exec/byte_quota.h"
#include "daemon/rpc/backend.h"
#include "daemon/rpc/load_gate.h"

namespace kernix::server {

// Whether a connection begins with the first bytes of a lookup. Does not consume these bytes.
bool BeginsLookup(int connection);

struct LookupOptions {
  // How long a client may take to send its question, and to receive the answer.
  Duration patience = std::chrono::seconds(5);
  // How long the loop stays awake for the question of a new connection, because the client has it almost ready.
  std::chrono::microseconds awake{150};
  // How long a connection is kept for the client's next question.
  Duration keep_time = std::chrono::seconds(10);
  // How many connections are kept of one user, and of all. Beyond that, the user's longest-idle connection is closed.
  int max_kept_per_user = 64;
  int max_kept = 1024;
};

class LookupConnection;

// Answers lookups. One thread reads what clients ask, and answers all questions that it finds waiting together: those
// whose answers are known after one check of the files that these follow from. Each of the others gets a thread of its
// own. Lookups do not count as loads under way: a client whose lookup is refused or cut off makes a load and learns the
// reason. Thread-safe.
class LookupServer {
 public:
  // Limit of concurrent lookups of one user: each may hold kMaxLookupBytes.
  static constexpr int kMaxPerUser = 64;
  // Limit of one user's bytes that threads read and answer at a time: a question of many empty parts takes fifty times
  // its bytes in memory.
  static constexpr uint64_t kMaxReadPerUser = 2 * kMaxLookupBytes;

  // `backend` must outlive it. Errors of the operating system.
  static absl::StatusOr<std::unique_ptr<LookupServer>> Start(Backend& backend, LookupOptions options = {});
  ~LookupServer();
  LookupServer(const LookupServer&) = delete;
  LookupServer& operator=(const LookupServer&) = delete;

  // Answers the first lookup on a connection of `user`, and the later ones.
  void Serve(UniqueFd connection, IdentityPtr user);

  // Cuts off lookups under way, refuses new ones, closes all connections, and waits for the threads.
  void Stop();

  // The number of connections on which nobody waits for an answer now.
  int kept() const { return kept_; }

  // The number of questions so far.
  uint64_t asked() const { return asked_; }

 private:
  using ConnectionPtr = std::unique_ptr<LookupConnection>;

  LookupServer(Backend& backend, LookupOptions options, UniqueFd epoll, UniqueFd wake);

  using Connections = std::list<ConnectionPtr>;

  void Run();
  bool GoesOn();
  void Round();
  int Timeout() const;
  void HandOver(ConnectionPtr connection);
  void TakeArrivals(std::vector<LookupConnection*>& asked);
  bool Read(LookupConnection& connection);
  void Answer(const std::vector<LookupConnection*>& asked);
  void AnswerInThread(LookupConnection& connection, std::string text);
  bool Begin(LookupConnection& connection);
  void Keep(LookupConnection& connection);
  void CloseOldestOf(const LookupConnection& connection);
  void CloseLate();
  bool Watch(LookupConnection& connection);
  ConnectionPtr Release(LookupConnection& connection);
  void NoteKept(LookupConnection& connection, int change);

  Backend& backend_;
  const LookupOptions options_;
  const UniqueFd epoll_;
  const UniqueFd wake_;                                        // an eventfd
  UserLimit limit_{backend_.env, "lookups", "", kMaxPerUser};  // nobody sees its refusals
  exec::ByteQuota reading_{kMaxReadPerUser};
  LoadGate gate_;
  std::atomic<int> kept_{0};
  std::atomic<uint64_t> asked_{0};

  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<ConnectionPtr> arrived_ ABSL_GUARDED_BY(mutex_);  // new ones, and those that a thread has answered

  // Only the loop's thread uses these. Both lists begin with the oldest entry.
  Connections asking_;   // a part of a question has come
  Connections waiting_;  // for the next question
  std::map<UserId, int> kept_of_user_;
  MonotonicTime awake_until_;
  FileChecker file_checker_;

  std::thread thread_;
};

}  // namespace kernix::server
