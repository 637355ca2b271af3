// SPDX-License-Identifier: Apache-2.0
#include "kernix/targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <utility>

#include "client/runtime/handlers.h"
#include "common/base/error.h"
#include "common/base/strings.h"
#include "kernel/brainevent/internal/ffi_abi.h"
#include "kernix/call_frame.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

template <uintptr_t kId>
XLA_FFI_Error* Numbered(XLA_FFI_CallFrame*) {
  return reinterpret_cast<XLA_FFI_Error*>(kId);
}

uintptr_t Call(Handler handler) { return reinterpret_cast<uintptr_t>(handler(nullptr)); }

// A module with one function.
class OneFunction : public Module {
 public:
  OneFunction(std::string digest, FunctionInfo function)
      : digest_(std::move(digest)), functions_{std::move(function)} {}

  const std::string& name() const override { return name_; }
  Language language() const override { return Language::kCpp; }
  const std::string& path() const override { return name_; }
  const std::vector<FunctionInfo>& functions() const override { return functions_; }
  absl::StatusOr<Handler> handler(std::string_view function) const override {
    if (function == functions_[0].name) return functions_[0].handler;
    return absl::NotFoundError("no such function");
  }
  const std::string& key() const override { return digest_; }
  const std::string& artifact_digest() const override { return digest_; }
  Origin origin() const override { return Origin::kBuilt; }
  uint64_t build_ms() const override { return 0; }
  const std::string& miss_reason() const override { return name_; }
  std::string_view artifact() const override { return artifact_; }
  absl::StatusOr<ModuleTexts> texts() const override { return texts_; }

 private:
  std::string name_ = "m";
  std::string digest_;
  ModuleTexts texts_;
  std::string artifact_;
  std::vector<FunctionInfo> functions_;
};

OneFunction MakeModule(const std::string& digest, Handler handler, std::vector<std::string> tokens = {"arg", "ret"},
                       uint32_t traits = 0) {
  return OneFunction(digest, {.name = "f", .tokens = std::move(tokens), .handler = handler, .traits = traits});
}

// Targets exist until the process ends, so each test uses its own names.
std::string Name() {
  static int next = 0;
  return StrCat("targets_test.f", next++);
}

TEST(BindTargetTest, ANewNameGetsAStableAddress) {
  const std::string name = Name();
  const OneFunction module = MakeModule("aa", Numbered<1>);
  const auto first = BindTarget(name, "cpu", module, "f", false);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->outcome, BindOutcome::kNew);
  EXPECT_EQ(Call(first->address), 1u);
  const auto again = BindTarget(name, "cpu", module, "f", false);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->outcome, BindOutcome::kUnchanged);
  EXPECT_EQ(again->address, first->address);
}

TEST(BindTargetTest, OtherCodeNeedsReplace) {
  const std::string name = Name();
  const auto first = BindTarget(name, "cpu", MakeModule("aa", Numbered<1>), "f", false);
  const auto refused = BindTarget(name, "cpu", MakeModule("bb", Numbered<2>), "f", false);
  EXPECT_EQ(KindOf(refused.status()), v1::ErrorDetail::REGISTRATION);
  EXPECT_THAT(refused.status().ToString(),
              AllOf(HasSubstr(name), HasSubstr("replace=True"), HasSubstr("target_prefix")));
  EXPECT_EQ(Call(first->address), 1u);

  const auto replaced = BindTarget(name, "cpu", MakeModule("bb", Numbered<2>), "f", true);
  ASSERT_TRUE(replaced.ok()) << replaced.status();
  EXPECT_EQ(replaced->outcome, BindOutcome::kReplaced);
  EXPECT_EQ(replaced->address, first->address);
  EXPECT_EQ(Call(first->address), 2u);
}

TEST(BindTargetTest, ASignatureMayChangeUnderALiveName) {
  const std::string name = Name();
  const auto first = BindTarget(name, "cpu", MakeModule("aa", Numbered<1>), "f", false);
  ASSERT_TRUE(BindTarget(name, "cpu", MakeModule("bb", Numbered<2>, {"arg", "arg", "ret"}), "f", true).ok());
  EXPECT_EQ(Call(first->address), 2u);
}

TEST(BindTargetTest, TraitsCannotChangeUnderALiveName) {
  const std::string name = Name();
  ASSERT_TRUE(BindTarget(name, "CUDA", MakeModule("aa", Numbered<1>, {"arg", "ret"}, 1), "f", false).ok());
  const auto refused = BindTarget(name, "CUDA", MakeModule("bb", Numbered<2>, {"arg", "ret"}, 0), "f", true);
  EXPECT_EQ(KindOf(refused.status()), v1::ErrorDetail::REGISTRATION);
  EXPECT_THAT(refused.status().ToString(), HasSubstr("allow_cuda_graph"));
}

TEST(BindTargetTest, OneArtifactMayServeTwoNamesAndTwoPlatforms) {
  const std::string a = Name(), b = Name();
  const OneFunction module = MakeModule("aa", Numbered<1>);
  const Handler cpu = BindTarget(a, "cpu", module, "f", false)->address;
  const Handler cuda = BindTarget(a, "CUDA", module, "f", false)->address;
  const Handler other = BindTarget(b, "cpu", module, "f", false)->address;
  EXPECT_NE(cpu, cuda);
  EXPECT_NE(cpu, other);
  ASSERT_TRUE(BindTarget(b, "cpu", MakeModule("bb", Numbered<2>), "f", true).ok());
  EXPECT_EQ(Call(cpu), 1u);
  EXPECT_EQ(Call(other), 2u);
}

TEST(RefuseOnCpuTest, ANameCanBeBoundLaterAndKeepsItsAddress) {
  const std::string name = Name(), bound = Name(), refused = Name();
  const Handler own = BindTarget(bound, "cpu", MakeModule("aa", Numbered<1>), "f", false)->address;
  std::map<std::string, Handler> announced;
  const auto announce = [&](const std::string& target, Handler address) {
    if (target == refused) return absl::AbortedError("taken");
    announced[target] = address;
    return absl::OkStatus();
  };
  ASSERT_TRUE(RefuseOnCpu({name, bound, refused}, announce).ok());
  EXPECT_EQ(announced.size(), 1u);
  EXPECT_EQ(ProbeHandler(announced[name]).value(), 1u);
  const absl::Status status = CallFrame().Call(announced[name]);
  EXPECT_THAT(status.ToString(), AllOf(HasSubstr(name), HasSubstr("is CUDA code, which runs on a GPU")));
  EXPECT_EQ(Call(own), 1u);
  ASSERT_TRUE(RefuseOnCpu({name}, announce).ok());
  for (const TargetInfo& info : ListTargets()) EXPECT_NE(info.target, name) << "no code is live";
  const OneFunction module = MakeModule("bb", Numbered<2>, {"arg", "ret"}, 1);
  const auto binding = BindTargets("cpu", module, {{name, "f"}}, false, announce);
  ASSERT_TRUE(binding.ok()) << binding.status();
  EXPECT_EQ(binding->front().address, announced[name]);
  EXPECT_EQ(Call(announced[name]), 2u);
  ASSERT_TRUE(BindTargets("cpu", module, {{refused, "f"}}, false, [&](const std::string&, Handler) {
                return absl::OkStatus();
              }).ok());
}

TEST(BindTargetTest, RefusesWhatCannotBe) {
  const OneFunction module = MakeModule("aa", Numbered<1>);
  EXPECT_EQ(KindOf(BindTarget("", "cpu", module, "f", false).status()), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_EQ(KindOf(BindTarget(Name(), "tpu", module, "f", false).status()), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_TRUE(absl::IsNotFound(BindTarget(Name(), "cpu", module, "g", false).status()));
}

// --- Several at once
// --------------------------------------------------------------------------------------------------

// A module with the functions "f" and "g".
class TwoFunctions : public OneFunction {
 public:
  TwoFunctions(const std::string& digest, Handler f, Handler g, uint32_t f_traits = 0, uint32_t g_traits = 0)
      : OneFunction(digest, {.name = "f", .handler = f, .traits = f_traits}),
        functions_{OneFunction::functions()[0], {.name = "g", .handler = g, .traits = g_traits}} {}

  const std::vector<FunctionInfo>& functions() const override { return functions_; }
  absl::StatusOr<Handler> handler(std::string_view function) const override {
    return functions_[function == "f" ? 0 : 1].handler;
  }

 private:
  std::vector<FunctionInfo> functions_;
};

bool IsListed(const std::string& name) {
  const std::vector<TargetInfo> list = ListTargets();
  return std::any_of(list.begin(), list.end(), [&](const TargetInfo& info) { return info.target == name; });
}

TEST(BindTargetsTest, NothingIsReplacedWhenOneNameIsRefused) {
  const std::string a = Name(), b = Name(), fresh = Name();
  const auto first = BindTargets("cpu", TwoFunctions("aa", Numbered<1>, Numbered<2>), {{a, "f"}, {b, "g"}}, false);
  ASSERT_TRUE(first.ok()) << first.status();
  const TwoFunctions other("bb", Numbered<3>, Numbered<4>, 0, 1);
  const auto refused = BindTargets("cpu", other, {{fresh, "f"}, {a, "f"}, {b, "g"}}, true);
  EXPECT_EQ(KindOf(refused.status()), v1::ErrorDetail::REGISTRATION);
  EXPECT_EQ(Call((*first)[0].address), 1u);
  EXPECT_EQ(Call((*first)[1].address), 2u);
  EXPECT_FALSE(IsListed(fresh));
}

TEST(BindTargetsTest, ARuntimeHearsOfNewNamesOnly) {
  const std::string a = Name(), b = Name();
  ASSERT_TRUE(BindTargets("cpu", MakeModule("aa", Numbered<1>), {{a, "f"}}, false).ok());
  std::vector<std::string> told;
  const auto bindings = BindTargets("cpu", TwoFunctions("bb", Numbered<3>, Numbered<4>), {{a, "f"}, {b, "g"}}, true,
                                    [&](const std::string& target, Handler) {
                                      told.push_back(target);
                                      return absl::OkStatus();
                                    });
  ASSERT_TRUE(bindings.ok()) << bindings.status();
  EXPECT_THAT(told, ::testing::ElementsAre(b));
  EXPECT_EQ((*bindings)[0].outcome, BindOutcome::kReplaced);
  EXPECT_EQ((*bindings)[1].outcome, BindOutcome::kNew);
}

TEST(BindTargetsTest, WhatARuntimeRefusesLeavesNothingBehind) {
  const std::string a = Name(), b = Name();
  const auto live = BindTargets("cpu", MakeModule("aa", Numbered<1>), {{a, "f"}}, false);
  ASSERT_TRUE(live.ok());
  const TwoFunctions next("bb", Numbered<3>, Numbered<4>);
  const std::vector<TargetName> names = {{a, "f"}, {b, "g"}};
  Handler reserved = nullptr;
  const auto refuse = [&](const std::string&, Handler address) {
    reserved = address;
    return absl::AlreadyExistsError("taken");
  };
  EXPECT_TRUE(absl::IsAlreadyExists(BindTargets("cpu", next, names, true, refuse).status()));
  EXPECT_EQ(Call((*live)[0].address), 1u);
  EXPECT_FALSE(IsListed(b));

  const auto again = BindTargets("cpu", next, names, true);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)[1].outcome, BindOutcome::kNew);
  EXPECT_EQ((*again)[1].address, reserved);  // the runtime may have kept it
  EXPECT_EQ(Call((*live)[0].address), 3u);
}

// A bind in which the runtime accepts the first of two names and refuses the second.
struct HalfRefused {
  std::string first = Name(), second = Name();
  Handler first_address = nullptr;
  uint32_t first_traits = 0;  // as the runtime reads them during the announcement

  explicit HalfRefused(uint32_t traits) {
    const TwoFunctions module("aa", Numbered<1>, Numbered<2>, traits, traits);
    const auto announce = [&](const std::string& target, Handler address) {
      if (target == second) return absl::AlreadyExistsError("taken");
      first_address = address;
      first_traits = ProbeHandler(address).value();
      return absl::OkStatus();
    };
    const auto refused = BindTargets("CUDA", module, {{first, "f"}, {second, "g"}}, false, announce);
    EXPECT_TRUE(absl::IsAlreadyExists(refused.status())) << refused.status();
  }
};

TEST(BindTargetsTest, ARuntimeReadsTheTraitsOfANewName) {
  EXPECT_EQ(HalfRefused(1).first_traits, 1u);
  EXPECT_EQ(HalfRefused(0).first_traits, 0u);
}

TEST(BindTargetsTest, TraitsThatARuntimeHasNotedStayWhateverBecomesOfTheBind) {
  const HalfRefused half(1);
  const auto changed = BindTarget(half.first, "CUDA", MakeModule("bb", Numbered<3>), "f", true);
  EXPECT_EQ(KindOf(changed.status()), v1::ErrorDetail::REGISTRATION);
  EXPECT_THAT(changed.status().ToString(), HasSubstr("allow_cuda_graph"));
  const auto same = BindTarget(half.first, "CUDA", MakeModule("bb", Numbered<3>, {"arg", "ret"}, 1), "f", false);
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->address, half.first_address);
  EXPECT_EQ(Call(same->address), 3u);
  // The runtime has recorded nothing about the name that it refused.
  EXPECT_TRUE(BindTarget(half.second, "CUDA", MakeModule("bb", Numbered<3>), "f", false).ok());
}

std::string the_error;

kernix_ffi_abi::Error* NoteError(kernix_ffi_abi::ErrorCreateArgs* args) {
  the_error = args->message;
  return reinterpret_cast<kernix_ffi_abi::Error*>(&the_error);
}

TEST(BindTargetsTest, ANameWithoutCodeSaysSoWhenItIsCalled) {
  const HalfRefused half(0);
  kernix_ffi_abi::Api api = {};
  api.error_create = NoteError;
  kernix_ffi_abi::CallFrame frame = {};
  frame.struct_size = sizeof(frame);
  frame.api = &api;
  EXPECT_NE(half.first_address(reinterpret_cast<XLA_FFI_CallFrame*>(&frame)), nullptr);
  EXPECT_THAT(the_error, HasSubstr("no kernel is loaded"));
}

// Another thread may do this between the check and the commit.
TEST(BindTargetsTest, WhatIsBoundWhileARuntimeIsToldStays) {
  const std::string a = Name(), b = Name();
  Handler bound = nullptr;
  const auto announce = [&](const std::string& target, Handler) {
    if (target == b) bound = BindTarget(a, "cpu", MakeModule("bb", Numbered<7>), "f", false)->address;
    return absl::OkStatus();
  };
  const TwoFunctions module("aa", Numbered<1>, Numbered<2>);
  const auto late = BindTargets("cpu", module, {{a, "f"}, {b, "g"}}, false, announce);
  EXPECT_EQ(KindOf(late.status()), v1::ErrorDetail::REGISTRATION);
  EXPECT_EQ(Call(bound), 7u);
  EXPECT_FALSE(IsListed(b));
}

TEST(BindTargetsTest, ANameComesOnce) {
  const std::string name = Name();
  const auto twice = BindTargets("cpu", MakeModule("aa", Numbered<1>), {{name, "f"}, {name, "f"}}, true);
  EXPECT_EQ(KindOf(twice.status()), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_FALSE(IsListed(name));
}

TEST(BindTargetTest, ListsWhatIsLive) {
  const std::string name = Name();
  const Handler address = BindTarget(name, "cpu", MakeModule("aa", Numbered<1>), "f", false)->address;
  ASSERT_TRUE(BindTarget(name, "cpu", MakeModule("bb", Numbered<2>), "f", true).ok());
  int found = 0;
  for (const TargetInfo& target : ListTargets()) {
    if (target.target != name) continue;
    ++found;
    EXPECT_EQ(target.platform, "cpu");
    EXPECT_EQ(target.module, "m");
    EXPECT_EQ(target.artifact_digest, "bb");
    EXPECT_THAT(target.tokens, ::testing::ElementsAre("arg", "ret"));
    EXPECT_EQ(target.address, address);
  }
  EXPECT_EQ(found, 1);
}

TEST(BindTargetTest, ThreadsBindReplaceAndCallAtOnce) {
  const std::string name = Name();
  const OneFunction a = MakeModule("aa", Numbered<1>), b = MakeModule("bb", Numbered<2>);
  const Handler address = BindTarget(name, "cpu", a, "f", false)->address;
  std::atomic<int> wrong{0}, created{0}, done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        const auto bound = BindTarget(name, "cpu", (i + t) % 2 == 0 ? a : b, "f", true);
        if (!bound.ok() || bound->address != address || bound->outcome == BindOutcome::kNew) ++wrong;
        // Many threads request a new name; one of them creates it.
        const auto fresh = BindTarget(StrCat(name, ".", i), "cpu", a, "f", false);
        if (!fresh.ok()) ++wrong;
        if (fresh.ok() && fresh->outcome == BindOutcome::kNew) ++created;
      }
      ++done;
    });
  }
  threads.emplace_back([&] {
    do {
      const uintptr_t id = Call(address);
      if (id != 1 && id != 2) ++wrong;
      (void)ListTargets();
    } while (done < 4);
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(created, 2000);
}

}  // namespace
}  // namespace kernix
