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
  const std::string bytes("a\0b", 3);
  int rows = 0;
  Statement& statement = database.Prepared("SELECT ?, ?, ?, ?, ?");
  ASSERT_THAT(statement.Bind(-5, "text", Blob{bytes}, Blob{""}, DigestOf("x")).ForEachRow([&](const Statement& row) {
    ++rows;
    EXPECT_EQ(row.Int(0), -5);
    EXPECT_EQ(row.Text(1), "text");
    EXPECT_EQ(row.Bytes(2), bytes);
    EXPECT_EQ(row.Bytes(3), "");
    EXPECT_EQ(row.Bytes(4), DigestOf("x").Raw());
  }),
              IsOk());
  EXPECT_EQ(rows, 1);
}

TEST_F(SqliteTest, AWrongBindIsReportedByTheNextRunAndThenForgotten) {
  Database database = Open();
  Statement& statement = database.Prepared("SELECT ?");
  EXPECT_FALSE(statement.Bind(1, 2).Run().ok());
  EXPECT_TRUE(statement.Bind(1).Run().ok());
}

TEST_F(SqliteTest, AWrongStatementIsReportedWhenItRunsUntilItFits) {
  Database database = Open();
  EXPECT_FALSE(database.Prepared("SELECT x FROM t WHERE x = ?").Bind(1).Run().ok());
  ASSERT_TRUE(database.Execute("CREATE TABLE t (x); INSERT INTO t VALUES (1)").ok());
  EXPECT_TRUE(database.Prepared("SELECT x FROM t WHERE x = ?").Bind(1).HasRow().value());
  EXPECT_FALSE(database.Prepared("SELECT x FROM t WHERE x = ?").Bind(2).HasRow().value());
}

TEST_F(SqliteTest, AnErrorOfARowEndsTheStatement) {
  Database database = Open();
  Statement& statement = database.Prepared("SELECT 1 UNION SELECT 2");
  int rows = 0;
  EXPECT_TRUE(absl::IsDataLoss(statement.ForEachRow([&](const Statement&) {
    ++rows;
    return absl::DataLossError("bad");
  })));
  EXPECT_EQ(rows, 1);
  EXPECT_THAT(statement.Run(), IsOk());
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
  EXPECT_EQ(*database.QueryInt("PRAGMA user_version"), 2);
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
