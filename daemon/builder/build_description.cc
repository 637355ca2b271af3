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

std::vector<std::string> DescribeFlags(const BuildRequest& request) {
  std::vector<std::string> flags = {StrCat("-O", request.optimization_level)};
  if (request.use_fast_math) flags.push_back("--use-fast-math");
  if (!request.allow_cuda_graph) flags.push_back("--no-cuda-graph");
  if (request.keep) flags.push_back("--keep");
  if (request.units.size() > 1) flags.push_back("--separate");
  for (const std::vector<std::string>* more : {&request.host_flags, &request.nvcc_flags, &request.link_flags}) {
    flags.insert(flags.end(), more->begin(), more->end());
  }
  return flags;
}

std::vector<std::string> DescribeBuild(const BuildRequest& request) {
  Options options;
  options.AddAll(request.definitions);
  options.AddAll(DescribeFlags(request));
  return options.Take();
}

}  // namespace kernix::build
