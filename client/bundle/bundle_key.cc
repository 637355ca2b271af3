// SPDX-License-Identifier: Apache-2.0
#include "client/bundle/bundle_key.h"

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

using Roots = google::protobuf::RepeatedField<uint32_t>;

// The new numbers of the include roots that have a header.
std::map<uint32_t, uint32_t> NewNumbers(const v1::LoadRequest& request) {
  std::map<uint32_t, uint32_t> numbers;
  for (const v1::Header& header : request.header()) numbers.emplace(header.include_root(), 0);
  uint32_t next = 0;
  for (auto& [root, number] : numbers) number = next++;
  return numbers;
}

void Renumber(const std::map<uint32_t, uint32_t>& numbers, Roots& roots) {
  Roots kept;
  for (const uint32_t root : roots) {
    if (const auto found = numbers.find(root); found != numbers.end()) kept.Add(found->second);
  }
  roots = std::move(kept);
}

void LeaveOutEmptyRoots(v1::LoadRequest& request) {
  const std::map<uint32_t, uint32_t> numbers = NewNumbers(request);
  for (v1::Header& header : *request.mutable_header()) header.set_include_root(numbers.at(header.include_root()));
  for (v1::Source& source : *request.mutable_source()) {
    Renumber(numbers, *source.mutable_include_root());
    Renumber(numbers, *source.mutable_quoted_include_root());
  }
  v1::Options& options = *request.mutable_options();
  Renumber(numbers, *options.mutable_quoted_include_root());
  options.set_include_root_count(static_cast<uint32_t>(numbers.size()));
}

// Drops the texts that begin like this.
void Drop(google::protobuf::RepeatedPtrField<std::string>& texts, std::string_view beginning) {
  google::protobuf::RepeatedPtrField<std::string> kept;
  for (const std::string& text : texts) {
    if (!text.starts_with(beginning)) *kept.Add() = text;
  }
  texts = std::move(kept);
}

// Clears what does not count: also folders of libraries, which a machine's environment may add, and what only says
// which compilers nvcc takes.
void MakeCanonical(v1::RecordedLoad& load) {
  load.clear_key();
  load.clear_architecture_of_machine();
  load.clear_host_compiler();
  v1::LoadRequest& request = *load.mutable_request();
  request.clear_name();
  request.clear_toolchain();
  v1::Options& options = *request.mutable_options();
  Drop(*options.mutable_link_flags(), "-L");
  Drop(*options.mutable_compile_flags(), "-allow-unsupported-compiler");
  options.clear_architectures();
  options.clear_architectures_of_gpu();
  LeaveOutEmptyRoots(request);
}

// Values by the part's name for people.
using Parts = std::map<std::string, std::string>;

std::string Joined(const google::protobuf::RepeatedPtrField<std::string>& texts) { return absl::StrJoin(texts, "\n"); }

Parts PartsOf(v1::RecordedLoad load) {
  MakeCanonical(load);
  const v1::LoadRequest& request = load.request();
  const v1::Options& options = request.options();
  Parts parts = {{"the language", StrCat(request.language())},
                 {"the functions", request.functions().SerializeAsString()},
                 {"compile flags", Joined(options.compile_flags())},
                 {"link flags", Joined(options.link_flags())},
                 {"optimization_level", StrCat(options.optimization_level())},
                 {"use_fast_math", StrCat(options.use_fast_math())},
                 {"allow_cuda_graph", StrCat(options.allow_cuda_graph())},
                 {"separate", StrCat(options.separate_units())},
                 {"keep", StrCat(options.keep())}};
  for (int i = 0; i < request.source_size(); ++i) {
    parts[StrCat("source ", request.source(i).label())] = load.source_digest(i);
  }
  for (const v1::Header& header : request.header()) parts[StrCat("header ", header.path())] += header.digest();
  return parts;
}

}  // namespace

Digest BundleKey(v1::RecordedLoad load) {
  MakeCanonical(load);
  return DigestOf(StrCat("kernix-bundle-1\n", load.SerializeAsString()));
}

std::vector<std::string> DifferencesOf(const v1::RecordedLoad& a, const v1::RecordedLoad& b) {
  const Parts parts_of_a = PartsOf(a);
  const Parts parts_of_b = PartsOf(b);
  std::vector<std::string> differences;
  for (const auto& [name, value] : parts_of_a) {
    const auto other = parts_of_b.find(name);
    if (other == parts_of_b.end() || other->second != value) differences.push_back(name);
  }
  for (const auto& [name, value] : parts_of_b) {
    if (!parts_of_a.contains(name)) differences.push_back(name);
  }
  if (differences.empty() && BundleKey(a) != BundleKey(b))
    differences.emplace_back("where headers are searched, or the order of sources");
  return differences;
}

}  // namespace kernix
