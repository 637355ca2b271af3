// SPDX-License-Identifier: Apache-2.0
//
// What every test of this suite has: a scratch folder below a root-owned chain, a shared kernixd in it that runs as a
// user of its own, a secret that this user alone can read, a place where code that should not run leaves a trace, and
// the counting of attacks and twins.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/security/kernel.h"
#include "tests/security/users.h"
#include "tests/support/kernixd_process.h"
#include "tests/support/test_client.h"

namespace kernix::security {

// What an attack must come to, besides leaving no trace.
enum class Must {
  kBeRefused,   // INVALID_REQUEST: by kernixd, by reading the request
  kBeHarmless,  // it may load, or fail as a compile error does
};

class SecurityTest : public ::testing::Test {
 protected:
  SecurityTest();

  // What this machine lacks for kernixd's tools, as lesser_kernel says it; "" when nothing.
  static std::string Lacks();

  // From now on, kernixd's tools run as on a machine that lacks this.
  void StageLesserMachine(const std::string& lacks);

  // Starts kernixd with this machine's g++, and clang++ and nvcc where it has them and `with_nvcc`. `settings` are
  // lines of its configuration.
  void Serve(const std::string& settings = "", bool with_nvcc = false);

  // A connection of `user`'s own.
  std::unique_ptr<server::TestClient> Connect(uid_t user) const;
  server::TestClient& member();

  // Loads `kernel` as the member and counts an attack of `row`. It has succeeded when code ran, the secret was shown,
  // or it is not refused and should be.
  void Attack(const std::string& row, const std::string& what, const Kernel& kernel, Must must);

  // Counts an attack that something else has judged: `evidence` is empty when it failed.
  static void Judge(const std::string& row, const std::string& what, const std::string& evidence);

  // Loads `kernel`, which must load.
  void Twin(const std::string& row, const std::string& what, const Kernel& kernel);
  static void JudgeTwin(const std::string& row, const std::string& what, const std::string& failure);

  // `text` with {canary}, {secret}, {missing} and {mallory} replaced by paths, {script} by what a shell makes the
  // canary with.
  std::string Fill(std::string text) const;

  // "" or what of the secret is in `text`, or what ran.
  std::string SecretIn(const std::string& text) const;
  std::string Canaries() const;

  const std::string& root() const { return place_.root(); }
  std::string Path(const std::string& name) const { return place_.root() + "/" + name; }
  std::string socket() const { return Path("run/k.sock"); }
  std::string store() const { return Path("store"); }
  const std::string& nvcc() const { return nvcc_; }    // "" where there is none
  const std::string& clang() const { return clang_; }  // "" where there is none
  const std::string& kernixd_program() const { return kernixd_; }
  KernixdProcess& daemon() { return *daemon_; }

  // A folder of the scratch chain, with the owner's group.
  std::string MakeFolder(const std::string& name, uid_t owner, mode_t mode) const;
  std::string WriteAs(uid_t owner, const std::string& name, const std::string& text, mode_t mode) const;

  // `program` itself, or a copy in the scratch folder where others cannot get at it.
  std::string Stage(const std::string& program) const;
  std::string Config(const std::string& store, const std::string& settings, bool with_nvcc);
  std::unique_ptr<KernixdProcess> Start(const std::string& config);

  KernixdPlace place_;
  // More variables for kernixd: its settings that are numbers, say.
  std::map<std::string, std::string> variables_;
  // TheUsers() are not in the user database.
  bool unknown_users_ = true;

 private:
  std::string StageToolkit(const std::string& nvcc) const;
  std::string Evidence(server::TestClient& client, const server::LoadOutcome& outcome, Must must) const;

  std::string kernixd_;
  std::string nvcc_;
  std::string clang_;
  std::unique_ptr<KernixdProcess> daemon_;
  std::unique_ptr<server::TestClient> member_;
};

}  // namespace kernix::security
