// SPDX-License-Identifier: Apache-2.0
//
// lesser_kernel LACK[,LACK...] PROGRAM [ARGUMENTS]: runs a program as on a machine that lacks something: user
// namespaces ("namespaces"), as in most containers, whose filters refuse them in the same way; or Landlock
// ("landlock"), as before Linux 5.13.
#include <sched.h>
#include <seccomp.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

namespace {

bool Add(scmp_filter_ctx filter, const std::string& lack) {
  if (lack == "landlock") {
    return seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), seccomp_syscall_resolve_name("landlock_create_ruleset"),
                            0) == 0;
  }
  const scmp_arg_cmp makes_one = {
      .arg = 0, .op = SCMP_CMP_MASKED_EQ, .datum_a = CLONE_NEWUSER, .datum_b = CLONE_NEWUSER};
  return lack == "namespaces" && seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, makes_one) == 0 &&
         seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(unshare), 1, makes_one) == 0 &&
         seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  std::string lacks = argv[1];
  for (size_t end = 0; !lacks.empty(); lacks.erase(0, end == std::string::npos ? end : end + 1)) {
    end = lacks.find(',');
    if (!Add(filter, lacks.substr(0, end))) return 2;
  }
  if (seccomp_load(filter) != 0) return 2;
  execv(argv[2], argv + 2);
  std::perror(argv[2]);
  return 127;
}
