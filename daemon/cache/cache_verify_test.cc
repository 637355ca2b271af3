// SPDX-License-Identifier: Apache-2.0
//
// Checks of a whole store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/os/posix_error.h"
#include "tests/support/cache_fixture.h"

namespace kernix::cache {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

using Problem = v1::VerifyCacheResponse::Problem;

class CacheVerifyTest : public CacheTest {
 protected:
  void SetUp() override {
    Open();
    Insert(1);
    ASSERT_TRUE(Has(1));  // and so known to be sound
  }

  // The first piece.
  v1::VerifyCacheResponse Verify(bool repair = false) {
    v1::VerifyCacheRequest request;
    request.set_repair(repair);
    const auto response = cache_->Verify(request);
    EXPECT_THAT(response, IsOk());
    return response.value_or(v1::VerifyCacheResponse());
  }

  std::vector<std::pair<Problem::Kind, bool>> Problems(bool repair = false) {
    std::vector<std::pair<Problem::Kind, bool>> problems;
    const v1::VerifyCacheResponse checked = Verify(repair);
    for (const Problem& problem : checked.problem()) problems.emplace_back(problem.kind(), problem.repaired());
    return problems;
  }

  void Damage(int i) {
    std::string content = TestArtifact(i);
    content[500] ^= 1;
    ASSERT_THAT(env_.RemoveFile(BlobOf(i)), IsOk());
    ASSERT_THAT(env_.WriteFile(BlobOf(i), content, 0444), IsOk());
  }

  std::string Stray(const std::string& name) const { return JoinPath(JoinPath(store(), "artifacts"), name); }
};

TEST_F(CacheVerifyTest, RemovesNothingFromTheStoreThatIsAtItsPlaceNow) {
  ASSERT_THAT(env_.WriteFile(Stray("of-the-next-one"), "x", 0444), IsOk());
  ASSERT_THAT(env_.Rename(JoinPath(store(), "private"), folder_ / "moved"), IsOk());
  v1::VerifyCacheRequest request;
  request.set_repair(true);
  EXPECT_EQ(cache_->Verify(request).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(env_.Stat(Stray("of-the-next-one")), IsOk());
}

TEST_F(CacheVerifyTest, ASoundStoreHasNoProblem) {
  Insert(2);
  const v1::VerifyCacheResponse checked = Verify();
  EXPECT_THAT(checked.problem(), IsEmpty());
  EXPECT_EQ(checked.artifacts(), 2u);
  EXPECT_EQ(checked.bytes(), 2000u);
  EXPECT_EQ(checked.total_bytes(), 2000u);
  EXPECT_EQ(checked.next(), "");
}

TEST_F(CacheVerifyTest, ADamagedArtifactIsFoundAndRemoved) {
  Insert(2);
  Damage(1);
  const v1::VerifyCacheResponse found = Verify();
  ASSERT_EQ(found.problem_size(), 1);
  EXPECT_EQ(found.problem(0).path(), BlobOf(1));
  EXPECT_THAT(found.problem(0).key(), ElementsAre(TestKey(1).Raw()));
  EXPECT_THAT(Problems(/*repair=*/true), ElementsAre(Pair(Problem::DAMAGED, true)));
  EXPECT_FALSE(env_.Stat(BlobOf(1)).ok());
  EXPECT_THAT(Problems(), IsEmpty());
  EXPECT_EQ(Stats().entries(), 1u);
  Insert(1);
  EXPECT_TRUE(Has(1) && Has(2));
}

// A disk that damages a file does not change its times.
TEST_F(CacheVerifyTest, WhatIsKnownToBeSoundIsReadAllTheSame) {
  const int before = env_.Calls(Operation::kOpenFile, BlobOf(1));
  ASSERT_TRUE(Has(1));
  EXPECT_EQ(env_.Calls(Operation::kOpenFile, BlobOf(1)), before);
  Verify();
  EXPECT_EQ(env_.Calls(Operation::kOpenFile, BlobOf(1)), before + 1);
}

TEST_F(CacheVerifyTest, AllEntriesOfADamagedArtifactGo) {
  ASSERT_THAT(cache_->Insert(TestEntry(2), TestTag(), TestArtifact(1)), IsOk());
  Damage(1);
  EXPECT_EQ(Verify(/*repair=*/true).problem(0).key_size(), 2);
  EXPECT_EQ(Stats().entries(), 0u);
}

TEST_F(CacheVerifyTest, AMissingFileIsFoundAndItsEntryRemoved) {
  ASSERT_THAT(env_.RemoveFile(BlobOf(1)), IsOk());
  EXPECT_THAT(Problems(), ElementsAre(Pair(Problem::MISSING, false)));
  EXPECT_EQ(Stats().entries(), 1u);
  EXPECT_THAT(Problems(/*repair=*/true), ElementsAre(Pair(Problem::MISSING, true)));
  EXPECT_EQ(Stats().entries(), 0u);
  EXPECT_EQ(Stats().bytes(), 0u);
}

TEST_F(CacheVerifyTest, FilesOfNoEntryAreFoundAndRemoved) {
  for (const std::string& name : {std::string(64, '0') + ".so", std::string("precious"),
                                  DigestOf(TestArtifact(1)).Hex() + ".so.0123456789abcdef.tmp"}) {
    ASSERT_THAT(env_.WriteFile(Stray(name), "x", 0444), IsOk());
    EXPECT_THAT(Problems(), ElementsAre(Pair(Problem::UNNAMED, false))) << name;
    EXPECT_THAT(Problems(/*repair=*/true), ElementsAre(Pair(Problem::UNNAMED, true))) << name;
    EXPECT_FALSE(env_.Stat(Stray(name)).ok());
  }
  EXPECT_TRUE(Has(1));
}

TEST_F(CacheVerifyTest, WhatIsBeingWrittenOrWasJustGivenOutIsNoProblem) {
  Open(1 << 30, /*lend_time=*/Duration(1000));
  ASSERT_TRUE(Has(1));
  ASSERT_THAT(cache_->Purge({}), IsOk());
  ASSERT_EQ(FilesInBlobs(), 1);
  std::vector<std::pair<Problem::Kind, bool>> meanwhile = {{Problem::DAMAGED, false}};
  const MakeTrace while_written = [&] {
    meanwhile = Problems(/*repair=*/true);
    return v1::BuildTrace();
  };
  ASSERT_THAT(cache_->Insert(TestEntry(2), TestTag(), TestArtifact(2), while_written), IsOk());
  EXPECT_THAT(meanwhile, IsEmpty());
  EXPECT_TRUE(Has(2));
  EXPECT_EQ(FilesInBlobs(), 2);
}

TEST_F(CacheVerifyTest, WhatCannotBeReadJustNowStays) {
  Fault fault;
  fault.operation = Operation::kOpenFile;
  fault.match = "artifacts/";
  fault.error = ErrnoStatus(EIO, "open", "artifacts/");
  env_.Inject(fault);
  const v1::VerifyCacheResponse checked = Verify(/*repair=*/true);
  ASSERT_EQ(checked.problem_size(), 1);
  EXPECT_EQ(checked.problem(0).kind(), Problem::UNREADABLE);
  EXPECT_NE(checked.problem(0).error(), "");
  EXPECT_FALSE(checked.problem(0).repaired());
  EXPECT_TRUE(Has(1));
}

TEST_F(CacheVerifyTest, ALargeStoreIsCheckedInPieces) {
  constexpr size_t kLarge = 10 << 20;  // two of these are a piece
  for (int i = 2; i < 5; ++i) Insert(i, kLarge);
  ASSERT_THAT(env_.RemoveFile(BlobOf(1)), IsOk());
  v1::VerifyCacheRequest request;
  uint64_t artifacts = 0, problems = 0, pieces = 0;
  do {
    const auto piece = cache_->Verify(request);
    ASSERT_THAT(piece, IsOk());
    ++pieces;
    artifacts += piece->artifacts();
    problems += piece->problem_size();
    request.set_after(piece->next());
  } while (!request.after().empty());
  EXPECT_EQ(pieces, 2u);
  EXPECT_EQ(artifacts, 4u);
  EXPECT_EQ(problems, 1u);
}

TEST_F(CacheVerifyTest, ADamagedIndexIsAnError) {
  for (int i = 2; i < 200; ++i) Insert(i);
  Open();  // the log is in the index
  const std::string index = JoinPath(store(), "private/index.sqlite");
  ASSERT_GT(env_.Stat(index)->size, 40'000u);
  std::fstream(index, std::ios::in | std::ios::out).seekp(8'192) << std::string(24'576, 'x');
  const auto checked = cache_->Verify({});
  EXPECT_EQ(KindOf(checked.status()), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(GetErrorDetail(checked.status()).message(), ::testing::HasSubstr("restart kernixd"));
}

}  // namespace
}  // namespace kernix::cache
