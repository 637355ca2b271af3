// SPDX-License-Identifier: Apache-2.0
//
// bare_probe KERNEL.cpp KERNEL.cu: loads both on a node without compilers, and calls the first one's function `seven`.
// Prints a line for each, or the error.
#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernix/call_frame.h"
#include "kernix/client.h"
#include "kernix/load.h"
#include "kernix/module.h"

namespace kernix {
namespace {

void Print(const char* what, const absl::Status& status, const std::string& good) {
  std::printf("%s: %s\n", what, status.ok() ? good.c_str() : std::string(status.message()).c_str());
}

absl::StatusOr<Handler> HandlerOf(absl::StatusOr<std::shared_ptr<Module>> module) {
  if (!module.ok()) return module.status();
  return (*module)->handler("seven");
}

void CallCpp(Client& client, const char* path) {
  const absl::StatusOr<Handler> handler = HandlerOf(LoadCppFile(client, path));
  if (!handler.ok()) return Print("cpp", handler.status(), "");
  float out = 0;
  CallFrame frame;
  frame.AddResult(&out, DataType::kFloat32, {1});
  const absl::Status called = frame.Call(*handler);
  Print("cpp", called, std::to_string(static_cast<int>(out)));
}

// Opened, and asked for its metadata: there is no GPU to call it on.
void OpenCuda(Client& client, const char* path) {
  LoadOptions options;
  options.compute_capability = "sm_90";
  Print("cuda", HandlerOf(LoadCudaFile(client, path, options)).status(), "opened");
}

int Run(const char* cpp, const char* cuda) {
  ClientOptions options;
  options.start_timeout = std::chrono::minutes(2);
  const auto client = Client::Create(std::move(options));
  if (!client.ok()) return 1;
  CallCpp(**client, cpp);
  OpenCuda(**client, cuda);
  return 0;
}

}  // namespace
}  // namespace kernix

int main(int argc, char** argv) { return argc == 3 ? kernix::Run(argv[1], argv[2]) : 2; }
