// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/sqlite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/os/env.h"
#include "daemon/cache/index.h"
#include "daemon/cache/index_schema.h"
#include "tests/support/test_util.h"

namespace kernix::cache {
namespace {

using ::testing::HasSubstr;

class SqliteTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_ / "x.sqlite"; }

  Database Open() {
    auto database = OpenIndexConnection(path());
    EXPECT_TRUE(database.ok()) << database.status();
    return *std::move(database);
  }

  ScratchDirectory folder_;
};

TEST_F(SqliteTest, BindsAndReadsEveryType) {
  Database database = Open();
  auto statement = database.Prepare("SELECT ?, ?, ?, ?");
  ASSERT_TRUE(statement.ok());
  const std::string bytes("a\0b", 3);
  statement->BindInt(1, -5).BindText(2, "text").BindBlob(3, bytes).BindBlob(4, "");
  ASSERT_TRUE(*statement->Step());
  EXPECT_EQ(statement->Int(0), -5);
  EXPECT_EQ(statement->Text(1), "text");
  EXPECT_EQ(statement->Blob(2), bytes);
  EXPECT_EQ(statement->Blob(3), "");
  EXPECT_FALSE(*statement->Step());
}

TEST_F(SqliteTest, AWrongBindIsReportedByTheNextStepAndForgottenByReset) {
  Database database = Open();
  auto statement = database.Prepare("SELECT ?");
  EXPECT_FALSE(statement->BindInt(2, 1).Step().ok());
  statement->Reset();
  EXPECT_TRUE(statement->BindInt(1, 1).Step().ok());
}

TEST_F(SqliteTest, TransactionRollsBackUnlessItWasCommitted) {
  Database database = Open();
  ASSERT_TRUE(database.Execute("CREATE TABLE t (x)").ok());
  {
    auto transaction = Transaction::Begin(database);
    ASSERT_TRUE(transaction.ok());
    ASSERT_TRUE(database.Execute("INSERT INTO t VALUES (1)").ok());
  }
  EXPECT_EQ(*database.QueryInt("SELECT count(*) FROM t"), 0);
  {
    auto transaction = Transaction::Begin(database);
    ASSERT_TRUE(database.Execute("INSERT INTO t VALUES (1)").ok());
    ASSERT_TRUE(transaction->Commit().ok());
  }
  EXPECT_EQ(*database.QueryInt("SELECT count(*) FROM t"), 1);
}

TEST_F(SqliteTest, FullDiskIsResourceExhaustedAndLeavesTheOldContent) {
  Database database = Open();
  ASSERT_TRUE(database.Execute("CREATE TABLE t (x); INSERT INTO t VALUES ('old')").ok());
  ASSERT_TRUE(database.Execute("PRAGMA max_page_count = 4").ok());
  {
    auto transaction = Transaction::Begin(database);
    ASSERT_TRUE(transaction.ok());
    const absl::Status status = database.Execute("INSERT INTO t VALUES (zeroblob(100000))");
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path()));
  }
  EXPECT_EQ(*database.QueryInt("SELECT count(*) FROM t"), 1);
}

TEST_F(SqliteTest, SomethingElseIsDataLoss) {
  ASSERT_TRUE(Env::Posix().WriteFile(path(), std::string(4096, 'x'), 0600).ok());
  EXPECT_TRUE(absl::IsDataLoss(OpenIndexConnection(path()).status()));
}

TEST_F(SqliteTest, MissingFolderIsPermissionDenied) {
  EXPECT_TRUE(absl::IsPermissionDenied(Database::Open(folder_ / "no/x.sqlite", 0).status()));
}

TEST_F(SqliteTest, TheTablesAreMadeOnce) {
  Database database = Open();
  ASSERT_THAT(PrepareIndex(database), IsOk());
  ASSERT_THAT(database.Execute("INSERT INTO counter VALUES (1, 2)"), IsOk());
  ASSERT_THAT(PrepareIndex(database), IsOk());
  EXPECT_EQ(*database.QueryInt("PRAGMA user_version"), 1);
  EXPECT_EQ(*database.QueryInt("SELECT value FROM counter"), 2);
}

TEST_F(SqliteTest, TablesOfAnotherKernixAreRefused) {
  for (const char* version : {"PRAGMA user_version = 5", "PRAGMA user_version = 1000"}) {
    Database database = Open();
    ASSERT_THAT(database.Execute(version), IsOk());
    const absl::Status status = PrepareIndex(database);
    EXPECT_TRUE(absl::IsFailedPrecondition(status));
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("another kernix made it"));
  }
}

}  // namespace
}  // namespace kernix::cache
