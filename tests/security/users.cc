// SPDX-License-Identifier: Apache-2.0
#include "tests/security/users.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <iterator>

#include "common/base/shell_words.h"
#include "common/base/strings.h"
#include "daemon/transport/local_user.h"
#include "tests/support/other_groups.h"

namespace kernix::security {
namespace {

constexpr uid_t kFirstCandidate = 61000;

Users FreeUsers() {
  std::vector<uid_t> free;
  for (uid_t id = kFirstCandidate; free.size() < 4; ++id) {
    if (getpwuid(id) == nullptr && getgrgid(id) == nullptr) free.push_back(id);
  }
  return {free[0], free[1], free[2], server::AUserThatIsNotUs().uid, free[3]};
}

bool IsMember(uid_t user) {
  return user == TheUsers().member || user == TheUsers().other || user == TheUsers().account;
}

// One descriptor through a socket pair.
struct Message {
  char byte = 0;
  iovec data = {&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
  msghdr header = {nullptr, 0, &data, 1, control.data(), control.size(), 0};
};

bool SendDescriptor(int channel, int fd) {
  Message message;
  cmsghdr* control = CMSG_FIRSTHDR(&message.header);
  control->cmsg_len = CMSG_LEN(sizeof fd);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  memcpy(CMSG_DATA(control), &fd, sizeof fd);
  return sendmsg(channel, &message.header, 0) == 1;
}

UniqueFd ReceiveDescriptor(int channel) {
  Message message;
  if (recvmsg(channel, &message.header, MSG_CMSG_CLOEXEC) != 1) return UniqueFd();
  int fd = -1;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message.header)), sizeof fd);
  return UniqueFd(fd);
}

std::string ReadAll(int fd) {
  std::string all;
  std::array<char, 4096> piece;
  for (ssize_t size = 0; (size = read(fd, piece.data(), piece.size())) > 0;) all.append(piece.data(), size);
  return all;
}

int ExitCode(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

const Users& TheUsers() {
  static const Users users = FreeUsers();
  return users;
}

bool Become(uid_t user) {
  const gid_t group = TheUsers().service;
  return setgroups(IsMember(user) ? 1 : 0, &group) == 0 && setresgid(user, user, user) == 0 &&
         setresuid(user, user, user) == 0;
}

bool As(uid_t user, const std::function<bool()>& body) {
  TheUsers();  // are found out here, not in the child
  const pid_t child = fork();
  if (child == 0) _exit(Become(user) && body() ? 0 : 1);
  return ExitCode(child) == 0;
}

absl::StatusOr<UniqueFd> ConnectAs(uid_t user, const std::string& path) {
  std::array<int, 2> ends = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return absl::InternalError("socketpair");
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const SocketAddress address(path);
  const bool sent = As(user, [&] {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool connected = connect(fd, address.get(), address.size()) == 0;
    return connected && fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && SendDescriptor(theirs.get(), fd);
  });
  if (!sent) return absl::PermissionDeniedError(StrCat("user ", user, " cannot connect to ", path));
  return ReceiveDescriptor(ours.get());
}

std::vector<std::string> CommandAs(uid_t user, const std::vector<std::string>& command) {
  const std::string groups = IsMember(user) ? StrCat("--groups=", TheUsers().service) : std::string("--clear-groups");
  std::vector<std::string> words = {"/usr/bin/setpriv", StrCat("--reuid=", user), StrCat("--regid=", user), groups};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

ProgramOutcome RunAs(uid_t user, const std::vector<std::string>& command,
                     const std::map<std::string, std::string>& environment) {
  std::vector<std::string> argv = user == 0 ? command : CommandAs(user, command);
  std::vector<std::string> variables = {"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"};
  for (const auto& [name, value] : environment) variables.push_back(StrCat(name, "=", value));
  std::array<int, 2> pipe = {-1, -1};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) return {.exit_code = -1, .output = "no pipe"};
  const UniqueFd from(pipe[0]);
  UniqueFd to(pipe[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, to.get(), 2);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, argv[0].c_str(), &actions, nullptr, ToArgv(argv).data(), ToArgv(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  to = UniqueFd();
  if (error != 0) return {.exit_code = -1, .output = StrCat("cannot start ", argv[0])};
  std::string output = ReadAll(from.get());
  return {.exit_code = ExitCode(child), .output = std::move(output)};
}

}  // namespace kernix::security
