// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/remote_executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <utility>

#include "build/bazel/remote/execution/v2/remote_execution.pb.h"
#include "common/base/error.h"
#include "common/base/strings.h"
#include "daemon/exec/action_digest.h"
#include "daemon/remote/circuit_breaker.h"
#include "google/longrunning/operations.pb.h"
#include "tests/support/await.h"
#include "tests/support/engine/casd_process.h"
#include "tests/support/engine/fault_proxy.h"
#include "tests/support/run_in_thread.h"
#include "tests/support/test_util.h"
#include "tests/support/upstream_test_util.h"

namespace kernix::remote {
namespace {

namespace reapi = build::bazel::remote::execution::v2;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Notes what it is told. The calls come one after the other.
class Notes : public exec::ActionObserver {
 public:
  void OnQueued(const exec::Action&, int) override { events.emplace_back("queued"); }
  void OnStarted(const exec::Action& action) override { events.push_back("started " + action.step); }
  void OnOutput(std::string_view text) override { events.push_back("output " + std::string(text)); }

  std::vector<std::string> events;
};

// A compile as plans have it: tools through links, and the host compiler's name as a placeholder.
exec::Action Compile(std::string_view source) {
  exec::Action action;
  action.step = "compile";
  action.argv = {"{kernix-host-compiler}", "-c", "-Iinc/0", "-MD", "-MF", "out/a.d", "-o", "out/a.o", "a.cc"};
  action.environment = {{"PATH", "toolchain/host:/usr/bin:/bin"}, {"LC_ALL", "C"}, {"PWD", "/proc/self/cwd"}};
  action.inputs = {exec::MakeInput("a.cc", source)};
  action.outputs = {"out/a.o", "out/a.d"};
  action.salt = DigestOf("the toolchain");
  action.links = {{"toolchain/host", "/usr/bin"}};
  action.local_paths = {{"{kernix-host-compiler}", "toolchain/host/g++"}};
  return action;
}

exec::Action Script(const std::string& script) {
  exec::Action action;
  action.step = "script";
  action.argv = {"/bin/sh", "-c", script};
  action.environment = {{"PATH", "/usr/bin:/bin"}};
  return action;
}

std::shared_ptr<const std::vector<exec::MountedTree>> OneTree(const exec::InputFile& file) {
  exec::MerkleTree tree;
  tree.AddFile(file.path, file.digest);
  return std::make_shared<std::vector<exec::MountedTree>>(
      1, exec::MountedTree{"inc/0", tree.Digest(), std::make_shared<exec::InputTree>(std::vector{file})});
}

class RemoteExecutorTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { engine_ = testing::CasdProcess::Executing().release(); }
  void SetUp() override { KERNIX_NEED_SANDBOX(); }
  static void TearDownTestSuite() { delete std::exchange(engine_, nullptr); }

  absl::StatusOr<exec::ActionResult> Run(exec::Action action, exec::ActionObserver* observer = nullptr,
                                         CancellationPtr cancellation = nullptr) {
    return AwaitValue("the action", Begin(std::move(action), observer, std::move(cancellation)));
  }
  std::future<absl::StatusOr<exec::ActionResult>> Begin(exec::Action action, exec::ActionObserver* observer = nullptr,
                                                        CancellationPtr cancellation = nullptr) {
    auto done = std::make_shared<std::promise<absl::StatusOr<exec::ActionResult>>>();
    auto future = done->get_future();
    threads_.Run(*executor_, std::move(action), exec::OneAsker(UserId{1000}), observer, std::move(cancellation),
                 [done](exec::ActionEnd end) { done->set_value(std::move(end)); });
    return future;
  }
  std::string Shared(const std::string& name) const { return engine_->shared() + "/" + name; }
  void AwaitShared(const std::string& name) {
    Await(name + " of the action", [&] { return env_.Stat(Shared(name)).ok(); });
  }

  static testing::CasdProcess* engine_;
  SteppedEnv env_;
  testing::FaultProxy proxy_{engine_->address()};
  std::unique_ptr<Upstream> upstream_ =
      OpenUpstream(env_, {.address = proxy_.address(), .timeout = std::chrono::seconds(60)});
  UpstreamNumbers numbers_{*upstream_};
  std::unique_ptr<exec::Executor> executor_ = MakeRemoteExecutor(env_, *upstream_, {});
  exec::ActionThreads threads_;
};

testing::CasdProcess* RemoteExecutorTest::engine_ = nullptr;

TEST_F(RemoteExecutorTest, ACompileGivesTheBytesThatThisMachineGives) {
  const testing::TempFolder folder;
  exec::Action action =
      Compile("#include <vector>\n#include \"b.h\"\nint f() { return (int)std::vector<int>(kB).size(); }\n");
  action.trees = OneTree(exec::MakeInput("b.h", "constexpr int kB = 3;\n"));
  const auto here = exec::RunAction(env_, {.scratch_directory = folder.path()}, action, nullptr, nullptr);
  ASSERT_THAT(here, IsOk());
  ASSERT_EQ(here->exit_code, 0) << here->output;
  // The tree is on the disk now: its contents are read back.
  Notes notes;
  const auto there = Run(action, &notes);
  ASSERT_THAT(there, IsOk());
  EXPECT_EQ(there->exit_code, 0) << there->output;
  for (const std::string& path : action.outputs) {
    ASSERT_TRUE(there->outputs.contains(path)) << path;
    EXPECT_TRUE(*there->outputs.at(path) == *here->outputs.at(path)) << path;
  }
  EXPECT_THAT(notes.events, ElementsAre("started compile"));
  // The executor may hold the tree for a moment longer, and who leaves it last removes its folder.
  action = {};
  executor_.reset();
  Await("the removal of the tree", [&] { return env_.ListDirectory(folder.path())->empty(); });
}

TEST_F(RemoteExecutorTest, ACompileThatFailsIsAResult) {
  Notes notes;
  const auto result = Run(Compile("int f() { return nothing; }\n"), &notes);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->exit_code, 1);
  EXPECT_THAT(result->output, HasSubstr("a.cc:1:18: error: 'nothing' was not declared"));
  EXPECT_TRUE(result->outputs.empty() || !result->outputs.contains("out/a.o"));
  EXPECT_THAT(notes.events, ElementsAre("started compile", "output " + result->output));
  EXPECT_EQ(upstream_->state().health, v1::UpstreamStatus::ANSWERS);
}

// Some engines keep failures. A worker may have been mended since.
TEST_F(RemoteExecutorTest, AFailureThatTheEngineHasKeptIsTriedAgain) {
  const exec::Action action = Script("echo run >>/shared/mended; [ -e /shared/tool ] && echo has it");
  auto result = Run(action);
  ASSERT_THAT(result, IsOk());
  EXPECT_NE(result->exit_code, 0);
  ASSERT_THAT(env_.WriteFile(Shared("tool"), "", 0600), IsOk());
  result = Run(action);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->exit_code, 0);
  EXPECT_EQ(result->output, "has it\n");
  EXPECT_EQ(env_.ReadFile(Shared("mended")).value(), "run\nrun\n");
}

TEST_F(RemoteExecutorTest, AnOutputThatIsNotThereIsAnErrorOfACommandThatSucceeds) {
  exec::Action action = Script("echo made >a; exit 0");
  action.outputs = {"a", "b"};
  EXPECT_THAT(Run(action).status(), HasError(absl::StatusCode::kInternal, HasSubstr("without writing \"b\"")));
  action = Script("echo made >a; exit 3");
  action.outputs = {"a", "b"};
  const auto result = Run(action);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(*result->outputs.at("a"), "made\n");
}

// The engine's failures, so the step can run elsewhere.
TEST_F(RemoteExecutorTest, AnOutputWithOtherBytesOrThatIsGoneIsNeverTaken) {
  exec::Action action = Script("echo right >out");
  action.outputs = {"out"};
  ASSERT_THAT(Run(action), IsOk());
  proxy_.Inject({.method = "BatchReadBlobs", .change = [](google::protobuf::Message& message) {
                   auto& answer = static_cast<reapi::BatchReadBlobsResponse&>(message);
                   answer.mutable_responses(0)->set_data("wrong\n");
                 }});
  EXPECT_EQ(KindOf(Run(action).status()), v1::ErrorDetail::INTERNAL);
  proxy_.Inject({.method = "BatchReadBlobs", .answer = grpc::Status(grpc::StatusCode::NOT_FOUND, "it is gone")});
  EXPECT_THAT(Run(action).status(), HasError(absl::StatusCode::kNotFound, HasSubstr("it is gone")));
  const auto again = Run(action);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(*again->outputs.at("out"), "right\n");
}

TEST_F(RemoteExecutorTest, WhatTheCommandPrintsComesBack) {
  const auto result = Run(Script("echo to stdout; echo to stderr >&2"));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->output, "to stdout\nto stderr\n");
}

TEST_F(RemoteExecutorTest, TheEngineRunsTheSameActionOnce) {
  exec::Action action = Script("echo run >>/shared/runs; echo same >a");
  action.outputs = {"a"};
  for (int i = 0; i < 3; ++i) {
    const auto result = Run(action);
    ASSERT_THAT(result, IsOk());
    EXPECT_EQ(*result->outputs.at("a"), "same\n");
  }
  EXPECT_EQ(env_.ReadFile(Shared("runs")).value(), "run\n");
  action.salt = DigestOf("another toolchain");
  ASSERT_THAT(Run(action), IsOk());
  EXPECT_EQ(env_.ReadFile(Shared("runs")).value(), "run\nrun\n");
}

// Whoever may write there can put any result. That the other executor takes it shows that this one could have.
TEST_F(RemoteExecutorTest, WhatIsToRunAnewIsNotTakenFromTheActionCache) {
  exec::Action action = Script("echo run >>/shared/anew; echo good >a");
  action.outputs = {"a"};
  const Blob evil = MakeBlob("evil\n");
  ASSERT_THAT(upstream_->Write({evil}), IsOk());
  ASSERT_THAT(upstream_->PutResult(exec::MessagesOf(action, {}).action, {{"a", evil.digest}}), IsOk());
  const auto cached = Run(action);
  ASSERT_THAT(cached, IsOk());
  EXPECT_EQ(*cached->outputs.at("a"), *evil.content);
  EXPECT_EQ(proxy_.CallsThatSkipTheCache(), 0);

  executor_ = MakeRemoteExecutor(env_, *upstream_, {.run_anew = true});
  for (int i = 1; i <= 2; ++i) {
    const auto result = Run(action);
    ASSERT_THAT(result, IsOk());
    EXPECT_EQ(*result->outputs.at("a"), "good\n");
    EXPECT_FALSE(result->ran_earlier);
    EXPECT_EQ(proxy_.CallsThatSkipTheCache(), i);
  }
  EXPECT_EQ(env_.ReadFile(Shared("anew")).value(), "run\nrun\n");
}

TEST_F(RemoteExecutorTest, AnEngineThatDoesNotRunAnewHasFailed) {
  executor_ = MakeRemoteExecutor(env_, *upstream_, {.run_anew = true});
  proxy_.Inject({.method = "Execute", .times = 0, .change = [](google::protobuf::Message& message) {
                   auto& operation = static_cast<google::longrunning::Operation&>(message);
                   reapi::ExecuteResponse response;
                   if (!operation.response().UnpackTo(&response)) return;
                   response.set_cached_result(true);
                   operation.mutable_response()->PackFrom(response);
                 }});
  const absl::Status status = Run(Script("echo cached")).status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::INTERNAL) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("upstream.trusted_keys"));
}

TEST_F(RemoteExecutorTest, ACancelledActionEndsOnTheEngineToo) {
  const auto cancellation = std::make_shared<Cancellation>();
  auto result = Begin(Script("touch /shared/waits; sleep 1000"), nullptr, cancellation);
  AwaitShared("waits");
  cancellation->Cancel();
  EXPECT_EQ(KindOf(AwaitValue("the end", std::move(result)).status()), v1::ErrorDetail::CANCELLED);
  EXPECT_EQ(proxy_.Calls("CancelOperation"), 1);
  EXPECT_EQ(numbers_.Calls("execute", "cancelled"), 1);
  EXPECT_EQ(upstream_->state().health, v1::UpstreamStatus::ANSWERS);
}

TEST_F(RemoteExecutorTest, AStreamThatBreaksIsPickedUp) {
  proxy_.Inject({.method = "Execute", .times = 1, .cut_after = 1});
  proxy_.Inject({.method = "WaitExecution", .times = 2, .answer = grpc::Status(grpc::StatusCode::UNAVAILABLE, "cut")});
  auto result = Begin(Script("echo run >>/shared/dropped; while [ ! -e /shared/go ]; do sleep 0.05; done; echo done"));
  Await("the stream to be picked up", [&] { return proxy_.Calls("WaitExecution") > 2; });
  ASSERT_THAT(env_.WriteFile(Shared("go"), "", 0600), IsOk());
  const auto ended = AwaitValue("the end", std::move(result));
  ASSERT_THAT(ended, IsOk());
  EXPECT_EQ(ended->output, "done\n");
  EXPECT_EQ(env_.ReadFile(Shared("dropped")).value(), "run\n") << "it ran once";
  EXPECT_EQ(proxy_.Calls("Execute"), 1);
}

TEST_F(RemoteExecutorTest, AnEngineThatStartsAgainRunsTheActionAgain) {
  auto result = Begin(Script("touch /shared/first; [ -e /shared/second ] || sleep 1000; echo done"));
  AwaitShared("first");
  ASSERT_THAT(env_.WriteFile(Shared("second"), "", 0600), IsOk());
  engine_->Stop();
  engine_->Start();
  const auto ended = AwaitValue("the end", std::move(result));
  ASSERT_THAT(ended, IsOk());
  EXPECT_EQ(ended->output, "done\n");
}

TEST_F(RemoteExecutorTest, AnEngineThatStaysAwayIsAnErrorOfTheEngine) {
  const auto engine = testing::CasdProcess::Executing();
  const auto upstream = OpenUpstream(env_, {.address = engine->address(), .timeout = std::chrono::seconds(3)});
  executor_ = MakeRemoteExecutor(env_, *upstream, {});
  auto result = Begin(Script("touch /shared/started; sleep 1000"));
  Await("the action", [&] { return env_.Stat(engine->shared() + "/started").ok(); });
  engine->Stop();
  const absl::Status status = AwaitValue("the end", std::move(result)).status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::UNREACHABLE) << status;
  executor_.reset();
}

// The engine is not asked each time whether it has thousands of files. It may have dropped them.
TEST_F(RemoteExecutorTest, AShippedFolderIsSentOnceAndAgainWhenTheEngineHasLostIt) {
  const testing::TempFolder folder;
  folder.Write("tools/bin/greet", "#!/bin/sh\necho \"$(cat toolchain/tools/words) $1\"\n", /*executable=*/true);
  folder.Write("tools/words", "hello");
  executor_ = MakeRemoteExecutor(env_, *upstream_, {.shipped_folders = {folder.File("tools")}});
  const auto greet = [&](const std::string& whom) {
    exec::Action action = Script("");
    action.argv = {"toolchain/tools/bin/greet", whom};
    action.links = {{"toolchain/tools", folder.File("tools")}};
    const auto result = Run(action);
    EXPECT_THAT(result, IsOk());
    return result.ok() ? result->output : "";
  };
  EXPECT_EQ(greet("one"), "hello one\n");
  EXPECT_EQ(greet("two"), "hello two\n");
  EXPECT_EQ(proxy_.Calls("Execute"), 2);
  engine_->LoseEverything();
  EXPECT_EQ(greet("three"), "hello three\n");
  EXPECT_EQ(proxy_.Calls("Execute"), 4) << "one that failed for want of the folder, and another one";
  folder.Write("tools/words", "good evening");
  EXPECT_EQ(greet("four"), "good evening four\n");
}

// What an engine says that has lost a worker, say.
void EndWith(google::protobuf::Message& message, grpc::StatusCode code) {
  auto& operation = static_cast<google::longrunning::Operation&>(message);
  if (!operation.done()) return;
  reapi::ExecuteResponse response;
  response.mutable_status()->set_code(code);
  response.mutable_status()->set_message("the worker is gone");
  operation.mutable_response()->PackFrom(response);
}

// The engine says that it has everything, as if it had lost a part only then.
TEST_F(RemoteExecutorTest, WhatTheEngineHasLostMeanwhileIsSentAgain) {
  proxy_.Inject({.method = "FindMissingBlobs", .change = [](google::protobuf::Message& message) {
                   static_cast<reapi::FindMissingBlobsResponse&>(message).clear_missing_blob_digests();
                 }});
  exec::Action action = Script("cat lost");
  action.inputs = {exec::MakeInput("lost", "and sent again\n")};
  const auto result = Run(action);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->output, "and sent again\n");
  EXPECT_EQ(proxy_.Calls("Execute"), 2);
  EXPECT_EQ(proxy_.Calls("FindMissingBlobs"), 2);
}

// The specified code for a part that the engine lacks, as an answer to the call and as the end of an action.
TEST_F(RemoteExecutorTest, APreconditionThatFailsIsTriedAgainAndSaysNothingOfTheEnginesHealth) {
  const grpc::Status lacks(grpc::StatusCode::FAILED_PRECONDITION, "a blob is missing");
  proxy_.Inject({.method = "Execute", .answer = lacks});
  proxy_.Inject({.method = "Execute", .change = [](google::protobuf::Message& message) {
                   EndWith(message, grpc::StatusCode::FAILED_PRECONDITION);
                 }});
  const auto result = Run(Script("echo the third time"));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->output, "the third time\n");
  EXPECT_EQ(proxy_.Calls("Execute"), 3);

  proxy_.Inject({.method = "Execute", .times = 0, .answer = lacks});
  for (int i = 1; i <= CircuitBreaker::kFailuresToOpen; ++i) {
    const absl::Status status = Run(Script(StrCat("echo never ", i))).status();
    EXPECT_TRUE(IsNoWorker(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("a blob is missing"), HasSubstr("upstream.platform")));
    EXPECT_EQ(proxy_.Calls("Execute"), 3 + 3 * i);
    EXPECT_EQ(proxy_.Calls("FindMissingBlobs"), 3 + 3 * i) << "it is asked anew each time";
  }
  // Steps that run at the same time end one after the other, with no other call between.
  for (int i = 0; i < CircuitBreaker::kFailuresToOpen; ++i) {
    EXPECT_TRUE(IsNoWorker(upstream_->Execute(exec::BlobDigestOf("an action"), {}, nullptr).status()));
  }
  EXPECT_EQ(upstream_->state().health, v1::UpstreamStatus::ANSWERS);
}

TEST_F(RemoteExecutorTest, APreconditionOfAnotherCallThatFailsIsAFailureOfTheEngine) {
  const grpc::Status fails(grpc::StatusCode::FAILED_PRECONDITION, "not ready");
  proxy_.Inject({.method = "FindMissingBlobs", .times = 0, .answer = fails});
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = Run(Script(StrCat("echo ", i))).status();
    EXPECT_FALSE(IsNoWorker(status)) << status;
    EXPECT_EQ(proxy_.Calls("Execute"), 0);
  }
  EXPECT_EQ(upstream_->state().health, v1::UpstreamStatus::BROKEN);
}

TEST_F(RemoteExecutorTest, AnEngineThatFindsOutLateWhatItLacksIsNotAskedAgain) {
  proxy_.Inject({.method = "Execute", .times = 0, .change = [&](google::protobuf::Message& message) {
                   env_.AdvanceClock(std::chrono::seconds(61));
                   EndWith(message, grpc::StatusCode::FAILED_PRECONDITION);
                 }});
  EXPECT_TRUE(IsNoWorker(Run(Script("echo late")).status()));
  EXPECT_EQ(proxy_.Calls("Execute"), 1);
}

// buildbox-casd names no stage.
void SayThatItWaits(google::protobuf::Message& message) {
  auto& operation = static_cast<google::longrunning::Operation&>(message);
  if (operation.done()) return;
  reapi::ExecuteOperationMetadata metadata;
  metadata.set_stage(reapi::ExecutionStage::QUEUED);
  operation.mutable_metadata()->PackFrom(metadata);
}

TEST_F(RemoteExecutorTest, AnActionThatWaitsForAWorkerIsSaidToWait) {
  proxy_.Inject({.method = "Execute", .change = SayThatItWaits});
  Notes notes;
  ASSERT_THAT(Run(Script("echo it waited"), &notes), IsOk());
  EXPECT_THAT(notes.events, ElementsAre("queued", "started script", "output it waited\n"));
}

// So that the step can run elsewhere. The engine is as good a cache as ever.
TEST_F(RemoteExecutorTest, AnActionThatNoWorkerTakesIsGivenUpAtTheQueueLimit) {
  proxy_.Inject({.method = "Execute", .times = 0, .change = SayThatItWaits});
  executor_ = MakeRemoteExecutor(env_, *upstream_, {.queue_limit = Duration(300)});
  for (int i = 1; i <= CircuitBreaker::kFailuresToOpen; ++i) {
    const absl::Status status = Run(Script(StrCat("sleep 1000; echo ", i))).status();
    EXPECT_TRUE(IsNoWorker(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("within 300 ms"), HasSubstr("upstream.queue_timeout")));
    EXPECT_EQ(proxy_.Calls("CancelOperation"), i);
  }
  EXPECT_EQ(upstream_->state().health, v1::UpstreamStatus::ANSWERS);
  EXPECT_EQ(numbers_.Calls("execute", "absent"), CircuitBreaker::kFailuresToOpen);
}

// A stream that breaks does not give it more time.
TEST_F(RemoteExecutorTest, TheQueueLimitIsThatOfAllStreamsOfAnAction) {
  proxy_.Inject({.method = "Execute", .times = 1, .cut_after = 1, .change = SayThatItWaits});
  proxy_.Inject({.method = "WaitExecution", .times = 0, .hang = true});
  executor_ = MakeRemoteExecutor(env_, *upstream_, {.queue_limit = Duration(500)});
  const absl::Status status = Run(Script("sleep 1000")).status();
  EXPECT_TRUE(IsNoWorker(status)) << status;
  EXPECT_GE(proxy_.Calls("WaitExecution"), 1);
}

TEST_F(RemoteExecutorTest, WhatStillWaitsAtTheTimeLimitHasNoWorkerEither) {
  proxy_.Inject({.method = "Execute", .times = 0, .change = SayThatItWaits});
  const auto upstream = OpenUpstream(env_, {.address = proxy_.address(), .timeout = std::chrono::seconds(3)});
  executor_ = MakeRemoteExecutor(env_, *upstream, {.queue_limit = Duration(0)});
  exec::Action action = Script("sleep 1000");
  action.timeout = Duration(1);
  const absl::Status status = Run(action).status();
  EXPECT_TRUE(IsNoWorker(status)) << status;
  EXPECT_EQ(proxy_.Calls("CancelOperation"), 1);
  executor_.reset();
}

TEST_F(RemoteExecutorTest, AnActionThatRunsHasNoQueueLimit) {
  executor_ = MakeRemoteExecutor(env_, *upstream_, {.queue_limit = Duration(300)});
  const auto result = Run(Script("sleep 1; echo it ran"));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->output, "it ran\n");
  EXPECT_EQ(proxy_.Calls("Execute"), 1);
  EXPECT_EQ(proxy_.Calls("CancelOperation"), 0);
}

TEST_F(RemoteExecutorTest, InAPauseOnlyWhatNeedsAWorkerIsSent) {
  WorkerPause pause(env_);
  executor_ = MakeRemoteExecutor(env_, *upstream_, {.pause = &pause});
  pause.NotTaken("no worker came");
  exec::Action action = Script("echo it ran");
  EXPECT_THAT(Run(action).status(), HasError(absl::StatusCode::kFailedPrecondition, HasSubstr("no worker came")));
  EXPECT_EQ(proxy_.Calls("Execute"), 0);
  action.needs_worker = true;
  ASSERT_THAT(Run(action), IsOk());
  const auto again = Run(action);
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->ran_earlier);
  executor_.reset();
}

TEST_F(RemoteExecutorTest, AnEngineWithTooMuchToDoIsAskedAgain) {
  proxy_.Inject({.method = "Execute",
                 .times = 2,
                 .answer = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too many actions")});
  ASSERT_THAT(Run(Script("echo there is room")), IsOk());
  EXPECT_EQ(proxy_.Calls("Execute"), 3);
  proxy_.Inject({.method = "Execute",
                 .times = 0,
                 .answer = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too many actions")});
  const absl::Status status = Run(Script("echo there is none")).status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("too many actions"));
  EXPECT_EQ(proxy_.Calls("Execute"), 3 + 4);
}

TEST_F(RemoteExecutorTest, AnActionThatTheEngineLosesRunsAgain) {
  proxy_.Inject({.method = "Execute", .times = 2, .change = [](google::protobuf::Message& message) {
                   EndWith(message, grpc::StatusCode::UNAVAILABLE);
                 }});
  const auto result = Run(Script("echo survived"));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->output, "survived\n");
  EXPECT_EQ(proxy_.Calls("Execute"), 3);
}

TEST_F(RemoteExecutorTest, AnActionThatTheEngineKeepsLosingIsAnErrorOfTheEngine) {
  proxy_.Inject({.method = "Execute", .times = 0, .change = [](google::protobuf::Message& message) {
                   EndWith(message, grpc::StatusCode::UNAVAILABLE);
                 }});
  const absl::Status status = Run(Script("echo lost")).status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::UNREACHABLE) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the worker is gone"));
  EXPECT_EQ(proxy_.Calls("Execute"), 4);
}

TEST_F(RemoteExecutorTest, TheEnginesTimeLimitIsALimitOfTheStep) {
  proxy_.Inject({.method = "Execute", .times = 0, .change = [](google::protobuf::Message& message) {
                   EndWith(message, grpc::StatusCode::DEADLINE_EXCEEDED);
                 }});
  for (int i = 0; i < 2 * CircuitBreaker::kFailuresToOpen; ++i) {
    const absl::Status status = Run(Script(StrCat("echo ", i))).status();
    EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("time limit"));
  }
  EXPECT_EQ(upstream_->state().health, v1::UpstreamStatus::ANSWERS);
}

TEST_F(RemoteExecutorTest, AStepThatDoesNotEndIsStopped) {
  const auto upstream = OpenUpstream(env_, {.address = proxy_.address(), .timeout = std::chrono::seconds(3)});
  executor_ = MakeRemoteExecutor(env_, *upstream, {.queue_limit = Duration(0)});
  exec::Action action = Script("sleep 1000");
  action.timeout = Duration(1);
  const absl::Status status = Run(action).status();
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE) << status;
  EXPECT_EQ(proxy_.Calls("CancelOperation"), 1);
  executor_.reset();
}

TEST_F(RemoteExecutorTest, OutputsHaveALimit) {
  executor_ = MakeRemoteExecutor(env_, *upstream_, {.max_output_bytes = 1000});
  exec::Action action = Script("head -c 2000 /dev/zero >a");
  action.outputs = {"a"};
  EXPECT_EQ(KindOf(Run(action).status()), v1::ErrorDetail::RESOURCE);
}

TEST_F(RemoteExecutorTest, APlatformIsPartOfTheAction) {
  executor_ = MakeRemoteExecutor(env_, *upstream_, {.platform = {{"OSFamily", "linux"}, {"ISA", "x86-64"}}});
  exec::Action action = Script("echo run >>/shared/platform; echo a");
  ASSERT_THAT(Run(action), IsOk());
  executor_ = MakeRemoteExecutor(env_, *upstream_, {});
  ASSERT_THAT(Run(action), IsOk());
  EXPECT_EQ(env_.ReadFile(Shared("platform")).value(), "run\nrun\n");
}

TEST_F(RemoteExecutorTest, AnEngineThatTakesNoLinksIsNotSentAny) {
  proxy_.Inject({.method = "GetCapabilities", .times = 0, .change = [](google::protobuf::Message& message) {
                   static_cast<reapi::ServerCapabilities&>(message)
                       .mutable_cache_capabilities()
                       ->set_symlink_absolute_path_strategy(reapi::SymlinkAbsolutePathStrategy::DISALLOWED);
                 }});
  EXPECT_THAT(Run(Compile("int a;")).status(), HasError(absl::StatusCode::kFailedPrecondition, HasSubstr("/usr/bin")));
  EXPECT_EQ(proxy_.Calls("Execute"), 0);
  EXPECT_THAT(Run(Script("echo no links")), IsOk());
}

TEST_F(RemoteExecutorTest, WhatRunsOnlyHereIsNotSent) {
  exec::Action names_root = Script("true");
  names_root.argv.push_back(std::string(exec::kRootPlaceholder) + "/x");
  EXPECT_THAT(Run(names_root).status(), HasError(absl::StatusCode::kFailedPrecondition, HasSubstr("absolute path")));
  exec::Action in_environment = Script("true");
  in_environment.environment["TMPDIR"] = std::string(exec::kRootPlaceholder);
  EXPECT_THAT(CheckRunsRemotely(in_environment), HasError(absl::StatusCode::kFailedPrecondition, HasSubstr("TMPDIR")));
  exec::Action shell = Script("true; false");
  shell.tool_uses_shell = true;
  EXPECT_EQ(KindOf(CheckRunsRemotely(shell)), v1::ErrorDetail::INTERNAL);
  EXPECT_THAT(CheckRunsRemotely(Compile("")), IsOk());
  EXPECT_EQ(proxy_.Calls("Execute"), 0);
}

}  // namespace
}  // namespace kernix::remote
