// SPDX-License-Identifier: Apache-2.0
#include "tests/security/daemon_state.h"

#include <sys/stat.h>

#include <cctype>
#include <cstdlib>

#include "common/base/strings.h"
#include "common/os/env.h"
#include "tests/security/users.h"

namespace kernix::security {

uint64_t StatusBytes(const std::string& pid, const std::string& name) {
  const std::string status = Env::Posix().ReadFile(StrCat("/proc/", pid, "/status")).value_or("");
  const size_t at = status.find(StrCat("\n", name, ":"));
  if (at == std::string::npos) return 0;
  return std::strtoull(status.c_str() + at + name.size() + 2, nullptr, 10) << 10;
}

std::vector<std::string> Compilers(pid_t daemon) {
  std::vector<std::string> compilers;
  const std::vector<std::string> names = Env::Posix().ListDirectory("/proc").value();
  for (const std::string& name : names) {
    struct stat info = {};
    if (std::isdigit(static_cast<unsigned char>(name[0])) == 0 || name == std::to_string(daemon)) continue;
    if (stat(StrCat("/proc/", name).c_str(), &info) != 0 || info.st_uid != TheUsers().service) continue;
    compilers.push_back(name);
  }
  return compilers;
}

int LoadsEnded(const std::string& log, uid_t user) {
  const std::string line = StrCat(" info load user=", user, " ");
  int ended = 0;
  for (size_t at = log.find(line); at != std::string::npos; at = log.find(line, at + 1)) ++ended;
  return ended;
}

}  // namespace kernix::security
