// SPDX-License-Identifier: Apache-2.0
//
// The daemon's listening socket: bound by itself, or handed over by systemd.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/os/env.h"
#include "common/os/places.h"
#include "common/os/unique_fd.h"

namespace kernix::server {

// The lock that belongs to a socket: "x.lock" for "x.sock" (as DaemonPlace has it), else "<socket>.lock".
std::string LockPathOf(const std::string& socket);

// Takes the lock of `socket`, or says who holds it: kAlreadyExists, "kernixd (process N) already serves ...". A daemon
// that has closed its socket and is about to end, or has not opened it yet, is waited for, at most for `patience`.
absl::StatusOr<std::unique_ptr<FileLock>> ClaimSocket(Env& env, const std::string& socket, Duration patience);

struct ListenerOptions {
  std::string path;
  // Owner only, unless there is one: then also the members of this group, by name. "" keeps the folder's or process's.
  bool for_group = false;
  std::string group;
};

// Stops listening when it goes; removes the socket's file if it made it.
class Listener {
 public:
  // Binds and listens. The caller holds the lock of the socket: what a daemon that died has left is removed.
  // kAlreadyExists when something else listens there or the path is no socket; kInvalidArgument for a path that is too
  // long or a group that does not exist.
  static absl::StatusOr<std::unique_ptr<Listener>> Bind(Env& env, const ListenerOptions& options);

  // What systemd passed to this process (LISTEN_FDS): nullptr when it passed none. kInvalidArgument for anything but
  // one listening Unix stream socket. Takes the variables out of the environment.
  static absl::StatusOr<std::unique_ptr<Listener>> FromSystemd(Env& env);

  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

 private:
  Listener(Env& env, UniqueFd fd, std::string path, bool owns_file)
      : env_(env), fd_(std::move(fd)), path_(std::move(path)), owns_file_(owns_file) {}

  Env& env_;
  UniqueFd fd_;
  const std::string path_;
  const bool owns_file_;
};

}  // namespace kernix::server
