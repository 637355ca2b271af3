// SPDX-License-Identifier: Apache-2.0
//
// Compiles a C++ kernel through kernixd (which the client starts if none is running), calls the kernel without XLA, and
// prints the numbers.
#include <iostream>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernix/call_frame.h"
#include "kernix/client.h"
#include "kernix/error.h"
#include "kernix/load.h"
#include "kernix/module.h"

namespace {

constexpr char kSource[] = R"(
#include "brainevent/common.h"

// @BE scaled_sum arg arg ret attr.scale:float32
void scaled_sum(const BE::Tensor a, const BE::Tensor b, BE::Tensor out, float scale) {
  const float* x = static_cast<const float*>(a.data_ptr());
  const float* y = static_cast<const float*>(b.data_ptr());
  float* z = static_cast<float*>(out.data_ptr());
  for (int64_t i = 0; i < out.numel(); ++i) z[i] = scale * (x[i] + y[i]);
}
)";

absl::Status RunExample() {
  absl::StatusOr<std::unique_ptr<kernix::Client>> client = kernix::Client::Create();
  if (!client.ok()) return client.status();
  absl::StatusOr<std::shared_ptr<kernix::Module>> module = kernix::LoadCppInline(**client, "example", {kSource});
  if (!module.ok()) return module.status();
  absl::StatusOr<kernix::Handler> handler = (*module)->handler("scaled_sum");
  if (!handler.ok()) return handler.status();

  const std::vector<float> a = {1, 2, 3, 4}, b = {10, 20, 30, 40};
  std::vector<float> out(a.size());
  const auto size = static_cast<int64_t>(a.size());
  kernix::CallFrame frame;
  frame.AddArgument(a.data(), kernix::DataType::kFloat32, {size});
  frame.AddArgument(b.data(), kernix::DataType::kFloat32, {size});
  frame.AddResult(out.data(), kernix::DataType::kFloat32, {size});
  frame.AddAttribute("scale", 0.5f);
  if (absl::Status status = frame.Call(*handler); !status.ok()) return status;

  std::cout << ((*module)->cache_hit() ? "from the cache:" : "compiled:");
  for (const float value : out) std::cout << ' ' << value;
  std::cout << std::endl;
  return absl::OkStatus();
}

}  // namespace

int main() {
  const absl::Status status = RunExample();
  if (status.ok()) return 0;
  std::cerr << status.message() << '\n' << kernix::DescribeError(status).compiler_output;
  return 1;
}
