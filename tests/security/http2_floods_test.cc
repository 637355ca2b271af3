// SPDX-License-Identifier: Apache-2.0
//
// One member who keeps no rule of HTTP/2: kernixd stays small, another member is served, and the operator can stop it.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "common/base/digest.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/wire/quick_lookup.h"
#include "tests/security/http2_flood.h"
#include "tests/security/security_fixture.h"
#include "tests/support/test_util.h"

namespace kernix::security {
namespace {

using std::chrono::milliseconds;

constexpr char kFloods[] = "11 bounds per user";
constexpr uint64_t kMostMemory = 300 << 20;
constexpr milliseconds kSoon{1'000};
constexpr milliseconds kFlooded{700};
constexpr milliseconds kStopped{5'000};

MonotonicTime In(milliseconds time) { return std::chrono::steady_clock::now() + time; }

uint64_t PeakBytes(pid_t pid) {
  const std::string status = Env::Posix().ReadFile(StrCat("/proc/", pid, "/status")).value_or("");
  const size_t at = status.find("\nVmHWM:");
  return at == std::string::npos ? 0 : std::strtoull(status.c_str() + at + 7, nullptr, 10) << 10;
}

// --- Frames that come again and again --------------------------------------------------------------------------------

using More = std::function<std::string(uint32_t& stream)>;

More Again(int times, const std::string& frames) {
  std::string all;
  for (int i = 0; i < times; ++i) all += frames;
  return [all](uint32_t&) { return all; };
}

// `call` makes the frames of one call from the stream that it opens.
More Calls(const std::function<std::string(uint32_t stream)>& call) {
  return [call](uint32_t& stream) {
    std::string all;
    for (int i = 0; i < 100; ++i, stream += 2) all += call(stream);
    return all;
  };
}

std::string Opened(uint32_t stream, std::string_view method, uint8_t flags = 0) {
  return Frame(kHeaders, kEndHeaders | flags, stream, CallHeaders(method));
}

std::string Canceled(uint32_t stream) { return Frame(kReset, 0, stream, std::string_view("\0\0\0\x08", 4)); }

std::string Repeated(int times, const std::string& header) {
  std::string all;
  for (int i = 0; i < times; ++i) all += header;
  return all;
}

// What gRPC goes on with when the client has long forgotten it.
std::vector<Flood> FloodsOfCalls() {
  const std::string_view empty("\0\0\0\0\0", 5);
  const std::string_view malformed("\2\0\0\0\0", 5);
  return {
      {"calls that are reset", "", Calls([](uint32_t id) { return Opened(id, "GetInfo") + Canceled(id); })},
      {"loads that are reset", "", Calls([](uint32_t id) { return Opened(id, "Load") + Canceled(id); })},
      {"calls that kernixd resets", "",
       Calls([=](uint32_t id) { return Opened(id, "GetInfo") + Frame(kData, 0, id, malformed); })},
      {"calls without a path", "", Calls([](uint32_t id) { return Frame(kHeaders, kEndHeaders, id, "\x83\x86"); })},
      {"calls that go on", "", Calls([](uint32_t id) { return Opened(id, "Load"); })},
      {"calls with headers of 8 KB", "", Calls([](uint32_t id) {
         const std::string headers = CallHeaders("GetInfo") + Literal("x", std::string(7800, 'v'));
         return Frame(kHeaders, kEndHeaders, id, headers);
       })},
      {"calls of no method", "", Calls([](uint32_t id) { return Opened(id, "Nothing", kEndStream); })},
      {"calls whose answers are not read", "",
       Calls([=](uint32_t id) { return Opened(id, "GetInfo") + Frame(kData, kEndStream, id, empty); }),
       /*reads=*/false},
      {"pings", "", Again(1000, Frame(kPing, 0, 0, "12345678"))},
      {"pings between data", Opened(1, "Load"), Again(1000, Frame(kData, 0, 1, "") + Frame(kPing, 0, 0, "12345678"))},
      {"pings whose answers are not read", "", Again(1000, Frame(kPing, 0, 0, "12345678")), /*reads=*/false},
  };
}

std::vector<Flood> FloodsOfHeaders() {
  const std::string open = Frame(kHeaders, 0, 1, CallHeaders("Load"));
  const std::string endless = Literal("x", "") + "\x7f\xff\xff\xff\xff\x07";
  const std::string large = CallHeaders("GetInfo") + Literal("x", std::string(4000, 'v'), /*indexed=*/true);
  const std::string references = StrCat("\x83\x86", std::string(16'000, '\xbe'));
  const std::string entries = StrCat("\x83\x86", Repeated(1500, Literal("x", "yyyy", /*indexed=*/true)));
  const std::string one = Literal("x", "v");
  return {
      {"continuations", open, Again(4, Frame(kContinuation, 0, 1, Literal("x", std::string(16'000, 'v'))))},
      {"continuations of short headers", open, Again(4, Frame(kContinuation, 0, 1, Repeated(2000, one)))},
      {"continuations of a header without end", Frame(kHeaders, 0, 1, CallHeaders("Load") + endless),
       Again(4, Frame(kContinuation, 0, 1, std::string(16'000, 'v')))},
      {"empty continuations", open, Again(1000, Frame(kContinuation, 0, 1, ""))},
      {"references to a large header", Frame(kHeaders, kEndHeaders, 1, large),
       Calls([=](uint32_t id) { return Frame(kHeaders, kEndHeaders | kEndStream, id + 2, references); })},
      {"headers that fill the table", "",
       Calls([=](uint32_t id) { return Frame(kHeaders, kEndHeaders | kEndStream, id, entries); })},
      {"empty headers", "", Calls([](uint32_t id) { return Frame(kHeaders, kEndHeaders, id, ""); })},
  };
}

// gRPC bears these as they come; so must what stands before it.
std::vector<Flood> FloodsOfFrames() {
  const std::string load = Opened(1, "Load");
  const std::string_view setting("\0\4\0\1\0\0", 6);
  const std::string_view one("\0\0\0\1", 4);
  const auto flood = [&](const std::string& what, const std::string& frame) {
    return Flood{what, load, Again(1000, frame)};
  };
  std::vector<Flood> floods = {
      flood("settings", Frame(kSettings, 0, 0, setting)),
      flood("answers to no ping", Frame(kPing, 1, 0, "12345678")),
      flood("window updates", Frame(kWindowUpdate, 0, 0, one) + Frame(kWindowUpdate, 0, 1, one)),
      flood("empty data", Frame(kData, 0, 1, "")),
      flood("data of no call", Frame(kData, 0, 3, "")),
      flood("data of one byte", Frame(kData, 0, 1, "x")),
      flood("priorities", Frame(kPriority, 0, 1, "12345")),
      flood("frames of no type", Frame(kUnknown, 0, 1, "")),
      flood("farewells", Frame(kGoAway, 0, 0, std::string(8, '\0'))),
      flood("resets of no call", Canceled(3)),
      {"single bytes", "", Again(1000, Frame(kPing, 0, 0, "12345678")), /*reads=*/true, /*piece=*/1},
  };
  Flood unread = floods[0];
  unread.what = "settings whose answers are not read";
  unread.reads = false;
  floods.push_back(unread);
  return floods;
}

// --- Tests -----------------------------------------------------------------------------------------------------------

class Http2FloodsTest : public SecurityTest {
 protected:
  void ServeAKernel() {
    Serve();
    const server::LoadOutcome outcome = Load(*Connect(TheUsers().other), kernel_);
    ASSERT_TRUE(outcome.result) << Answer(outcome);
  }

  // "" or how another member or the memory suffers.
  std::string Harm(uint64_t most_memory = kMostMemory);
  bool OtherHits();
  bool OtherCalls();
  std::string Stop();

  const Kernel kernel_ = CppKernel("int other;");
};

// As clients ask for it.
bool Http2FloodsTest::OtherHits() {
  const MonotonicTime deadline = In(kSoon);
  const absl::StatusOr<UniqueFd> connection = ConnectAs(TheUsers().other, socket());
  if (!connection.ok()) return false;
  const std::string request = LookupOf(kernel_.request).SerializeAsString();
  if (!SendFrame(connection->get(), kLookupMagic, request, deadline).ok()) return false;
  const absl::StatusOr<std::string> hit = ReceiveFrame(connection->get(), 1 << 20, deadline);
  return hit.ok() && !hit->empty();
}

bool Http2FloodsTest::OtherCalls() {
  absl::StatusOr<UniqueFd> connection = ConnectAs(TheUsers().other, socket());
  if (!connection.ok()) return false;
  server::TestClient client(*std::move(connection));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kSoon);
  v1::GetInfoResponse info;
  return client.stub().GetInfo(&context, v1::GetInfoRequest(), &info).ok();
}

// A busy machine may be late once, but not three times.
std::string Http2FloodsTest::Harm(uint64_t most_memory) {
  bool answered = false;
  const MonotonicTime end = In(kFlooded);
  for (int tries = 0; PeakBytes(daemon().pid()) <= most_memory; ++tries) {
    if (answered && std::chrono::steady_clock::now() >= end) return "";
    if (!answered && tries >= 3) return "another member waits for more than a second";
    answered = (OtherHits() && OtherCalls()) || answered;
  }
  return StrCat("kernixd had ", PeakBytes(daemon().pid()) >> 20, " MiB");
}

// "" or that it does not stop. Then it is killed.
std::string Http2FloodsTest::Stop() {
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, daemon().pid(), 0)));
  daemon().Signal(SIGTERM);
  pollfd ended{process.get(), POLLIN, 0};
  const bool stops = poll(&ended, 1, kStopped.count()) == 1;
  daemon().Signal(SIGKILL);
  const int code = daemon().AwaitExit();
  return stops && code == 0 ? "" : StrCat("kernixd does not stop within five seconds; its exit code is ", code);
}

TEST_F(Http2FloodsTest, Calls) {
  const std::vector<Flood> floods = FloodsOfCalls();
  for (const Flood& flood : floods) {
    ServeAKernel();
    const Flooder flooder(TheUsers().member, socket(), flood);
    const std::string harm = Harm();
    if (!harm.empty()) daemon().Signal(SIGKILL);
    const std::string late = Stop();
    Judge(kFloods, flood.what, harm.empty() ? late : harm);
  }
}

TEST_F(Http2FloodsTest, Headers) {
  const std::vector<Flood> floods = FloodsOfHeaders();
  ServeAKernel();
  for (const Flood& flood : floods) {
    const Flooder flooder(TheUsers().member, socket(), flood);
    Judge(kFloods, flood.what, Harm());
  }
}

TEST_F(Http2FloodsTest, Frames) {
  const std::vector<Flood> floods = FloodsOfFrames();
  ServeAKernel();
  for (const Flood& flood : floods) {
    const Flooder flooder(TheUsers().member, socket(), flood);
    Judge(kFloods, flood.what, Harm());
  }
}

// The answer to each has 16 MB.
TEST_F(Http2FloodsTest, ListsThatNobodyReads) {
  ServeAKernel();
  std::vector<std::string> flags;
  for (int i = 0; i < 100; ++i) flags.push_back(StrCat("-DLISTED_", i, "=", std::string(8'000, 'x')));
  Kernel kernel = CppKernel("int listed;", flags);
  v1::ListCacheRequest request;
  for (int i = 0; i < 20; ++i) {
    kernel.request.set_name(StrCat("listed ", i));
    const server::LoadOutcome outcome = Load(member(), kernel);
    ASSERT_TRUE(outcome.result) << Answer(outcome);
    request.set_key_prefix(Digest::FromRaw(outcome.result->key())->Hex());
  }
  const std::string body = request.SerializeAsString();
  const std::string message = StrCat(std::string(4, '\0'), std::string(1, static_cast<char>(body.size())), body);
  const auto list = [&](uint32_t id) { return Opened(id, "ListCache") + Frame(kData, kEndStream, id, message); };
  {
    const Flooder flooder(TheUsers().member, socket(), {"lists that are not read", "", Calls(list), /*reads=*/false});
    std::this_thread::sleep_for(2 * kFlooded);
    Judge(kFloods, "lists that are not read", Harm(3 * kMostMemory));
    const server::LoadOutcome outcome = Load(*Connect(TheUsers().other), CppKernel("int while_listed;"));
    JudgeTwin(kFloods, "another's build beside lists that are not read", outcome.result ? "" : Answer(outcome));
  }
  grpc::ClientContext context;
  v1::ListCacheResponse response;
  const std::unique_ptr<server::TestClient> again = Connect(TheUsers().member);
  const grpc::Status status = again->stub().ListCache(&context, request, &response);
  JudgeTwin(kFloods, "the flooder's own list afterwards", status.error_message());
}

TEST_F(Http2FloodsTest, HonestOnesAreServed) {
  ServeAKernel();
  {
    const Flooder flooder(TheUsers().member, socket(), FloodsOfCalls()[0]);
    const server::LoadOutcome outcome = Load(*Connect(TheUsers().other), CppKernel("int beside;"));
    JudgeTwin(kFloods, "another's load beside calls that are reset", outcome.result ? "" : Answer(outcome));
  }
  Kernel large = CppKernel("#include \"large.h\"");
  AddHeader(large, "large.h", StrCat("//", std::string(20 << 20, 'x')));
  Twin(kFloods, "the flooder's own load of 20 MB afterwards", large);
  grpc::Status status;
  for (int i = 0; i < 3000 && status.ok(); ++i) {
    grpc::ClientContext context;
    v1::GetInfoResponse info;
    status = member().stub().GetInfo(&context, v1::GetInfoRequest(), &info);
  }
  JudgeTwin(kFloods, "3,000 calls, one after the other", status.error_message());
}

}  // namespace
}  // namespace kernix::security
