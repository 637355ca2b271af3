// SPDX-License-Identifier: Apache-2.0
//
// Who takes part. All but one are numbers that no account of this machine has: nobody is added to it. Root alone can be
// them.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/os/unique_fd.h"

namespace kernix::security {

struct Users {
  uid_t service;   // runs kernixd; its group, of the same number, is the one whose members may connect
  uid_t member;    // the attacker
  uid_t other;     // another member, who has something to lose
  uid_t account;   // a member with an account: one of this machine's own
  uid_t stranger;  // a user of the machine who is in no such group
};

// The same ones for the life of this process.
const Users& TheUsers();

// Makes this process, a forked child, one of `user`'s. Only system calls.
bool Become(uid_t user);

// Runs `body` in a child that has become `user`, and says whether it returned true. Only system calls in there: this
// process has threads.
bool As(uid_t user, const std::function<bool()>& body);

// A connection to the Unix socket at `path`, made by `user`: the kernel notes who connects.
absl::StatusOr<UniqueFd> ConnectAs(uid_t user, const std::string& path);

struct ProgramOutcome {
  int exit_code = 0;   // 128 + the signal when one ended it
  std::string output;  // of stdout and stderr
};

// Runs a program to its end as `user`, with PATH and what `environment` says.
ProgramOutcome RunAs(uid_t user, const std::vector<std::string>& command,
                     const std::map<std::string, std::string>& environment = {});

// The words that make `command` run as `user`, for a script.
std::vector<std::string> CommandAs(uid_t user, const std::vector<std::string>& command);

}  // namespace kernix::security
