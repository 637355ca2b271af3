// SPDX-License-Identifier: Apache-2.0
#include "kernix/targets.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "client/src/fork_safety.h"
#include "client/src/trampoline.h"
#include "daemon/base/error.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/strings.h"

namespace kernix {
namespace {

// What is live under a target name.
struct Live {
  std::string module;
  std::string artifact_digest;
  FunctionInfo function;
};

struct Target {
  Trampoline trampoline;
  Live live;
};

using Key = std::pair<std::string, std::string>;  // name, platform

struct Registry {
  ForkSafeMutex mutex;
  std::map<Key, Target> targets ABSL_GUARDED_BY(mutex);
  TrampolinePool trampolines ABSL_GUARDED_BY(mutex);
};

Registry& TheRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

// What XLA knows of a signature: how many buffers go in and out, and the attributes by name. Where the stream stands
// among the parameters of the C++ function is the wrapper's business.
struct Signature {
  size_t arguments = 0;
  size_t results = 0;
  std::vector<std::string> attributes;

  explicit Signature(const std::vector<std::string>& tokens) {
    for (const std::string& token : tokens) {
      if (token == "arg") ++arguments;
      if (token == "ret") ++results;
      if (absl::StartsWith(token, "attr.")) attributes.push_back(token);
    }
    std::sort(attributes.begin(), attributes.end());
  }
  bool operator==(const Signature&) const = default;
};

absl::Status RegistrationError(const std::string& message) { return MakeError(v1::ErrorDetail::REGISTRATION, message); }

absl::Status CheckNames(std::string_view target, std::string_view platform) {
  if (target.empty() || target.find('\0') != std::string_view::npos) {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST, "a target needs a name without NUL bytes");
  }
  if (platform == "cpu" || platform == "CUDA") return absl::OkStatus();
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat("unknown platform \"", platform, "\" of target '", target, "': use \"cpu\" or \"CUDA\""));
}

absl::StatusOr<Live> Describe(const Module& module, std::string_view function) {
  KERNIX_RETURN_IF_ERROR(module.handler(function).status());
  for (const FunctionInfo& info : module.functions()) {
    if (info.name == function) return Live{module.name(), module.artifact_digest(), info};
  }
  return absl::InternalError(StrCat("module '", module.name(), "' lost its function '", function, "'"));
}

bool SameCode(const Live& a, const Live& b) {
  return a.artifact_digest == b.artifact_digest && a.function.handler == b.function.handler;
}

absl::Status CheckReplacement(std::string_view target, const Live& live, const Live& next, bool replace) {
  if (!replace) {
    return RegistrationError(StrCat(
        "target '", target, "' is taken: other code is live under that name (function '", live.function.name,
        "' of module '", live.module, "', artifact ", live.artifact_digest.substr(0, 12), "; new is '",
        next.function.name, "' of '", next.module, "', artifact ", next.artifact_digest.substr(0, 12),
        "). Either pass replace=True, which makes the new code live under the old name, also in functions that are "
        "compiled already; or choose another module name or target_prefix."));
  }
  if (Signature(live.function.tokens) != Signature(next.function.tokens)) {
    return RegistrationError(StrCat(
        "the signature of live target '", target, "' cannot change: it is [", absl::StrJoin(live.function.tokens, " "),
        "], the new code has [", absl::StrJoin(next.function.tokens, " "),
        "], and functions that are compiled already would call it with the old one. Choose another module name or "
        "target_prefix."));
  }
  if (live.function.traits != next.function.traits) {
    return RegistrationError(
        StrCat("the traits of live target '", target, "' cannot change (XLA has noted them: ", live.function.traits,
               ", the new code has ", next.function.traits,
               "). Load it with the same allow_cuda_graph, or choose another module name or target_prefix."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Binding> BindTarget(std::string_view target, std::string_view platform, const Module& module,
                                   std::string_view function, bool replace) {
  KERNIX_RETURN_IF_ERROR(CheckNames(target, platform));
  KERNIX_ASSIGN_OR_RETURN(Live next, Describe(module, function));
  Key key{std::string(target), std::string(platform)};
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mutex);
  const auto found = registry.targets.find(key);
  if (found == registry.targets.end()) {
    KERNIX_ASSIGN_OR_RETURN(const Trampoline trampoline, registry.trampolines.Create(next.function.handler));
    registry.targets.emplace(std::move(key), Target{trampoline, std::move(next)});
    return Binding{BindOutcome::kNew, trampoline.address()};
  }
  Target& old = found->second;
  if (SameCode(old.live, next)) return Binding{BindOutcome::kUnchanged, old.trampoline.address()};
  KERNIX_RETURN_IF_ERROR(CheckReplacement(target, old.live, next, replace));
  old.trampoline.SetTarget(next.function.handler);
  old.live = std::move(next);
  return Binding{BindOutcome::kReplaced, old.trampoline.address()};
}

std::vector<TargetInfo> ListTargets() {
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mutex);
  std::vector<TargetInfo> list;
  list.reserve(registry.targets.size());
  for (const auto& [key, target] : registry.targets) {
    list.push_back({.target = key.first,
                    .platform = key.second,
                    .module = target.live.module,
                    .artifact_digest = target.live.artifact_digest,
                    .tokens = target.live.function.tokens,
                    .address = target.trampoline.address()});
  }
  return list;
}

}  // namespace kernix
