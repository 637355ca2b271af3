// SPDX-License-Identifier: Apache-2.0
#include "tests/security/kernel.h"

#include <optional>

#include "common/base/digest.h"
#include "common/base/strings.h"

namespace kernix::security {
namespace {

constexpr char kCudaText[] = R"(#include "brainevent/common.h"
__global__ void twice(const float* x, float* y) { *y = 2 * *x; }
// @BE add arg ret stream
void add(const BE::Tensor x, BE::Tensor y, int64_t stream) {
  twice<<<1, 1, 0, (cudaStream_t)stream>>>(x.data_ptr<const float>(), y.data_ptr<float>());
}
)";

void SetText(Kernel& kernel, const std::string& before, const std::string& text) {
  kernel.request.mutable_source(0)->set_text(before.empty() ? text : StrCat(before, "\n", text));
}

void SetFlags(Kernel& kernel, const std::vector<std::string>& flags) {
  for (const std::string& flag : flags) kernel.request.mutable_options()->add_compile_flags(flag);
}

void Note(server::LoadOutcome& outcome, const v1::LoadEvent& event) {
  if (event.has_result()) outcome.result = event.result();
  if (event.has_failure()) outcome.failure = event.failure();
  if (event.has_output()) outcome.outputs.push_back(event.output());
}

}  // namespace

Kernel CppKernel(const std::string& before, const std::vector<std::string>& flags) {
  Kernel kernel{server::AddKernel(1), {}};
  SetText(kernel, before, kernel.request.source(0).text());
  SetFlags(kernel, flags);
  return kernel;
}

Kernel CudaKernel(const std::string& nvcc, const std::string& before, const std::vector<std::string>& flags) {
  Kernel kernel;
  kernel.request.set_name("twice");
  kernel.request.set_language(v1::LANGUAGE_CUDA);
  kernel.request.add_source()->set_label("twice.cu");
  kernel.request.mutable_functions()->set_from_annotations(true);
  kernel.request.mutable_options()->add_architectures("sm_90");
  kernel.request.mutable_toolchain()->set_host_compiler("/usr/bin/g++");
  kernel.request.mutable_toolchain()->set_nvcc(nvcc);
  SetText(kernel, before, kCudaText);
  SetFlags(kernel, flags);
  return kernel;
}

void AddHeader(Kernel& kernel, const std::string& path, const std::string& content) {
  kernel.request.mutable_options()->set_include_root_count(1);
  v1::Header& header = *kernel.request.add_header();
  header.set_path(path);
  header.set_digest(DigestOf(content).Raw());
  header.set_size(content.size());
  kernel.headers[header.digest()] = content;
}

server::LoadOutcome Load(server::TestClient& client, const Kernel& kernel) {
  server::LoadStream stream(client.stub());
  stream.Send(kernel.request);
  server::LoadOutcome outcome;
  while (const std::optional<v1::LoadEvent> event = stream.Next()) {
    Note(outcome, *event);
    for (const std::string& digest : event->need_blobs().digest()) stream.SendBlob(kernel.headers.at(digest));
  }
  outcome.status = stream.Finish().status;
  return outcome;
}

std::string Answer(const server::LoadOutcome& outcome) {
  std::string all = outcome.status.error_message();
  if (outcome.failure) {
    StrAppend(&all, outcome.failure->message(), "\n", outcome.failure->compiler_output(), "\n",
              outcome.failure->command(), "\n");
  }
  for (const v1::Output& output : outcome.outputs) StrAppend(&all, output.command(), "\n", output.text(), "\n");
  if (outcome.result) StrAppend(&all, outcome.result->DebugString());
  return all;
}

}  // namespace kernix::security
