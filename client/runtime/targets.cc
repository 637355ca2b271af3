// SPDX-License-Identifier: Apache-2.0
#include "kernix/targets.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "client/runtime/handlers.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/fork_safety.h"
#include "kernel/brainevent/internal/ffi_abi.h"

namespace kernix {
namespace {

// The code that is live under a target name.
struct Live {
  std::string module;
  std::string artifact_digest;
  FunctionInfo function;
};

struct Target {
  Trampoline trampoline;
  std::optional<Live> live;        // nullopt: calls go to a ReservedHandler()
  std::optional<uint32_t> traits;  // the traits that a runtime has recorded for the name, for ever
};

using Key = std::pair<std::string, std::string>;  // name, platform

struct Registry {
  ForkSafeMutex mutex;
  std::map<Key, Target> targets ABSL_GUARDED_BY(mutex);
  TrampolinePool trampolines ABSL_GUARDED_BY(mutex);
  std::set<std::string> names ABSL_GUARDED_BY(mutex);  // for trampolines: never removed
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

// One requested change of a bind.
struct Change {
  Key key;
  Live next;

  const std::string& target() const { return key.first; }
};

// A message for a runtime: calls of the change's target go to `address`.
struct Announcement {
  const Change* change;
  Handler address;
};

absl::StatusOr<std::vector<Change>> Describe(std::string_view platform, const Module& module,
                                             const std::vector<TargetName>& names) {
  std::vector<Change> changes;
  std::set<std::string_view> seen;
  for (const TargetName& name : names) {
    KERNIX_RETURN_IF_ERROR(CheckNames(name.target, platform));
    if (!seen.insert(name.target).second) {
      return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("target '", name.target, "' is named twice"));
    }
    KERNIX_ASSIGN_OR_RETURN(Live next, Describe(module, name.function));
    changes.push_back({Key(name.target, platform), std::move(next)});
  }
  return changes;
}

// The same code is open only once (see OpenArtifact).
bool SameCode(const Live& a, const Live& b) { return a.function.handler == b.function.handler; }

absl::Status NameTaken(std::string_view target, const Live& live, const Live& next) {
  return RegistrationError(StrCat(
      "target '", target, "' is taken: other code is live under that name (function '", live.function.name,
      "' of module '", live.module, "', artifact ", live.artifact_digest.substr(0, 12), "; new is '",
      next.function.name, "' of '", next.module, "', artifact ", next.artifact_digest.substr(0, 12),
      "). Either pass replace=True, which makes the new code live under the old name, also in functions that are "
      "already compiled; or choose another module name or target_prefix."));
}

absl::Status CheckTraits(std::string_view target, uint32_t noted, uint32_t next) {
  if (noted == next) return absl::OkStatus();
  return RegistrationError(
      StrCat("the traits of target '", target, "' cannot change (XLA has recorded them: ", noted, ", the new code has ",
             next, "). Load it with the same allow_cuda_graph, or choose another module name or target_prefix."));
}

absl::Status Check(const Target& target, const Change& change, bool replace) {
  if (target.live && SameCode(*target.live, change.next)) return absl::OkStatus();
  if (target.live && !replace) return NameTaken(change.target(), *target.live, change.next);
  if (target.traits) return CheckTraits(change.target(), *target.traits, change.next.function.traits);
  return absl::OkStatus();
}

absl::Status CheckAll(Registry& registry, const std::vector<Change>& changes, bool replace)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(registry.mutex) {
  for (const Change& change : changes) {
    const auto found = registry.targets.find(change.key);
    if (found != registry.targets.end()) KERNIX_RETURN_IF_ERROR(Check(found->second, change, replace));
  }
  return absl::OkStatus();
}

// Reserves an address for each name that has none. A runtime that learns the address sees the traits of the new code,
// but calls reach the code only after all names are bound. Returns the changes whose names no runtime knows yet.
absl::StatusOr<std::vector<Announcement>> Reserve(Registry& registry, const std::vector<Change>& changes)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(registry.mutex) {
  std::vector<Announcement> unknown;
  for (const Change& change : changes) {
    auto found = registry.targets.find(change.key);
    if (found == registry.targets.end()) {
      KERNIX_ASSIGN_OR_RETURN(const Trampoline trampoline, registry.trampolines.Create(nullptr));
      found = registry.targets.emplace(change.key, Target{trampoline, std::nullopt, std::nullopt}).first;
    }
    Target& target = found->second;
    if (target.traits) continue;
    target.trampoline.SetHandler(ReservedHandler(change.next.function.traits));
    unknown.push_back({&change, target.trampoline.address()});
  }
  return unknown;
}

void Lead(Registry& registry, Trampoline& trampoline, const Live& next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(registry.mutex) {
  if (next.function.named_handler == nullptr) return trampoline.SetHandler(next.function.handler);
  const std::string& name = *registry.names.insert(next.module).first;
  trampoline.SetHandler(next.function.named_handler, name.c_str());
}

// Code that is live already stays as it is, perhaps under another name or with other texts.
Binding Apply(Registry& registry, Target& target, const Live& next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(registry.mutex) {
  const bool unchanged = target.live && SameCode(*target.live, next);
  const BindOutcome outcome = unchanged     ? BindOutcome::kUnchanged
                              : target.live ? BindOutcome::kReplaced
                                            : BindOutcome::kNew;
  Lead(registry, target.trampoline, next);
  target.live = next;
  return {outcome, target.trampoline.address()};
}

absl::StatusOr<std::vector<Announcement>> Prepare(const std::vector<Change>& changes, bool replace) {
  auto& registry = PerProcess<Registry>::Get();
  MutexLock lock(registry.mutex);
  KERNIX_RETURN_IF_ERROR(CheckAll(registry, changes, replace));
  return Reserve(registry, changes);
}

// From now on, a runtime may know the name, whether or not the bind succeeds.
void NoteTraits(const Change& change) {
  auto& registry = PerProcess<Registry>::Get();
  MutexLock lock(registry.mutex);
  std::optional<uint32_t>& traits = registry.targets.at(change.key).traits;
  if (!traits) traits = change.next.function.traits;
}

// Starts again from the beginning, because another thread may have bound the same names while the runtime was told.
absl::StatusOr<std::vector<Binding>> Commit(const std::vector<Change>& changes, bool replace) {
  auto& registry = PerProcess<Registry>::Get();
  MutexLock lock(registry.mutex);
  KERNIX_RETURN_IF_ERROR(CheckAll(registry, changes, replace));
  std::vector<Binding> bindings;
  bindings.reserve(changes.size());
  for (const Change& change : changes) {
    bindings.push_back(Apply(registry, registry.targets.at(change.key), change.next));
  }
  return bindings;
}

}  // namespace

absl::StatusOr<std::vector<Binding>> BindTargets(std::string_view platform, const Module& module,
                                                 const std::vector<TargetName>& names, bool replace,
                                                 const AnnounceTarget& announce) {
  KERNIX_ASSIGN_OR_RETURN(const std::vector<Change> changes, Describe(platform, module, names));
  KERNIX_ASSIGN_OR_RETURN(const std::vector<Announcement> unknown, Prepare(changes, replace));
  for (const auto& [change, address] : unknown) {
    if (announce) KERNIX_RETURN_IF_ERROR(announce(change->target(), address));
    NoteTraits(*change);
  }
  return Commit(changes, replace);
}

absl::StatusOr<Binding> BindTarget(std::string_view target, std::string_view platform, const Module& module,
                                   std::string_view function, bool replace) {
  const std::vector<TargetName> names = {{std::string(target), std::string(function)}};
  KERNIX_ASSIGN_OR_RETURN(const std::vector<Binding> bindings, BindTargets(platform, module, names, replace));
  return bindings.front();
}

absl::Status RefuseOnCpu(const std::vector<std::string>& targets, const AnnounceTarget& announce) {
  auto& registry = PerProcess<Registry>::Get();
  for (const std::string& name : targets) {
    const Key key(name, "cpu");
    Handler address = nullptr;
    {
      MutexLock lock(registry.mutex);
      if (registry.targets.contains(key)) continue;
      KERNIX_ASSIGN_OR_RETURN(Trampoline trampoline, registry.trampolines.Create(nullptr));
      trampoline.SetHandler(CudaFunctionOnCpu, registry.names.insert(name).first->c_str());
      address = trampoline.address();
      registry.targets.emplace(key, Target{trampoline, std::nullopt, std::nullopt});
    }
    if (!announce(name, address).ok()) continue;
    MutexLock lock(registry.mutex);
    std::optional<uint32_t>& traits = registry.targets.at(key).traits;
    if (!traits) traits = kernix_ffi_abi::kCommandBufferCompatible;
  }
  return absl::OkStatus();
}

std::vector<TargetInfo> ListTargets() {
  auto& registry = PerProcess<Registry>::Get();
  MutexLock lock(registry.mutex);
  std::vector<TargetInfo> list;
  for (const auto& [key, target] : registry.targets) {
    if (!target.live) continue;
    list.push_back({.target = key.first,
                    .platform = key.second,
                    .module = target.live->module,
                    .artifact_digest = target.live->artifact_digest,
                    .tokens = target.live->function.tokens,
                    .address = target.trampoline.address()});
  }
  return list;
}

}  // namespace kernix
