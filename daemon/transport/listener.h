// SPDX-License-Identifier: Apache-2.0
//
// The daemon's listening socket: bound by the daemon itself, or passed by systemd.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"
#include "common/os/folders.h"
#include "common/os/unique_fd.h"

namespace kernix::server {

// The lock that belongs to a socket: "x.lock" for "x.sock" (as in RunFolder), otherwise "<socket>.lock".
std::string LockPathOf(const std::string& socket);

// Takes the lock of `socket`, or reports its holder: kAlreadyExists, "kernixd (process N) already serves ...". Waits at
// most `patience` for a daemon that has closed its socket and is about to end, or has not opened it yet.
absl::StatusOr<std::unique_ptr<FileLock>> ClaimSocket(Env& env, const std::string& socket, Duration patience);

struct ListenerOptions {
  std::string path;
  // false: only the owner may connect. true: also the members of this group. An empty name keeps the group of the
  // folder or process.
  bool for_group = false;
  std::string group;
};

// Stops listening when destroyed; removes the socket's file if it created it and nobody has exchanged it.
class Listener {
 public:
  // Binds and listens; whoever sees the socket's file can connect. The caller must hold the lock of the socket:
  // leftovers of a daemon that died are removed. kAlreadyExists if something else listens there or the path is not a
  // socket; kInvalidArgument if the path is too long or the group does not exist.
  static absl::StatusOr<std::unique_ptr<Listener>> Bind(Env& env, const ListenerOptions& options);

  // The socket that systemd passed to this process (LISTEN_FDS); nullptr if it passed none. kInvalidArgument for
  // anything other than one listening Unix stream socket. Removes the variables from the environment.
  static absl::StatusOr<std::unique_ptr<Listener>> FromSystemd(Env& env);

  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  // The file that clients connect to. Without it, nobody can. None for a socket of systemd's whose file this process
  // does not see.
  const OwnFiles& file() const { return file_; }

 private:
  Listener(Env& env, UniqueFd fd, std::string path, OwnFiles file, bool owns_file)
      : env_(env), fd_(std::move(fd)), path_(std::move(path)), file_(std::move(file)), owns_file_(owns_file) {}

  Env& env_;
  UniqueFd fd_;
  const std::string path_;
  const OwnFiles file_;
  const bool owns_file_;
};

}  // namespace kernix::server
