// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/build_description.h"

#include "common/base/strings.h"
#include "common/base/utf8.h"

namespace kernix::build {
namespace {

constexpr size_t kLongest = 500;
constexpr size_t kMost = 200;

class Options {
 public:
  void Add(const std::string& text) {
    if (text.size() <= kLongest) return Append(ToValidUtf8(text));
    Append(StrCat(ToValidUtf8(text.substr(0, kLongest)), "..."));
  }

  void AddAll(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) Add(text);
  }

  void AddIf(bool condition, const char* text) {
    if (condition) Add(text);
  }

  std::vector<std::string> Take() {
    if (left_out_ > 0) texts_.push_back(StrCat("... and ", left_out_, " more"));
    return std::move(texts_);
  }

 private:
  void Append(std::string text) {
    if (texts_.size() >= kMost) {
      ++left_out_;
    } else {
      texts_.push_back(std::move(text));
    }
  }

  std::vector<std::string> texts_;
  size_t left_out_ = 0;
};

}  // namespace

std::vector<std::string> DescribeBuild(const BuildRequest& request) {
  Options options;
  options.Add(StrCat("-O", request.optimization_level));
  options.AddIf(request.use_fast_math, "--use-fast-math");
  options.AddIf(!request.allow_cuda_graph, "--no-cuda-graph");
  options.AddIf(request.keep, "--keep");
  options.AddIf(request.units.size() > 1, "--separate");
  options.AddAll(request.definitions);
  options.AddAll(request.host_flags);
  options.AddAll(request.nvcc_flags);
  options.AddAll(request.link_flags);
  return options.Take();
}

}  // namespace kernix::build
