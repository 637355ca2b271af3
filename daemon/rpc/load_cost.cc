// SPDX-License-Identifier: Apache-2.0
//
// The constants were measured, with loads that wait for headers and loads in the queue (tests/security/costs_test.cc).
#include "daemon/rpc/load_cost.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "common/base/strings.h"
#include "common/flags/languages.h"
#include "daemon/language/read/resolve.h"

namespace kernix::server {
namespace {

// A thread, a call of gRPC's, and what else each load has once.
constexpr uint64_t kLoad = 64 << 10;
// A text in the request, among the sources, in the unit, and beside it for compilers, which show its lines.
constexpr uint64_t kTextCopies = 4;
// A source is a file, with its label as a name. With separate_units, the label is also in the names of the unit's
// files.
constexpr uint64_t kSource = 400;
constexpr uint64_t kLabelCopies = 8;
// A header in the request's list, in the tree of its root, and as it is asked for and uploaded.
constexpr uint64_t kHeader = 500;
constexpr uint64_t kPathCopies = 3;
constexpr uint64_t kAllocation = 16;
// A function as it was resolved, and the text of its handler. Only reading the sources shows its parameters, of which
// language/read/resolve.h allows so many.
constexpr uint64_t kFunction = 2000;
constexpr uint64_t kParameter = 200;
constexpr uint64_t kParameters = language::ReadingBudget().parameters;
constexpr uint64_t kParametersOfFunction = language::ReadingBudget::kParametersOfFunction;
// The same of the bytes of their names: as they were resolved, and in the handler's text.
constexpr uint64_t kNameCopies = 3;
constexpr uint64_t kNames = language::ReadingBudget().names;
constexpr uint64_t kNamesOfFunction = language::ReadingBudget::kNamesOfFunction;
// A step that waits for its turn, without the user's flags.
constexpr uint64_t kStep = 36'000;
// A word of a command, besides its text; and how often each step that waits has its command: in the plan, as it would
// run faster, and in queues.
constexpr uint64_t kWord = sizeof(std::string);
constexpr uint64_t kCommandCopies = 8;
// "-Iinc/12", or with -iquote.
constexpr uint64_t kRoot = 40;
// A flag as it was read, and in the commands that a load has once.
constexpr uint64_t kFlag = 250;

constexpr double kMost = 1e18;

struct Part {
  double bytes = 0;  // a product of counts may be beyond 64 bits
  std::string what;
};

template <typename Strings>
uint64_t BytesOf(const Strings& strings) {
  uint64_t bytes = 0;
  for (const std::string& text : strings) bytes += text.size();
  return bytes;
}

uint64_t CountOf(std::string_view what, std::string_view text) {
  uint64_t count = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

Part Texts(const v1::LoadRequest& request) {
  uint64_t bytes = 0;
  for (const v1::Source& source : request.source()) bytes += source.text().size();
  return {static_cast<double>(kTextCopies * bytes), StrCat(bytes, " bytes of source text")};
}

Part Headers(const v1::LoadRequest& request) {
  uint64_t bytes = 0;
  for (const v1::Header& header : request.header())
    bytes += kHeader + kPathCopies * (header.path().size() + kAllocation);
  return {static_cast<double>(bytes), StrCat(request.header_size(), " headers")};
}

// Annotations stand for functions that the request does not list.
Part Functions(const v1::LoadRequest& request) {
  auto count = static_cast<uint64_t>(request.functions().function_size());
  if (request.functions().from_annotations()) {
    for (const v1::Source& source : request.source()) count += CountOf("@BE", source.text());
  }
  constexpr uint64_t kEach = kFunction + kParametersOfFunction * kParameter + kNamesOfFunction * kNameCopies;
  return {static_cast<double>(kParameters * kParameter + kNames * kNameCopies) + static_cast<double>(count) * kEach,
          StrCat(count, " functions")};
}

// nvcc compiles in phases, some of them for each architecture; what it makes is kept by steps of their own.
double StepsOfUnit(const v1::LoadRequest& request) {
  if (!TraitsOf(request.language()).needs_nvcc) return 1;
  return 2 + request.options().architectures_size() * (request.options().keep() ? 4.0 : 1.0);
}

// The contents of all units' commands: each has the flags and its include roots again. nvcc gets flags for the host
// compiler as two words each.
Part Commands(const v1::LoadRequest& request) {
  const v1::Options& options = request.options();
  const bool separate = options.separate_units();
  const double units = separate ? request.source_size() : 1;
  double roots = options.include_root_count();
  if (separate) {
    roots = 0;
    for (const v1::Source& source : request.source()) roots += source.include_root_size();
  }
  const int words = TraitsOf(request.language()).needs_nvcc ? 2 : 1;
  const int flags = options.compile_flags_size();
  const double flag_bytes = flags * words * static_cast<double>(kWord) + BytesOf(options.compile_flags());
  const double command_bytes = units * flag_bytes + roots * words * kRoot;
  const auto each = static_cast<uint64_t>(roots / std::max(units, 1.0));
  return {StepsOfUnit(request) * (units * kStep + kCommandCopies * command_bytes),
          StrCat(separate ? request.source_size() : 1, separate ? " sources, each" : " unit,", " compiled with ", flags,
                 " flags and ", each, " include paths")};
}

Part Sources(const v1::LoadRequest& request) {
  uint64_t bytes = 0;
  for (const v1::Source& source : request.source()) bytes += kSource + kLabelCopies * source.label().size();
  return {static_cast<double>(bytes), StrCat(request.source_size(), " sources")};
}

Part Flags(const v1::LoadRequest& request) {
  const v1::Options& options = request.options();
  const double count = static_cast<double>(options.compile_flags_size()) + options.link_flags_size();
  return {count * kFlag + static_cast<double>(kCommandCopies * BytesOf(options.link_flags())),
          StrCat(options.compile_flags_size() + options.link_flags_size(), " flags")};
}

std::vector<Part> Parts(const v1::LoadRequest& request) {
  return {Texts(request), Sources(request), Headers(request), Functions(request), Commands(request), Flags(request)};
}

}  // namespace

uint64_t LoadCost(const v1::LoadRequest& request) {
  double bytes = kLoad;
  for (const Part& part : Parts(request)) bytes += part.bytes;
  // Before it is planned, a request of many empty parts may take more.
  return std::max(static_cast<uint64_t>(std::min(bytes, kMost)), request.SpaceUsedLong());
}

std::string CostliestPart(const v1::LoadRequest& request) {
  const std::vector<Part> parts = Parts(request);
  return std::max_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.bytes < b.bytes; })
      ->what;
}

}  // namespace kernix::server
