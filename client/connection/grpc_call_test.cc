// SPDX-License-Identifier: Apache-2.0
#include "client/connection/grpc_call.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "client/connection/endpoint.h"
#include "client/connection/load_runner.h"
#include "common/base/error.h"
#include "common/wire/grpc_status.h"
#include "kernix/v1/kernix.grpc.pb.h"
#include "tests/support/await.h"

namespace kernix {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

constexpr milliseconds kLong = std::chrono::minutes(2);
constexpr size_t kLarge = 20 << 20;

class Service final : public v1::Kernix::Service {
 public:
  // Does not answer.
  grpc::Status GetInfo(grpc::ServerContext* context, const v1::GetInfoRequest*, v1::GetInfoResponse*) override {
    while (!context->IsCancelled()) std::this_thread::yield();
    ++given_up;
    return grpc::Status::CANCELLED;
  }

  grpc::Status GetMetrics(grpc::ServerContext*, const v1::GetMetricsRequest*,
                          v1::GetMetricsResponse* response) override {
    response->set_text(std::string(kLarge, 'm'));
    return grpc::Status::OK;
  }

  grpc::Status Shutdown(grpc::ServerContext*, const v1::ShutdownRequest* request, v1::ShutdownResponse*) override {
    return ToGrpcStatus(MakeError(v1::ErrorDetail::RESOURCE, request->reason()));
  }

  grpc::Status Reload(grpc::ServerContext*, const v1::ReloadRequest*, v1::ReloadResponse*) override {
    return {grpc::StatusCode::NOT_FOUND, "100 % \xc3\xa4\nb"};
  }

  // Asks for a header, says what a load says, and how long the header is. A request without a name: prints until it is
  // cancelled.
  grpc::Status Load(grpc::ServerContext* context,
                    grpc::ServerReaderWriter<v1::LoadEvent, v1::LoadClientMessage>* stream) override {
    v1::LoadClientMessage message;
    stream->Read(&message);
    v1::LoadEvent event;
    while (message.request().name().empty() && !context->IsCancelled()) {
      event.mutable_output()->set_text("line");
      stream->Write(event);
    }
    if (context->IsCancelled()) return ++given_up, grpc::Status::CANCELLED;
    event.mutable_need_blobs()->add_digest(DigestOf("header").Raw());
    stream->Write(event);
    size_t size = 0;
    do {
      if (!stream->Read(&message)) break;
      size += message.blob().chunk().size();
    } while (!message.blob().last());
    event.mutable_progress()->set_state(v1::Progress::QUEUED);
    event.mutable_progress()->set_queue_position(2);
    stream->Write(event);
    stream->Write(event);  // no news
    event.mutable_output()->set_command("g++ -c");
    stream->Write(event);
    event.mutable_result()->set_build_ms(size);
    stream->Write(event);
    return grpc::Status::OK;
  }

  std::atomic<int> given_up{0};
};

class GrpcCallTest : public ::testing::Test {
 protected:
  GrpcCallTest() { service().given_up = 0; }

  template <typename Request, typename Response>
  absl::Status Call(std::string_view method, const Request& request, Response& response, milliseconds limit = kLong) {
    return CallOnce(*session_.connection, session_.peer, method, request, response, limit, caller_);
  }

  ConversationOutcome Load(const std::string& name, const LoadCallbacks& callbacks, Caller& caller) {
    v1::LoadClientMessage request;
    request.mutable_request()->set_name(name);
    const BlobProvider blobs = [](const Digest&) { return std::string(kLarge, 'h'); };
    return ConverseAboutLoad(session_, request, blobs, callbacks, caller);
  }

  static Service& service() {
    static auto* service = new Service;
    return *service;
  }

  // A connection to a server for all tests: its end may take gRPC ten seconds.
  static UniqueFd Connect() {
    using grpc::experimental::ExternalConnectionAcceptor;
    static std::unique_ptr<ExternalConnectionAcceptor> acceptor;
    static grpc::Server* const server = [] {
      grpc::ServerBuilder builder;
      builder.RegisterService(&service());
      acceptor = builder.experimental().AddExternalConnectionAcceptor(
          grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, grpc::InsecureServerCredentials());
      return builder.BuildAndStart().release();
    }();
    EXPECT_NE(server, nullptr);
    auto [ours, theirs] = MakeSocketPair().value();
    ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.fd = theirs.release();
    acceptor->HandleNewConnection(&parameters);
    return std::move(ours);
  }

  Session session_{.connection = std::make_unique<Http2Connection>(Connect()), .peer = "the test's server"};
  Caller caller_;
};

TEST_F(GrpcCallTest, OneConnectionCarriesManyCallsWithLargeMessages) {
  for (int i = 0; i < 3; ++i) {
    v1::GetMetricsResponse metrics;
    ASSERT_TRUE(Call("GetMetrics", v1::GetMetricsRequest(), metrics).ok());
    EXPECT_EQ(metrics.text(), std::string(kLarge, 'm'));
  }
}

TEST_F(GrpcCallTest, AnErrorHasItsDetails) {
  v1::ShutdownRequest request;
  request.set_reason("the disk is full, 100 %, \xc3\xa4");
  v1::ShutdownResponse response;
  const absl::Status status = Call("Shutdown", request, response);
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE);
  EXPECT_EQ(std::string(status.message()), request.reason());
}

TEST_F(GrpcCallTest, AnErrorWithoutDetailsHasItsTextAndNamesThePeer) {
  v1::ReloadResponse response;
  const absl::Status status = Call("Reload", v1::ReloadRequest(), response);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(status.message()), "the test's server: 100 % \xc3\xa4\nb");
  EXPECT_FALSE(DaemonWasLost(status));
  EXPECT_TRUE(absl::IsUnimplemented(Call("NoSuchCall", v1::ReloadRequest(), response)));
}

TEST_F(GrpcCallTest, ACallEndsAtItsTimeLimitForBothSidesAndTheConnectionGoesOn) {
  v1::GetInfoResponse info;
  EXPECT_TRUE(absl::IsDeadlineExceeded(Call("GetInfo", v1::GetInfoRequest(), info, milliseconds(20))));
  Await("the server's end of the call", [&] { return service().given_up == 1; });
  v1::GetMetricsResponse metrics;
  EXPECT_TRUE(Call("GetMetrics", v1::GetMetricsRequest(), metrics).ok());
}

TEST_F(GrpcCallTest, ACallThatNobodyWaitsForEndsForBothSides) {
  caller_ = Caller([] { return true; });
  v1::GetInfoResponse info;
  EXPECT_TRUE(absl::IsCancelled(Call("GetInfo", v1::GetInfoRequest(), info)));
  Await("the server's end of the call", [&] { return service().given_up == 1; });
}

TEST_F(GrpcCallTest, AServerThatEndsIsLost) {
  session_.connection = std::make_unique<Http2Connection>(std::move(MakeSocketPair()->first));
  v1::GetInfoResponse info;
  const absl::Status status = Call("GetInfo", v1::GetInfoRequest(), info);
  EXPECT_TRUE(DaemonWasLost(status));
  EXPECT_GT(RetryAfter(status).count(), 0) << "it has said nothing: it may have turned this client away";
}

TEST_F(GrpcCallTest, APeerThatSpeaksSomethingElseIsLost) {
  auto [ours, theirs] = MakeSocketPair().value();
  ASSERT_EQ(send(theirs.get(), "HTTP/1.1 400 Bad Request\r\n\r\n", 28, MSG_NOSIGNAL), 28);
  session_.connection = std::make_unique<Http2Connection>(std::move(ours));
  v1::GetInfoResponse info;
  const absl::Status status = Call("GetInfo", v1::GetInfoRequest(), info);
  EXPECT_TRUE(DaemonWasLost(status));
  EXPECT_EQ(RetryAfter(status).count(), 0);
}

TEST_F(GrpcCallTest, AChildDoesNotTouchItsParentsConnection) {
  v1::GetMetricsResponse metrics;
  ASSERT_TRUE(Call("GetMetrics", v1::GetMetricsRequest(), metrics).ok());
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const bool lost = DaemonWasLost(Call("GetMetrics", v1::GetMetricsRequest(), metrics));
    session_.connection.reset();
    _exit(lost ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(Call("GetMetrics", v1::GetMetricsRequest(), metrics).ok());
}

TEST_F(GrpcCallTest, ALoadSendsHeadersAndTellsAllNewsBeforeItsResult) {
  std::vector<std::string> heard;
  LoadCallbacks callbacks;
  callbacks.output = callbacks.progress = [&](std::string_view text) { heard.emplace_back(text); };
  const ConversationOutcome outcome = Load("kernel", callbacks, caller_);
  ASSERT_TRUE(outcome.result.ok()) << outcome.result.status();
  EXPECT_EQ(outcome.result->build_ms(), kLarge);
  EXPECT_THAT(heard, ElementsAre("queued (2 ahead)", "g++ -c\n"));
}

TEST_F(GrpcCallTest, ASteadyStreamOfOutputDoesNotKeepTheCallerFromGivingUp) {
  Caller caller([] { return true; });
  EXPECT_FALSE(Load("", {}, caller).result.ok());
  session_.connection.reset();  // what gRPC has begun to send is in its way
  Await("the server's end of the call", [&] { return service().given_up == 1; });
}

TEST_F(GrpcCallTest, AnExceptionOfACallbackEndsTheCall) {
  LoadCallbacks callbacks;
  callbacks.output = [](std::string_view) { throw std::runtime_error("no"); };
  EXPECT_THROW(Load("", callbacks, caller_), std::runtime_error);
  session_.connection.reset();
  Await("the server's end of the call", [&] { return service().given_up == 1; });
}

}  // namespace

}  // namespace kernix
