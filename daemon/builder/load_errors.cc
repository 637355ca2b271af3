// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/load_errors.h"

#include <cstddef>
#include <utility>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "daemon/toolchain/description.h"

namespace kernix::build {
namespace {

// Enough to name one entry of a store: `kernixctl cache show` takes the beginning of a key.
constexpr size_t kShownKeyDigits = 12;

// A client that has found no compiler, either, says where it has looked.
absl::Status NoCompiler(const toolchain::Toolchain& toolchain) {
  return MakeError(v1::ErrorDetail::TOOLCHAIN,
                   StrCat("there is no compiler here, and the cache has only kernels built by ",
                          toolchain::DescribeTools(toolchain), ": install a compiler"),
                   absl::StatusCode::kUnimplemented);
}

}  // namespace

absl::Status Outdated(const std::string& what) {
  return MakeError(v1::ErrorDetail::TOOLCHAIN, StrCat(what, " changed while it was being used: load again"),
                   absl::StatusCode::kAborted);
}

absl::Status NotCached(const std::string& name, const Miss& miss, bool frozen) {
  std::string nearest = "You have no kernel of this name there.";
  if (miss.nearest) {
    nearest = StrCat("Your most similar kernel there, ", miss.nearest->Hex().substr(0, kShownKeyDigits),
                     ", differs: ", miss.reason, ".");
  }
  const char* const why =
      frozen ? "this process is frozen: it compiles nothing. " : "the policy \"cached\" compiles nothing. ";
  const char* const advice = frozen ? " Load them before the process is frozen, prefetch them," : " Prefetch them,";
  return MakeError(v1::ErrorDetail::NOT_CACHED,
                   StrCat("the cache does not have the kernels of module \"", Printable(name), "\", and ", why, nearest,
                          advice, " or load with the policy \"build\"."));
}

absl::Status NotTaken(const std::string& name, const toolchain::Toolchain& toolchain, const UpstreamCache* upstream) {
  if (toolchain.described->of_store && upstream == nullptr) return NoCompiler(toolchain);
  std::string where = "upstream.address names no engine to take them from";
  if (upstream != nullptr) {
    where = StrCat("the engine at ", upstream->address(),
                   upstream->IsAnswered() ? " has no matching result" : " does not answer");
  }
  return MakeError(
      v1::ErrorDetail::NOT_CACHED,
      StrCat("this node has no compiler for module \"", Printable(name), "\": its kernels are not in the cache, and ",
             where, ". Load or prefetch them on a node with ", toolchain::DescribeTools(toolchain),
             " that writes to the engine, and load again; or have an engine's workers compile them (upstream.steps)."));
}

absl::Status NothingThere() { return MakeError(v1::ErrorDetail::NOT_CACHED, "it is not in the cache"); }

absl::Status NothingToBuildWith(const toolchain::Toolchain& toolchain) {
  if (toolchain.described->of_store) return NoCompiler(toolchain);
  return MakeError(v1::ErrorDetail::TOOLCHAIN,
                   StrCat("force_rebuild needs a compiler, and this node only has a description, ",
                          toolchain.described->file, ": load without it, or on a node with compilers"));
}

}  // namespace kernix::build
