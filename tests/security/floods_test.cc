// SPDX-License-Identifier: Apache-2.0
//
// One member who asks for everything: kernixd's memory stays bounded, and another member is served.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/wire/quick_lookup.h"
#include "daemon/transport/local_user.h"
#include "tests/security/daemon_state.h"
#include "tests/security/security_fixture.h"
#include "tests/support/test_util.h"

namespace kernix::security {
namespace {

constexpr char kFloods[] = "11 bounds per user";
constexpr uint64_t kMiB = 1 << 20;

// Looks at something again and again, in a thread, until it goes.
class Watch {
 public:
  explicit Watch(std::function<void()> look) {
    thread_ = std::thread([this, look = std::move(look)] {
      while (!done_) {
        look();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    });
  }
  ~Watch() {
    done_ = true;
    thread_.join();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

class FloodsTest : public SecurityTest {
 protected:
  uint64_t Peak() { return StatusBytes(std::to_string(daemon().pid()), "VmHWM"); }

  // "" while kernixd has not grown by more than `bound` since `before`.
  std::string Grown(uint64_t before, uint64_t bound) {
    const uint64_t peak = Peak();
    return peak <= before + bound ? "" : StrCat("kernixd grew from ", before / kMiB, " to ", peak / kMiB, " MiB");
  }

  std::string LookUpManyTimes(const Kernel& kernel);

  // Another member loads now, whatever goes on.
  void OtherIsServed(const std::string& row_twin) {
    static int number = 0;
    const auto other = Connect(TheUsers().other);
    const server::LoadOutcome outcome = Load(*other, CppKernel(StrCat("int other = ", ++number, ";")));
    JudgeTwin(kFloods, row_twin, outcome.result ? "" : Answer(outcome));
  }
};

// Makes `count` connections as `user` and keeps them. Its exit code says nothing.
[[noreturn]] void ConnectMany(uid_t user, const SocketAddress& address, int count, int report) {
  const rlimit files = {static_cast<rlim_t>(count + 100), static_cast<rlim_t>(count + 100)};
  setrlimit(RLIMIT_NOFILE, &files);
  int connected = Become(user) ? 0 : count;
  for (int refused = 0; connected < count && refused < 2000;) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connect(fd, address.get(), address.size()) == 0) {
      ++connected;
    } else {
      ++refused;
      close(fd);
      usleep(1000);
    }
  }
  if (write(report, &connected, sizeof connected) == sizeof connected) pause();
  _exit(0);
}

// A process that has them, until it goes.
class ManyConnections {
 public:
  ManyConnections(uid_t user, const std::string& path, int count) {
    std::array<int, 2> ends = {-1, -1};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
    const UniqueFd from(ends[0]);
    UniqueFd to(ends[1]);
    const SocketAddress address(path);
    child_ = fork();
    if (child_ == 0) ConnectMany(user, address, count, to.get());
    to = UniqueFd();
    if (read(from.get(), &made_, sizeof made_) != sizeof made_) made_ = 0;
  }
  ~ManyConnections() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  ManyConnections(const ManyConnections&) = delete;
  ManyConnections& operator=(const ManyConnections&) = delete;

  int made() const { return made_; }

 private:
  pid_t child_ = -1;
  int made_ = 0;
};

// A limit of this process that its children start with.
class FileLimit {
 public:
  explicit FileLimit(rlim_t files) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit limit = {files, files};
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~FileLimit() { setrlimit(RLIMIT_NOFILE, &before_); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_ = {};
};

TEST_F(FloodsTest, IdleConnectionsLockNobodyOut) {
  {
    const FileLimit few(4096);
    Serve();
  }
  const ManyConnections many(TheUsers().member, socket(), 5000);
  EXPECT_GT(many.made(), 1000);
  absl::StatusOr<UniqueFd> other = ConnectAs(TheUsers().other, socket());
  if (!other.ok()) {
    Judge(kFloods, "5,000 idle connections", "another member cannot connect");
    return;
  }
  server::TestClient client(*std::move(other));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(15));
  v1::GetInfoResponse info;
  const grpc::Status status = client.stub().GetInfo(&context, v1::GetInfoRequest(), &info);
  Judge(kFloods, "5,000 idle connections",
        status.ok() ? "" : "another member is not served: " + status.error_message());
  if (status.ok()) OtherIsServed("another's load beside 5,000 connections");
}

TEST_F(FloodsTest, RequestsThatAreHeldStayBounded) {
  variables_["KERNIX_MAX_REQUEST_BYTES_PER_USER"] = "384MiB";  // a text counts four times
  Serve();
  const uint64_t before = Peak();
  Kernel kernel = CppKernel(StrCat("#include \"mine.h\"\n//", std::string(60 * kMiB, 'x')));
  AddHeader(kernel, "mine.h", "#pragma once\n");
  constexpr int kRequests = 20;
  std::atomic<int> answered = 0;
  {
    std::vector<std::unique_ptr<server::TestClient>> clients;
    std::vector<std::unique_ptr<server::LoadStream>> streams;
    std::vector<std::thread> threads;
    for (int i = 0; i < kRequests; ++i) {
      server::TestClient& client = *clients.emplace_back(Connect(TheUsers().member));
      server::LoadStream& stream = *streams.emplace_back(std::make_unique<server::LoadStream>(client.stub()));
      threads.emplace_back([&stream, &kernel, &answered] {
        stream.Send(kernel.request);
        stream.Next();  // asks for the header, which does not come; or refuses
        ++answered;
      });
    }
    for (int i = 0; answered < kRequests && i < 500; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    OtherIsServed("another's load beside held requests");
    for (const auto& stream : streams) stream->Cancel();
    for (std::thread& thread : threads) thread.join();
  }
  // Unbounded they are several copies of 1,200 MiB. Each processor may be reading one more when it is refused.
  Judge(kFloods, "twenty requests of 60 MiB", Grown(before, 2000 * kMiB));
  Kernel twin = CppKernel(StrCat("//", std::string(20 * kMiB, 'x')));
  // kernixd frees a canceled request a moment after the client has canceled it.
  server::LoadOutcome outcome = Load(member(), twin);
  for (int i = 0; !outcome.result && i < 100; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    outcome = Load(member(), twin);
  }
  JudgeTwin(kFloods, "a request of 20 MiB", outcome.result ? "" : Answer(outcome));
}

TEST_F(FloodsTest, FetchesThatStallStayBounded) {
  Serve();
  const Kernel large = CppKernel("__attribute__((used)) const char large[64 << 20] = {1};");
  const server::LoadOutcome loaded = Load(member(), large);
  ASSERT_TRUE(loaded.result) << Answer(loaded);
  const uint64_t before = Peak();
  const std::string& digest = loaded.result->artifact_digest();
  {
    std::vector<std::unique_ptr<server::FetchStream>> streams;
    for (int i = 0; i < 12; ++i) {
      streams.push_back(std::make_unique<server::FetchStream>(member().stub(), digest));
      streams.back()->Next();
    }
    OtherIsServed("another's load beside stalled fetches");
    Judge(kFloods, "twelve stalled fetches of 64 MiB", Grown(before, 200 * kMiB));
  }
  // The streams have gone; the daemon may not know yet.
  absl::StatusOr<std::string> whole = member().Fetch(digest);
  for (int i = 0; !whole.ok() && i < 100; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    whole = member().Fetch(digest);
  }
  const bool complete = whole.ok() && whole->size() == loaded.result->artifact_size();
  JudgeTwin(kFloods, "a fetch of 64 MiB", complete ? "" : whole.status().ToString());
}

// 16 KB that stand for 100,000 pasted names of 15,000 bytes.
std::string PasteBomb() {
  std::string text = "#define ONE(x) x##1\n";
  std::string inner = "ONE";
  for (const std::string outer : {"TEN", "HUNDRED", "THOUSAND", "MYRIAD", "ALL"}) {
    StrAppend(&text, "#define ", outer, "(x)");
    for (int i = 0; i < 10; ++i) StrAppend(&text, " ", inner, "(x)");
    text += "\n";
    inner = outer;
  }
  return StrCat(text, "ALL(", std::string(15'000, 'a'), ")\n");
}

TEST_F(FloodsTest, TextPastedByMacrosStaysBounded) {
  Serve();
  const uint64_t before = Peak();
  Kernel bomb = CppKernel(PasteBomb());
  // So that kernixd reads the text for the signature.
  bomb.request.mutable_functions()->mutable_function(0)->clear_tokens();
  Load(member(), bomb);
  Judge(kFloods, "16 KB of macros that paste", Grown(before, 300 * kMiB));
  Twin(kFloods, "macros that paste", CppKernel("#define NAME(x) int name_##x;\nNAME(1) NAME(2)"));
}

TEST_F(FloodsTest, AProcessGetsSoMuchMemory) {
  variables_["KERNIX_MAX_PROCESS_MEMORY_BYTES"] = "1GiB";
  Serve();
  server::LoadStream stream(member().stub());
  stream.Send(CppKernel(R"(asm(".rept 400000000\n.quad 1\n.endr");)").request);
  std::atomic<uint64_t> peak = 0;
  server::LoadOutcome outcome;
  {
    const Watch watch([&] {
      for (const std::string& pid : Compilers(daemon().pid()))
        peak = std::max<uint64_t>(peak, StatusBytes(pid, "VmRSS"));
      if (peak > 2048 * kMiB) stream.Cancel();
    });
    outcome = stream.Finish();
  }
  const bool refused = outcome.failure && outcome.failure->kind() == v1::ErrorDetail::RESOURCE;
  Judge(kFloods, "a short .rept",
        refused && peak < 1100 * kMiB ? "" : StrCat("a process had ", peak / kMiB, " MiB: ", Answer(outcome)));
  Twin(kFloods, "a short .rept of few",
       CppKernel(R"(asm(".pushsection .data\n.rept 1000\n.quad 1\n.endr\n.popsection");)"));
}

// 1,024 sources, each a unit.
Kernel ManySources(Kernel kernel) {
  while (kernel.request.source_size() < 1024) {
    v1::Source& source = *kernel.request.add_source();
    source.set_label(StrCat(kernel.request.source_size()));
    source.set_text(";");
  }
  kernel.request.mutable_options()->set_separate_units(true);
  return kernel;
}

// kernixd's answer to a lookup without gRPC; an error where it has none.
absl::StatusOr<std::string> LookUp(uid_t user, const std::string& path, const v1::LoadRequest& load) {
  absl::StatusOr<UniqueFd> connection = ConnectAs(user, path);
  if (!connection.ok()) return connection.status();
  const std::string text = LookupOf(load).SerializeAsString();
  EXPECT_LE(text.size(), kMaxLookupBytes);
  const MonotonicTime deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const absl::Status sent = SendFrame(connection->get(), kLookupMagic, text, deadline);
  if (!sent.ok()) return sent;
  return ReceiveFrame(connection->get(), 1 << 20, deadline);
}

// "" if eight lookups at once, and a load, are refused and cost kernixd little.
std::string FloodsTest::LookUpManyTimes(const Kernel& kernel) {
  const uint64_t before = Peak();
  std::atomic<int> hits = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const absl::StatusOr<std::string> reply = LookUp(TheUsers().member, socket(), kernel.request);
      if (reply.ok() && !reply->empty()) ++hits;
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (hits != 0) return "a lookup was answered";
  const server::LoadOutcome outcome = Load(member(), kernel);
  const bool refused = outcome.failure && outcome.failure->kind() == v1::ErrorDetail::INVALID_REQUEST;
  return refused ? Grown(before, 300 * kMiB) : StrCat("not refused: ", Answer(outcome).substr(0, 1000));
}

// Every step has all the flags, and kernixd makes all steps to find out the key.
TEST_F(FloodsTest, PlansStayBounded) {
  Serve("", /*with_nvcc=*/true);
  const std::vector<std::string> flags(20'000, "-Wall");
  Judge(kFloods, "1,024 sources with 20,000 flags each", LookUpManyTimes(ManySources(CppKernel("", flags))));
  if (!nvcc().empty()) {
    Kernel kernel = ManySources(CudaKernel(nvcc()));
    for (const char* suffix : {"", "a", "f"}) {
      for (const char* number : {"80", "86", "89", "90"}) {
        kernel.request.mutable_options()->add_architectures(StrCat("sm_", number, suffix));
      }
    }
    kernel.request.mutable_options()->set_keep(true);
    Judge(kFloods, "1,024 sources whose results are kept for 12 architectures", LookUpManyTimes(kernel));
  }
  OtherIsServed("another's load after lookups of large plans");
}

// Sends the same lookup on `count` connections, and all but its last byte first. Waits for the answers.
void LookUpAtOnce(uid_t user, const std::string& path, const v1::LookupRequest& request, int count) {
  const std::string text = request.SerializeAsString();
  const std::string bytes = StrCat(kLookupMagic, EncodeFrameLength(text.size()), text);
  std::vector<UniqueFd> connections;
  for (int i = 0; i < count; ++i) {
    absl::StatusOr<UniqueFd> connection = ConnectAs(user, path);
    if (!connection.ok()) return;
    fcntl(connection->get(), F_SETFL, 0);  // sending waits
    for (size_t sent = 0; sent + 1 < bytes.size();) {
      const ssize_t some = send(connection->get(), bytes.data() + sent, bytes.size() - 1 - sent, MSG_NOSIGNAL);
      if (some <= 0) return;
      sent += static_cast<size_t>(some);
    }
    connections.push_back(*std::move(connection));
  }
  for (const UniqueFd& connection : connections) send(connection.get(), &bytes.back(), 1, MSG_NOSIGNAL);
  const MonotonicTime deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (const UniqueFd& connection : connections) (void)ReceiveFrame(connection.get(), 1 << 20, deadline);
}

TEST_F(FloodsTest, LookupsOfManyEmptyPartsStayBounded) {
  Serve();
  const uint64_t before = Peak();
  v1::LoadRequest load = CppKernel().request;
  for (int i = 0; i < 1'000'000; ++i) load.add_header();
  LookUpAtOnce(TheUsers().member, socket(), LookupOf(std::move(load)), 40);
  Judge(kFloods, "lookups of a million empty parts", Grown(before, 500 * kMiB));
  OtherIsServed("another's load after lookups of empty parts");
}

TEST_F(FloodsTest, FoldersOfHeadersStayBounded) {
  Serve();
  Kernel deep = CppKernel();
  std::string folders;
  for (int i = 0; i < 62; ++i) folders += "/a";
  for (int i = 0; i < 100'000; ++i) AddHeader(deep, StrCat(i, folders, "/h.h"), "");
  const uint64_t before = Peak();
  const server::LoadOutcome outcome = Load(member(), deep);
  const bool refused = outcome.failure && outcome.failure->kind() == v1::ErrorDetail::INVALID_REQUEST;
  Judge(kFloods, "100,000 headers in 6,300,000 folders", refused ? Grown(before, 400 * kMiB) : Answer(outcome));
  Kernel tree = CppKernel();
  for (int i = 0; i < 1'000; ++i) AddHeader(tree, StrCat(i % 300, "/a/b/", i, ".h"), "");
  Twin(kFloods, "1,000 headers in 900 folders", tree);
}

// Functions that the link's optimiser cannot do in no time.
std::string ManyFunctions(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    StrAppend(&text, "__attribute__((used, noinline)) double work", i, "(double x) { double s = x;\n");
    for (int line = 0; line < 150; ++line)
      StrAppend(&text, "s = s * ", i + line, " + __builtin_sin(s) / (s + ", line, ");");
    text += "return s; }\n";
  }
  return text;
}

TEST_F(FloodsTest, AJobGetsSoManyProcesses) {
  Serve();
  const Kernel kernel = CppKernel(ManyFunctions(64), {"-O3"});
  const std::vector<std::string> flags = {"-flto=64", "--param=lto-partitions=64", "--param=lto-min-partition=1"};
  const std::string answer = Answer(Load(member(), CppKernel(ManyFunctions(1), flags)));
  const bool refused = answer.find("a link takes one job's processor") != std::string::npos;
  Judge(kFloods, "a link with 64 processes", refused ? "" : answer);
  Twin(kFloods, "three processes for some seconds", kernel);
}

// As many as any compile has, for longer than from one count to the next.
TEST_F(FloodsTest, AJobWithTooManyProcessesIsKilled) {
  variables_["KERNIX_MAX_PROCESSES_PER_JOB"] = "1";
  Serve();
  const std::string answer = Answer(Load(member(), CppKernel(ManyFunctions(64), {"-O3"})));
  const bool refused = answer.find("max_processes_per_job") != std::string::npos;
  Judge(kFloods, "more processes than a job may have", refused ? "" : answer);
}

TEST_F(FloodsTest, TheQueueServesUsersInTurn) {
  Serve("jobs = 1");
  std::vector<std::unique_ptr<server::LoadStream>> flood;
  for (int i = 0; i < 100; ++i) {
    flood.push_back(std::make_unique<server::LoadStream>(member().stub()));
    flood.back()->Send(CppKernel(StrCat("int flood = ", i, ";")).request);
  }
  // The queue is full when the first of them is through.
  flood[0]->Finish();
  const int before = LoadsEnded(daemon().Log(), TheUsers().member);
  OtherIsServed("another's load behind a hundred");
  const int served = LoadsEnded(daemon().Log(), TheUsers().member) - before;
  Judge(kFloods, "a hundred loads at once", served < 10 ? "" : StrCat(served, " of them came before another's one"));
  for (const auto& stream : flood) stream->Cancel();
}

}  // namespace
}  // namespace kernix::security
