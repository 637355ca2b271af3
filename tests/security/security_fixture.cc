// SPDX-License-Identifier: Apache-2.0
#include "tests/security/security_fixture.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_replace.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "daemon/transport/local_user.h"
#include "tests/security/tally.h"
#include "tests/support/find_tools.h"
#include "tests/support/test_util.h"

namespace kernix::security {
namespace {

// In lower case, since the assembler shows directives so.
constexpr char kMarker[] = "topsecretword";

// Makes the canary from a folder of the store, for a shell and without a blank, a slash or a comma, which words for
// parts of the compiler cannot hold.
constexpr char kScript[] =
    "for\ti\tin\t1\t2\t3\t4\t5\t6\t7\t8;do\tcd\t-P\t..;test\t-d\tcanary&&cd\tcanary&&touch\tran;done";

// Whatever reads it shows a line of it.
std::string Secret() {
  std::string text;
  for (int line = 0; line < 40; ++line) StrAppend(&text, kMarker, " ", kMarker, line, "\n");
  return text;
}

bool CanRead(uid_t user, const std::string& path) {
  return As(user, [&path] { return access(path.c_str(), R_OK) == 0; });
}

std::string FirstLine(const std::string& text) { return text.substr(0, std::min(text.find('\n'), size_t{160})); }

void Give(const std::string& path, uid_t owner, mode_t mode) {
  EXPECT_EQ(chown(path.c_str(), owner, owner), 0) << path;
  EXPECT_EQ(chmod(path.c_str(), mode), 0) << path;
}

// The socket as systemd makes it: root's, and open to the members.
UniqueFd Listen(const std::string& path) {
  unlink(path.c_str());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const SocketAddress address(path);
  EXPECT_EQ(bind(fd.get(), address.get(), address.size()), 0) << path;
  EXPECT_EQ(listen(fd.get(), SOMAXCONN), 0);
  EXPECT_EQ(chown(path.c_str(), 0, TheUsers().service), 0);
  EXPECT_EQ(chmod(path.c_str(), 0660), 0);
  return fd;
}

std::string ToolchainTable(const std::string& name, const std::string& compiler) {
  return StrCat("[[toolchain]]\nname = \"", name, "\"\nhost_compiler = \"", compiler, "\"\n");
}

}  // namespace

std::string SecurityTest::Lacks() {
  const char* const lacks = std::getenv("KERNIX_TEST_MACHINE_LACKS");
  return lacks == nullptr ? "" : lacks;
}

SecurityTest::SecurityTest() {
  EXPECT_EQ(chmod(root().c_str(), 0755), 0);
  MakeFolder("run", 0, 0755);
  MakeFolder("store", TheUsers().service, 0750);
  MakeFolder("canary", 0, 0777);
  MakeFolder("secret", 0, 0755);
  WriteAs(TheUsers().service, "secret/file.txt", Secret(), 0600);
  MakeFolder("mallory", TheUsers().member, 0755);
  kernixd_ = Stage(KERNIXD_PROGRAM);
  Stage(KERNIX_SPAWN_PROGRAM);  // which kernixd looks for beside itself
  if (const std::string lacks = Lacks(); !lacks.empty()) StageLesserMachine(lacks);
}

void SecurityTest::StageLesserMachine(const std::string& lacks) {
  MakeFolder("lesser", 0, 0755);
  kernixd_ = WriteAs(0, "lesser/kernixd", Env::Posix().ReadFile(kernixd_).value(), 0755);
  WriteAs(0, "lesser/kernix-spawn",
          StrCat("#!/bin/sh\nexec ", Stage(LESSER_KERNEL_PROGRAM), " ", lacks, " ", Stage(KERNIX_SPAWN_PROGRAM)), 0755);
}

std::string SecurityTest::MakeFolder(const std::string& name, uid_t owner, mode_t mode) const {
  EXPECT_THAT(Env::Posix().CreateDirectories(Path(name), 0755), IsOk());
  Give(Path(name), owner, mode);
  return Path(name);
}

std::string SecurityTest::WriteAs(uid_t owner, const std::string& name, const std::string& text, mode_t mode) const {
  EXPECT_THAT(Env::Posix().WriteFile(Path(name), text, mode), IsOk());
  Give(Path(name), owner, mode);
  return Path(name);
}

std::string SecurityTest::Stage(const std::string& program) const {
  if (CanRead(TheUsers().member, program)) return program;
  MakeFolder("bin", 0, 0755);
  const std::string name = StrCat("bin/", Basename(program));
  return WriteAs(0, name, Env::Posix().ReadFile(program).value(), 0755);
}

// A copy, not hard links: those would change the times of files that other tests' daemons watch.
std::string SecurityTest::StageToolkit(const std::string& nvcc) const {
  if (CanRead(TheUsers().service, nvcc)) return nvcc;
  const std::string from(Dirname(Dirname(nvcc)));
  const ProgramOutcome copied = RunAs(0, {"/bin/cp", "-rL", "--reflink=auto", from, Path("toolkit")});
  EXPECT_EQ(copied.exit_code, 0) << copied.output;
  EXPECT_EQ(RunAs(0, {"/bin/chmod", "-R", "go+rX", Path("toolkit")}).exit_code, 0);
  return Path("toolkit/bin/nvcc");
}

std::string SecurityTest::Config(const std::string& store, const std::string& settings, bool with_nvcc) {
  std::string text =
      StrCat("shared = true\nunknown_users = ", unknown_users_ ? "true" : "false", "\nstore_directory = \"", store,
             "\"\n", settings, "\n", ToolchainTable("system", "/usr/bin/g++"));
  clang_ = testing::FindOnPath("clang++").value_or("");
  if (!clang_.empty()) text += ToolchainTable("clang", clang_);
  const std::optional<std::string> found = with_nvcc ? testing::FindNvcc() : std::nullopt;
  if (found) nvcc_ = StageToolkit(*found);
  if (!nvcc_.empty()) StrAppend(&text, ToolchainTable("cuda", "/usr/bin/g++"), "nvcc = \"", nvcc_, "\"\n");
  return WriteAs(0, "kernixd.toml", text, 0644);
}

std::unique_ptr<KernixdProcess> SecurityTest::Start(const std::string& config) {
  const UniqueFd listener = Listen(socket());
  KernixdCommand command;
  command.program = kernixd_;
  command.inherited_fd = listener.get();
  command.socket_activation = true;
  command.arguments = {"--config", config};
  command.environment = variables_;
  command.user = TheUsers().service;
  command.place_arguments = false;
  return KernixdProcess::Start(place_, command).value();
}

void SecurityTest::Serve(const std::string& settings, bool with_nvcc) {
  daemon_ = Start(Config(store(), settings, with_nvcc));
  ASSERT_THAT(daemon_->AwaitReady(), IsOk());
}

std::unique_ptr<server::TestClient> SecurityTest::Connect(uid_t user) const {
  absl::StatusOr<UniqueFd> connection = ConnectAs(user, socket());
  EXPECT_TRUE(connection.ok()) << connection.status();
  return std::make_unique<server::TestClient>(*std::move(connection));
}

server::TestClient& SecurityTest::member() {
  if (member_ == nullptr) member_ = Connect(TheUsers().member);
  return *member_;
}

std::string SecurityTest::Fill(std::string text) const {
  return absl::StrReplaceAll(text, {{"{canary}", Path("canary/ran")},
                                    {"{script}", kScript},
                                    {"{secret}", Path("secret/file.txt")},
                                    {"{missing}", Path("secret/none.txt")},
                                    {"{mallory}", Path("mallory")}});
}

std::string SecurityTest::SecretIn(const std::string& text) const {
  const size_t at = text.find(kMarker);
  if (at == std::string::npos) return "";
  std::string around = text.substr(at - std::min(at, size_t{60}), 100);
  std::replace_if(
      around.begin(), around.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, '.');
  return StrCat("showed the secret: ...", around, "...");
}

std::string SecurityTest::Canaries() const {
  std::string names;
  const std::vector<std::string> found = Env::Posix().ListDirectory(Path("canary")).value();
  for (const std::string& name : found) {
    StrAppend(&names, names.empty() ? "" : " ", name);
    EXPECT_THAT(Env::Posix().RemoveTree(Path("canary/" + name)), IsOk());
  }
  return names.empty() ? "" : StrCat("code ran as the service, or a file was written: canary/", names);
}

std::string SecurityTest::Evidence(server::TestClient& client, const server::LoadOutcome& outcome, Must must) const {
  if (std::string ran = Canaries(); !ran.empty()) return ran;
  const std::string answer = Answer(outcome);
  if (std::string shown = SecretIn(answer); !shown.empty()) return shown;
  if (outcome.result) {
    const std::string artifact = client.Fetch(outcome.result->artifact_digest()).value_or("");
    if (const std::string kept = SecretIn(artifact); !kept.empty()) return "in the artifact: " + kept;
  }
  if (must == Must::kBeHarmless) return "";
  if (outcome.result) return "it loaded";
  if (!outcome.failure) return StrCat("no answer: ", outcome.status.error_message());
  if (outcome.failure->kind() == v1::ErrorDetail::INVALID_REQUEST) return "";
  return StrCat("it reached the compiler: ", FirstLine(outcome.failure->message()));
}

void SecurityTest::Attack(const std::string& row, const std::string& what, const Kernel& kernel, Must must) {
  Judge(row, what, Evidence(member(), Load(member(), kernel), must));
}

void SecurityTest::Judge(const std::string& row, const std::string& what, const std::string& evidence) {
  Tally::Get().Attack(row, !evidence.empty());
  if (!evidence.empty()) ADD_FAILURE() << row << ": " << what << " SUCCEEDED: " << evidence;
}

void SecurityTest::Twin(const std::string& row, const std::string& what, const Kernel& kernel) {
  const server::LoadOutcome outcome = Load(member(), kernel);
  JudgeTwin(row, what, outcome.result ? "" : Answer(outcome));
}

void SecurityTest::JudgeTwin(const std::string& row, const std::string& what, const std::string& failure) {
  Tally::Get().Twin(row, failure.empty());
  if (!failure.empty()) ADD_FAILURE() << row << ": the harmless twin " << what << " DOES NOT LOAD: " << failure;
}

}  // namespace kernix::security
