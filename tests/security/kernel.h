// SPDX-License-Identifier: Apache-2.0
//
// Requests as a member writes them: the texts, and the headers that go along.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/test_client.h"

namespace kernix::security {

struct Kernel {
  v1::LoadRequest request;
  std::map<std::string, std::string> headers;  // content by digest
};

// A kernel that loads. `before` stands at the top of its text.
Kernel CppKernel(const std::string& before = "", const std::vector<std::string>& flags = {});
Kernel CudaKernel(const std::string& nvcc, const std::string& before = "", const std::vector<std::string>& flags = {});

// Sends a header along, in the include root 0: "inc/0/<path>" to the compiler.
void AddHeader(Kernel& kernel, const std::string& path, const std::string& content);

// Loads it to the end, uploads included.
server::LoadOutcome Load(server::TestClient& client, const Kernel& kernel);

// All that the daemon has said to it.
std::string Answer(const server::LoadOutcome& outcome);

}  // namespace kernix::security
