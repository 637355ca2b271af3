// SPDX-License-Identifier: Apache-2.0
//
// Small requests whose steps make much, and that do not end: what steps have made waits on the disk, and takes each
// member a bounded part of it.
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "common/base/strings.h"
#include "common/os/env.h"
#include "tests/security/daemon_state.h"
#include "tests/security/security_fixture.h"
#include "tests/support/await.h"

namespace kernix::security {
namespace {

constexpr char kRow[] = "11 bounds per user";
constexpr uint64_t kMiB = 1 << 20;

void AddUnit(Kernel& kernel, const std::string& text) {
  v1::Source& source = *kernel.request.add_source();
  source.set_label(StrCat("unit", kernel.request.source_size(), ".cc"));
  source.set_text(text);
  kernel.request.mutable_options()->set_separate_units(true);
}

// A kernel of `units` more units, and one that a compiler does not get to the end of.
Kernel Endless(int units, const std::string& text) {
  Kernel kernel = CppKernel();
  for (int i = 0; i < units; ++i) AddUnit(kernel, text);
  std::string slow = "constexpr long f(long n) { long s = n; for (long i = 0; i < 200000; ++i) s += i; return s; }\n";
  for (int i = 0; i < 4000; ++i) StrAppend(&slow, "constexpr long x", i, " = f(", i, ");\n");
  AddUnit(kernel, slow);
  return kernel;
}

std::string LargeObject(uint64_t bytes) { return StrCat("static char data[", bytes, "] __attribute__((used)) = {1};"); }

// Has the compiler print four MiB and more.
std::string Loud() {
  std::string text = "#define A \"0123456789012345678901234567890123456789012345678901234567890123\"\n";
  for (char c = 'B'; c < 'R'; ++c) {
    const char before = static_cast<char>(c - 1);
    StrAppend(&text, "#define ", std::string(1, c), " ", std::string(1, before), " ", std::string(1, before), "\n");
  }
  return text + "#pragma message(Q)\n";
}

class OutputsTest : public SecurityTest {
 protected:
  using Stream = std::unique_ptr<server::LoadStream>;

  Stream Send(const Kernel& kernel) {
    auto stream = std::make_unique<server::LoadStream>(member().stub());
    stream->Send(kernel.request);
    return stream;
  }

  // A daemon that is killed leaves compilers behind, and the one here takes more memory the longer it runs.
  void End(const std::vector<Stream>& streams) {
    for (const Stream& stream : streams) stream->Cancel();
    daemon().Signal(SIGTERM);
    EXPECT_EQ(daemon().AwaitExit(), 0);
  }

  uint64_t MemoryOfItsOwn() { return StatusBytes(StrCat(daemon().pid()), "RssAnon"); }

  // How many steps of the loads that run have ended.
  uint32_t StepsDone() {
    grpc::ClientContext context;
    v1::GetStatusResponse status;
    if (!member().stub().GetStatus(&context, {}, &status).ok()) return 0;
    uint32_t steps = 0;
    for (const v1::RunningLoad& load : status.load()) steps += load.progress().steps_done();
    return steps;
  }

  // Of files without a name that the daemon has open.
  uint64_t BytesSetAside() {
    const std::string folder = StrCat("/proc/", daemon().pid(), "/fd");
    uint64_t bytes = 0;
    const std::vector<std::string> names = Env::Posix().ListDirectory(folder).value();
    for (const std::string& name : names) {
      struct stat info = {};
      if (stat(StrCat(folder, "/", name).c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 0)
        bytes += static_cast<uint64_t>(info.st_blocks) * 512;
    }
    return bytes;
  }

  // `most`: for what some jobs have made, which passes through kernixd's memory, some of it twice.
  void JudgeMemory(const std::string& what, uint64_t before, uint64_t most) {
    const uint64_t now = MemoryOfItsOwn();
    const uint64_t grown = now - std::min(now, before);
    std::printf("%s: memory grown by %.0f MiB, %.0f MiB on the disk\n", what.c_str(), static_cast<double>(grown) / kMiB,
                static_cast<double>(BytesSetAside()) / kMiB);
    Judge(kRow, what, grown <= most ? "" : StrCat("they take ", grown / kMiB, " MiB of memory"));
  }
};

TEST_F(OutputsTest, OfALoadThatDoesNotEndTakeNoMemory) {
  constexpr int kUnits = 50;
  Serve("jobs = 2");
  Load(member(), CppKernel());
  const uint64_t before = MemoryOfItsOwn();
  std::vector<Stream> streams;
  streams.push_back(Send(Endless(kUnits, LargeObject(16 * kMiB))));
  Await("the units", [&] { return StepsDone() >= kUnits; });
  JudgeMemory("objects of 16 MiB", before, 200 * kMiB);
  End(streams);
}

TEST_F(OutputsTest, PrintedByALoadThatDoesNotEndTakeNoMemory) {
  constexpr int kUnits = 30;
  Serve("jobs = 2");
  Load(member(), CppKernel());
  const uint64_t before = MemoryOfItsOwn();
  std::vector<Stream> streams;
  streams.push_back(Send(Endless(kUnits, Loud())));
  Await("the units", [&] { return StepsDone() >= kUnits; });
  JudgeMemory("units that print megabytes", before, 80 * kMiB);
  End(streams);
}

TEST_F(OutputsTest, OfManyLoadsTakeABoundedPartOfTheDisk) {
  constexpr uint64_t kOfAUser = 16 * 16 * kMiB;  // what max_output_bytes comes to
  constexpr int kLoads = 8;
  variables_["KERNIX_MAX_OUTPUT_BYTES"] = "16MiB";
  Serve(StrCat("jobs = ", kLoads + 2));  // each has a step that does not end
  std::vector<Stream> streams;
  for (int i = 0; i < kLoads; ++i) {
    streams.push_back(Send(Endless(3, StrCat(LargeObject(15 * kMiB), "int load = ", i, ";"))));
  }
  // A load that is refused more has ended.
  Await("the objects",
        [&] { return daemon().Log().find("build_failed") != std::string::npos || StepsDone() >= 3 * kLoads; });
  const uint64_t bytes = BytesSetAside();
  std::printf("%.0f MiB on the disk\n", static_cast<double>(bytes) / kMiB);
  Judge(kRow, "objects of eight loads", bytes <= kOfAUser + kMiB ? "" : StrCat("they take ", bytes / kMiB, " MiB"));
  const server::LoadOutcome other = Load(*Connect(TheUsers().other), CppKernel("int other;"));
  JudgeTwin(kRow, "another member's load beside them", other.result ? "" : Answer(other));
  for (const Stream& stream : streams) stream->Cancel();
  Await("the files' end", [&] { return BytesSetAside() == 0; });
  const server::LoadOutcome own = Load(member(), CppKernel(LargeObject(10 * kMiB)));
  JudgeTwin(kRow, "the member's load after them", own.result ? "" : Answer(own));
  End(streams);
}

}  // namespace
}  // namespace kernix::security
