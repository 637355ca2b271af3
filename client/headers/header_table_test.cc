// SPDX-License-Identifier: Apache-2.0
#include "client/headers/header_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "client/headers/header_scan.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "tests/support/fault_env.h"
#include "tests/support/mem_env.h"

namespace kernix {
namespace {

using ::testing::Contains;
using ::testing::SizeIs;

constexpr int kHeaders = 100;

// Records which files are read.
class CountingEnv : public FaultEnv {
 public:
  using FaultEnv::FaultEnv;
  absl::StatusOr<std::string> ReadFile(const std::string& path) override {
    reads.insert(path);
    return FaultEnv::ReadFile(path);
  }

  std::multiset<std::string> reads;
};

// The parts of a scan that a build depends on.
std::vector<std::string> Content(const HeaderScan& scan) {
  std::vector<std::string> content;
  for (const v1::Header& header : scan.headers) content.push_back(header.SerializeAsString());
  return content;
}

class HeaderTableTest : public ::testing::Test {
 protected:
  HeaderTableTest() {
    Write("/include/0.h", Includes(1, kHeaders));
    for (int i = 1; i < kHeaders; ++i) Write(StrCat("/include/", i, ".h"), StrCat("int i", i, ";"));
    EXPECT_TRUE(mem_.CreateDirectories("/store/headers", 0700).ok());
    mem_.AdvanceClock(Duration(10'000));
  }

  static std::string Includes(int from, int to) {
    std::string text;
    for (int i = from; i < to; ++i) StrAppend(&text, "#include \"", i, ".h\"\n");
    return text;
  }

  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(mem_.CreateDirectories(Dirname(path), 0755).ok());
    ASSERT_TRUE(mem_.WriteFile(path, text, 0644).ok());
  }

  // Like a process that does not know any file yet.
  HeaderScan ScanAfresh(size_t max_bytes = HeaderTable::kMaxBytes, const std::string& source = "#include \"0.h\"\n") {
    env_.reads.clear();
    auto& files = *new HeaderFiles(env_);  // never destroyed, like a process's own
    HeaderTable table(
        env_, [this] { return folder_; }, max_bytes);
    HeaderScanRequest request;
    request.sources = {{.text = source, .label = "m", .folder = ""}};
    request.include_paths = {"/include"};
    absl::StatusOr<HeaderScan> scan = ScanHeaders(env_, files, table, request);
    EXPECT_TRUE(scan.ok()) << scan.status();
    table.Save();
    return scan.value_or(HeaderScan());
  }

  bool TableIsThere() { return mem_.Stat(kTable).ok(); }

  static constexpr char kTable[] = "/store/headers/table";
  MemEnv mem_;
  CountingEnv env_{mem_};
  absl::StatusOr<std::string> folder_ = "/store/headers";
};

TEST_F(HeaderTableTest, AFreshProcessReadsFewHeadersOfALargeTree) {
  const HeaderScan first = ScanAfresh();
  EXPECT_THAT(first.headers, SizeIs(kHeaders));
  EXPECT_THAT(env_.reads, SizeIs(kHeaders));
  const HeaderScan second = ScanAfresh();
  EXPECT_EQ(Content(second), Content(first));
  EXPECT_THAT(env_.reads, SizeIs(HeaderTable::kWorthwhile));  // the table is one of them
  EXPECT_THAT(env_.reads, Contains(kTable));
}

TEST_F(HeaderTableTest, WhatTheTableTellsLeadsToTheSameFiles) {
  Write("/include/1.h", "#define NEXT <98.h>\n#define OTHER NEXT\n#include OTHER\n");
  Write("/include/2.h", "#if __has_include(\"sub/a.h\")\n#endif\n");
  Write("/include/sub/a.h", "#include \"../3.h\"\n#include_next <4.h>\n");
  mem_.AdvanceClock(Duration(10'000));
  const HeaderScan first = ScanAfresh();
  EXPECT_THAT(first.headers, SizeIs(kHeaders + 1));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Content(ScanAfresh()), Content(first));
}

TEST_F(HeaderTableTest, AFileThatChangedIsReadThoughSizeAndModificationTimeAreTheSame) {
  for (const char* path : {"/include/1.h", "/include/99.h"}) ASSERT_TRUE(mem_.SetModificationTime(path, 1000).ok());
  mem_.AdvanceClock(Duration(10'000));
  const HeaderScan first = ScanAfresh();
  for (const char* path : {"/include/1.h", "/include/99.h"}) {
    Write(path, path == std::string("/include/1.h") ? "int j1;" : "int j99;");
    ASSERT_TRUE(mem_.SetModificationTime(path, 1000).ok());
  }
  const std::vector<std::string> changed = Content(ScanAfresh());
  EXPECT_NE(changed, Content(first));
  EXPECT_THAT(env_.reads, Contains("/include/99.h"));
  ASSERT_TRUE(mem_.RemoveFile(kTable).ok());
  EXPECT_EQ(Content(ScanAfresh()), changed);
}

TEST_F(HeaderTableTest, AFileThatIsYoungWhenItIsReadIsNotKept) {
  for (int i = 1; i < kHeaders; ++i) Write(StrCat("/include/", i, ".h"), StrCat("int j", i, ";"));
  mem_.AdvanceClock(Duration(90));
  ScanAfresh();
  EXPECT_FALSE(TableIsThere());
  mem_.AdvanceClock(Duration(20));
  ScanAfresh();
  EXPECT_TRUE(TableIsThere());
}

TEST_F(HeaderTableTest, NothingIsKeptOfFilesThatAnotherMachineMayChange) {
  mem_.AddNetworkFileSystem("/include");
  ScanAfresh();
  EXPECT_FALSE(TableIsThere());
}

TEST_F(HeaderTableTest, NothingIsKeptOfAFewHeaders) {
  Write("/include/0.h", Includes(1, HeaderTable::kWorthwhile - 1));
  ScanAfresh();
  EXPECT_FALSE(TableIsThere());
}

TEST_F(HeaderTableTest, ATableThatAddsNothingIsNotWrittenAgain) {
  ScanAfresh();
  const FileInfo written = mem_.Stat(kTable).value();
  mem_.AdvanceClock(Duration(10'000));
  ScanAfresh();
  EXPECT_EQ(mem_.Stat(kTable)->ctime_ns, written.ctime_ns);
}

TEST_F(HeaderTableTest, ADamagedTableIsNotBelieved) {
  const HeaderScan first = ScanAfresh();
  const std::string sound = mem_.ReadFile(kTable).value();
  for (const size_t at : {size_t{0}, size_t{40}, sound.size() / 2, sound.size() - 1}) {
    std::string damaged = sound;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    for (const std::string& text : {damaged, sound.substr(0, at)}) {
      Write(kTable, text);
      EXPECT_EQ(Content(ScanAfresh()), Content(first));
      EXPECT_THAT(env_.reads, SizeIs(kHeaders + 1));
      EXPECT_EQ(mem_.ReadFile(kTable)->size(), sound.size());  // and has replaced it
    }
  }
}

TEST_F(HeaderTableTest, WhatGetsTooLargeBeginsAnew) {
  ScanAfresh();
  const size_t size = mem_.Stat(kTable)->size;
  for (int i = 0; i < kHeaders; ++i) Write(StrCat("/include/more", i, ".h"), "int i;");
  mem_.AdvanceClock(Duration(10'000));
  std::string source;
  for (int i = 0; i < kHeaders; ++i) StrAppend(&source, "#include \"more", i, ".h\"\n");
  ScanAfresh(size * 3 / 2, source);
  EXPECT_LT(mem_.Stat(kTable)->size, size * 3 / 2);
  ScanAfresh(size * 3 / 2, source);
  EXPECT_THAT(env_.reads, SizeIs(HeaderTable::kWorthwhile));
  ScanAfresh(size * 3 / 2);
  EXPECT_THAT(env_.reads, SizeIs(kHeaders + 1));
}

TEST_F(HeaderTableTest, ALoadDoesNotNeedTheTable) {
  folder_ = absl::PermissionDeniedError("somebody else's");
  EXPECT_THAT(ScanAfresh().headers, SizeIs(kHeaders));
  folder_ = "/store/headers";
  env_.Inject(NoSpace(Operation::kWriteFileDurably, kTable));
  EXPECT_THAT(ScanAfresh().headers, SizeIs(kHeaders));
  EXPECT_FALSE(TableIsThere());
}

}  // namespace

}  // namespace kernix
