// SPDX-License-Identifier: Apache-2.0
//
// For tests of the client against real daemons: a home, a runtime directory and a store of the test's own.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/connection/daemon_client.h"
#include "common/base/paths.h"
#include "common/os/folders.h"
#include "kernix/client.h"
#include "kernix/load.h"

namespace kernix {

// A program's output and exit code (128 + the signal when one ended it).
struct ProgramOutcome {
  int exit_code = 0;
  std::string output;
};

// Runs a program with this process' environment. Its stderr is ours.
ProgramOutcome RunProgram(const std::vector<std::string>& arguments);

// Forks; the child returns `body`'s value and is killed when it takes a minute. The child's exit code.
int ForkAndRun(const std::function<int()>& body);

// Whether `holds` becomes true. Gives up after a minute, so that a test fails instead of hanging.
bool Eventually(const std::function<bool()>& holds);

// Where nothing of the user's, and no daemon but those that the test makes, is seen: the process' environment points
// into a folder that goes at the end, with all daemons in it.
class ClientWorld : public testing::Test {
 protected:
  ClientWorld();
  ~ClientWorld() override;

  // With a start time-out that also a busy machine keeps.
  std::unique_ptr<DaemonClient> MakeClient(ClientOptions options = {});

  // Where the daemon of the default store lives.
  RunFolder RunFolderOfStore() const;

  std::string Path(const std::string& name) const { return JoinPath(root_, name); }
  // For this test: another one in this process does not see it.
  void SetVariable(const std::string& name, const std::string& value);

  // A program that stands in for kernixd.
  std::string WriteScript(const std::string& name, const std::string& text);

  // Loads a C++ kernel whose text is new for each `number`.
  static absl::StatusOr<std::shared_ptr<Module>> LoadKernel(Client& client, int number,
                                                            const LoadOptions& options = {});

 private:
  void Unset(const std::string& name);
  void RestoreVariables();

  std::string root_;
  std::map<std::string, std::optional<std::string>> variables_;  // as they were, of those that were changed
};

}  // namespace kernix
