// SPDX-License-Identifier: Apache-2.0
//
// One member who fills the store's index instead of the store: what it holds counts as artifacts do, its files stay
// within the limit of the store, and other members' entries stay.
#include <sys/stat.h>

#include <chrono>
#include <string>

#include "common/base/strings.h"
#include "common/wire/quick_lookup.h"
#include "tests/security/security_fixture.h"
#include "tests/support/test_util.h"

namespace kernix::security {
namespace {

constexpr char kBounds[] = "11 bounds per user";
constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kLimit = 6 * kMiB;
constexpr int kOthers = 3;
// Beside the limit: a small index is free, one entry may be beyond, and the write-ahead log waits for its checkpoint.
constexpr uint64_t kSlack = 10 * kMiB;

uint64_t SizeOf(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

class IndexTest : public SecurityTest {
 protected:
  IndexTest() { Serve(StrCat("cache_limit_bytes = ", kLimit)); }

  uint64_t IndexBytes() const {
    const std::string index = store() + "/private/index.sqlite";
    return SizeOf(index) + SizeOf(index + "-wal");
  }

  uint64_t CountedBytes() { return member().Stats()->bytes(); }

  void JudgeIndex(const std::string& what) {
    const uint64_t counted = CountedBytes();  // writes what waits
    const uint64_t bytes = IndexBytes();
    std::printf("%s: index %.1f MiB, counted %.1f MiB\n", what.c_str(), bytes / 1048576.0, counted / 1048576.0);
    Judge(kBounds, what,
          bytes <= kLimit + kSlack ? "" : StrCat("the index has ", bytes / kMiB, " MiB; the limit is ", kLimit / kMiB));
    Judge(kBounds, what + ": told", counted <= kLimit + kSlack ? "" : StrCat("it tells of ", counted / kMiB, " MiB"));
  }

  // Loads what another member uses, oldest of all.
  static void LoadThree(server::TestClient& other) {
    for (int i = 0; i < kOthers; ++i) ASSERT_TRUE(Load(other, CppKernel(StrCat("int other = ", i, ";"))).result);
  }

  // Whether it is still there.
  static void JudgeOthers(server::TestClient& other) {
    for (int i = 0; i < kOthers; ++i) {
      const server::LoadOutcome outcome = Load(other, CppKernel(StrCat("int other = ", i, ";")));
      Judge(kBounds, "another member's entries", outcome.result && outcome.result->cache_hit() ? "" : "are gone");
    }
  }

  void TwinHits(const Kernel& kernel) {
    const server::LoadOutcome outcome = Load(member(), kernel);
    JudgeTwin(kBounds, "what was loaded last is a hit", outcome.result && outcome.result->cache_hit() ? "" : "a miss");
  }
};

// A tiny kernel whose inputs take the index half a megabyte.
Kernel WithLongNames(int number) {
  Kernel kernel = CppKernel(StrCat("int number = ", number, ";"));
  const std::string folder(200, 'f');
  for (int i = 0; i < 1'900; ++i) AddHeader(kernel, StrCat(folder, "/", i, std::string(40, 'h')), "");
  return kernel;
}

TEST_F(IndexTest, InputsAreCounted) {
  constexpr int kLoads = 40;
  const auto other = Connect(TheUsers().other);
  LoadThree(*other);
  for (int i = 0; i < kLoads; ++i) {
    const server::LoadOutcome outcome = Load(member(), WithLongNames(i));
    ASSERT_TRUE(outcome.result) << Answer(outcome);
  }
  JudgeIndex("forty kernels with 1,900 headers");
  JudgeOthers(*other);
  TwinHits(WithLongNames(kLoads - 1));
}

// Asks under one name after another, on one connection.
void LookUpUnderNames(uid_t user, const std::string& path, v1::LoadRequest load, int names) {
  const UniqueFd connection = *ConnectAs(user, path);
  for (int i = 0; i < names; ++i) {
    load.set_name(StrCat(i, std::string(190, 'n')));
    const std::string request = LookupOf(load).SerializeAsString();
    const MonotonicTime deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    ASSERT_THAT(SendFrame(connection.get(), i == 0 ? kLookupMagic : "", request, deadline), IsOk());
    ASSERT_THAT(ReceiveFrame(connection.get(), 1 << 20, deadline), IsOk());
  }
}

TEST_F(IndexTest, NamesAreCounted) {
  constexpr int kKernels = 60;
  const auto other = Connect(TheUsers().other);
  LoadThree(*other);
  for (int i = 0; i < kKernels; ++i) {
    const Kernel kernel = CppKernel(StrCat("int number = ", i, ";"));
    ASSERT_TRUE(Load(member(), kernel).result);
    LookUpUnderNames(TheUsers().member, socket(), kernel.request, 1'000);
  }
  JudgeIndex("sixty kernels under 1,000 names each");
  JudgeOthers(*other);
  TwinHits(CppKernel(StrCat("int number = ", kKernels - 1, ";")));
}

}  // namespace
}  // namespace kernix::security
