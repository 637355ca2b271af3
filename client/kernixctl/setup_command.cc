// SPDX-License-Identifier: Apache-2.0
//
// `kernixctl setup` makes kernixd the service of this machine: what an administrator would do by hand, one command
// after the other.
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "client/kernixctl/command.h"
#include "client/tools/environment.h"
#include "client/tools/toolchain_finder.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/private_directory.h"

namespace kernix::ctl {
namespace {

constexpr char kConfig[] = "/etc/kernix/kernixd.toml";
constexpr char kSocket[] = "/run/kernix/kernixd.sock";
constexpr char kUndo[] =
    R"(To undo it:
  systemctl disable --now kernixd-web kernixd.socket kernix-spawn.socket kernixd
  rm -r /etc/kernix /var/cache/kernix
  userdel kernix-web
  gpasswd -M '' kernix; userdel kernix
)";
constexpr char kDetails[] =
    R"(Finds the compilers and CUDA toolkits of this machine and registers them in /etc/kernix/kernixd.toml (a file that is
there stays as it is), makes the user and group kernix, starts the units, adds users to the group, and compiles a kernel
as somebody else. Prints each command; with --dry-run, only prints. Needs root, and kernixd's units, which the package
kernixd and `cmake --install` install. May be repeated.

CXX, CUDA_HOME and --site-packages name compilers in other places, as for loads.

Examples:
  kernixctl setup --user ada --user ben
  kernixctl setup --dry-run)";

struct SetupFlags {
  std::vector<std::string> users;
  std::vector<std::string> site_packages;
  bool dry_run = false;
};

using Words = std::vector<std::string>;

// --- The toolchains

struct Toolchain {
  std::string name;
  v1::ToolchainPaths paths;
};

std::string Real(const std::string& path) { return Env::Posix().RealPath(path).value_or(path); }

// /usr/local/cuda-12.4/bin/nvcc and its like, newest name first.
std::vector<std::string> InstalledNvccs() {
  constexpr char kFolder[] = "/usr/local";
  std::vector<std::string> found;
  for (const std::string& name : Env::Posix().ListDirectory(kFolder).value_or(std::vector<std::string>())) {
    std::string nvcc = JoinPath(JoinPath(kFolder, name), "bin/nvcc");
    if (name.starts_with("cuda") && IsProgram(Env::Posix(), nvcc)) found.push_back(std::move(nvcc));
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

class ToolchainList {
 public:
  // Adds a toolchain, unless one with the same programs is there.
  void Add(const v1::ToolchainPaths& paths) {
    const auto has_same_programs = [&](const Toolchain& other) {
      return Real(other.paths.host_compiler()) == Real(paths.host_compiler()) &&
             Real(other.paths.nvcc()) == Real(paths.nvcc());
    };
    if (std::any_of(list_.begin(), list_.end(), has_same_programs) || !IsRoots(paths)) return;
    // "g++"; the root of a toolkit, "cuda-12.4"
    std::string name = Basename(paths.nvcc().empty() ? paths.host_compiler() : Dirname(Dirname(paths.nvcc())));
    const auto has_name = [&](const Toolchain& other) { return other.name == name; };
    while (std::any_of(list_.begin(), list_.end(), has_name)) name += "-2";
    list_.push_back({std::move(name), paths});
  }

  const std::vector<Toolchain>& list() const { return list_; }

 private:
  // Whoever can change a compiler, or what it reads, decides what all members get.
  static bool IsRoots(const v1::ToolchainPaths& paths) {
    Words read = {paths.host_compiler(), paths.nvcc()};
    for (const auto& folders : {paths.cuda_include_directories(), paths.cuda_library_directories()}) {
      read.insert(read.end(), folders.begin(), folders.end());
    }
    for (const std::string& path : read) {
      if (path.empty()) continue;
      const absl::Status guarded = GuardedRealPath(Env::Posix(), path, {0}).status();
      if (guarded.ok()) continue;
      std::cout << "# not registered: " << path << " (" << guarded.message() << ")\n";
      return false;
    }
    return true;
  }

  std::vector<Toolchain> list_;
};

// The compilers where systems put them, and those that root's own loads would find.
absl::StatusOr<std::vector<Toolchain>> FindToolchains(const Words& site_packages) {
  Env& env = Env::Posix();
  ToolchainList found;
  const ToolchainSearch for_cpp{.language = v1::LANGUAGE_CPP, .site_packages = site_packages};
  KERNIX_ASSIGN_OR_RETURN(const v1::ToolchainPaths cpp, FindToolchain(env, ProcessGetEnv, for_cpp));
  for (const char* path : {"/usr/bin/g++", "/usr/bin/clang++"}) {
    v1::ToolchainPaths other;
    other.set_host_compiler(path);
    if (IsProgram(env, path)) found.Add(other);
  }
  found.Add(cpp);
  ToolchainSearch for_cuda = for_cpp;
  for_cuda.language = v1::LANGUAGE_CUDA;
  if (const auto cuda = FindToolchain(env, ProcessGetEnv, for_cuda); cuda.ok()) found.Add(*cuda);
  for (const std::string& nvcc : InstalledNvccs()) {
    v1::ToolchainPaths other = found.list().empty() ? cpp : found.list().front().paths;
    other.set_nvcc(nvcc);
    found.Add(other);
  }
  return found.list();
}

std::string Table(const Toolchain& toolchain) {
  const v1::ToolchainPaths& paths = toolchain.paths;
  const auto folders = [](std::string_view name, const auto& listed) {
    return listed.empty() ? "" : StrCat(name, " = ", JsonStrings({listed.begin(), listed.end()}), "\n");
  };
  return StrCat("\n[[toolchain]]\nname = ", JsonString(toolchain.name),
                "\nhost_compiler = ", JsonString(paths.host_compiler()), "\n",
                paths.nvcc().empty() ? "" : StrCat("nvcc = ", JsonString(paths.nvcc()), "\n"),
                folders("cuda_include_directories", paths.cuda_include_directories()),
                folders("cuda_library_directories", paths.cuda_library_directories()));
}

std::string ConfigWith(const std::vector<Toolchain>& toolchains) {
  std::string text = StrCat(
      "# kernixd as this machine's service, written by `kernixctl setup`. docs/reference.md has all settings.\n"
      "shared = true\nstore_directory = \"/var/cache/kernix\"\n");
  for (const Toolchain& toolchain : toolchains) text += Table(toolchain);
  return text;
}

// --- The commands

std::vector<Words> CommandsFor(const SetupFlags& flags, bool has_new_config) {
  std::vector<Words> commands = {{"systemd-sysusers", "kernix.conf"},
                                 {"systemd-tmpfiles", "--create", "kernix.conf"},
                                 {"systemctl", "daemon-reload"},
                                 {"systemctl", "enable", "--now", "kernix-spawn.socket", "kernixd.socket"}};
  if (has_new_config) commands.push_back({"systemctl", "try-restart", "kernixd"});
  for (const std::string& user : flags.users) commands.push_back({"usermod", "-aG", "kernix", user});
  return commands;
}

// Somebody who is in the group, and has no home. They cannot reach a kernixctl in somebody's home.
absl::StatusOr<Words> CheckAsAnother() {
  KERNIX_ASSIGN_OR_RETURN(std::string self, Env::Posix().RealPath("/proc/self/exe"));
  for (const char* installed : {"/usr/local/bin/kernixctl", "/usr/bin/kernixctl"}) {
    if (IsProgram(Env::Posix(), installed)) self = installed;
  }
  const passwd* const nobody = getpwnam("nobody");
  if (nobody == nullptr) return absl::NotFoundError("there is no user nobody to compile a kernel as");
  Words command = {"setpriv", "--reuid", "nobody", "--regid", StrCat(nobody->pw_gid), "--groups", "kernix"};
  command.insert(command.end(), {"env", "-i", "HOME=/nonexistent", "PATH=/usr/local/bin:/usr/bin:/bin", self});
  command.insert(command.end(), {"--address", StrCat("unix:", kSocket), "doctor"});
  return command;
}

absl::Status Failed(const Words& command, std::string_view how) {
  return MakeError(v1::ErrorDetail::INTERNAL,
                   StrCat("`", absl::StrJoin(command, " "), "` ", how,
                          ". Mend what it says, and run this again: steps that are done are done again without harm."));
}

// Prints a command and, unless it is only printed, waits until it has ended.
absl::Status Run(const Words& command, bool only_print) {
  std::cout << "$ " << ShellCommand(command) << std::endl;
  if (only_print) return absl::OkStatus();
  const absl::StatusOr<int> code = RunInForeground(command, ProcessVariables());
  if (!code.ok()) return Failed(command, ToStd(code.status().message()));
  return *code == 0 ? absl::OkStatus() : Failed(command, "has failed");
}

// --- All of it

// Before anything is changed.
absl::Status CheckUsers(const std::vector<std::string>& users) {
  for (const std::string& user : users) {
    if (getpwnam(user.c_str()) != nullptr) continue;
    return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                     StrCat("--user: this machine has no user \"", user, "\": create it first, or leave it out"));
  }
  return absl::OkStatus();
}

absl::Status CheckMachine(bool dry_run) {
  if (geteuid() != 0 && !dry_run) {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST, "setup changes this machine: run it as root, or with --dry-run");
  }
  const auto has_units = [](const char* root) {
    return Env::Posix().Stat(StrCat(root, "/lib/systemd/system/kernixd.socket")).ok();
  };
  if (has_units("/usr") || has_units("/usr/local") || dry_run) return absl::OkStatus();
  return MakeError(
      v1::ErrorDetail::INVALID_REQUEST,
      "kernixd's units are not installed: install the package kernixd, or run `sudo cmake --install build` "
      "in a clone");
}

absl::Status WriteConfig(const SetupFlags& flags, bool& is_new) {
  is_new = !Env::Posix().Stat(kConfig).ok();
  if (!is_new) {
    std::cout << kConfig << " stays as it is\n";
    return absl::OkStatus();
  }
  KERNIX_ASSIGN_OR_RETURN(const std::vector<Toolchain> toolchains, FindToolchains(flags.site_packages));
  const std::string content = ConfigWith(toolchains);
  std::cout << "# " << kConfig << "\n" << content << "\n";
  if (flags.dry_run) return absl::OkStatus();
  KERNIX_RETURN_IF_ERROR(Env::Posix().CreateDirectories(Dirname(kConfig)));
  return Env::Posix().WriteFileDurably(kConfig, content, 0644);
}

absl::Status SetUp(const SetupFlags& flags) {
  umask(022);  // the service reads what this makes
  KERNIX_RETURN_IF_ERROR(CheckMachine(flags.dry_run));
  KERNIX_RETURN_IF_ERROR(CheckUsers(flags.users));
  bool has_new_config = false;
  KERNIX_RETURN_IF_ERROR(WriteConfig(flags, has_new_config));
  for (const Words& command : CommandsFor(flags, has_new_config)) {
    KERNIX_RETURN_IF_ERROR(Run(command, flags.dry_run));
  }
  KERNIX_ASSIGN_OR_RETURN(const Words check, CheckAsAnother());
  KERNIX_RETURN_IF_ERROR(Run(check, flags.dry_run));
  if (!flags.dry_run) std::cout << "\nThe service runs. Members of the group kernix use it from their next login on.";
  std::cout << "\n" << kUndo;
  return absl::OkStatus();
}

}  // namespace

Command SetupCommand() {
  const auto flags = std::make_shared<SetupFlags>();
  return {.name = "setup",
          .summary = "Make kernixd the service of this machine",
          .details = kDetails,
          .options = {{"--user", &flags->users, "Add this user to the group kernix"},
                      {"--dry-run", &flags->dry_run, "Only print what would be done"},
                      SitePackages(flags->site_packages)},
          .run = [flags] {
            const absl::Status status = SetUp(*flags);
            return status.ok() ? kOk : Fail(status);
          }};
}

}  // namespace kernix::ctl
