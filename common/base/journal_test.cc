// SPDX-License-Identifier: Apache-2.0
//
// Journal, of common/base/log.h.
#include <endian.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "common/base/log.h"

namespace kernix {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// The fields of an entry, as systemd's journal reads them.
std::map<std::string, std::string> FieldsOf(std::string_view entry) {
  std::map<std::string, std::string> fields;
  while (!entry.empty()) {
    const size_t end = entry.find('\n');
    uint64_t size = 0;
    std::memcpy(&size, entry.data() + end + 1, sizeof(size));
    fields.emplace(entry.substr(0, end), entry.substr(end + 1 + sizeof(size), le64toh(size)));
    entry.remove_prefix(end + 1 + sizeof(size) + le64toh(size) + 1);
  }
  return fields;
}

class JournalTest : public testing::Test {
 protected:
  JournalTest() {
    char folder[] = "/tmp/kernix-journal-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/socket";
  }
  ~JournalTest() override {
    close(socket_);
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }

  void Listen() {
    socket_ = socket(AF_UNIX, SOCK_DGRAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }

  std::string folder_;
  std::string path_;
  int socket_ = -1;
};

TEST_F(JournalTest, AnEntryKeepsTheFieldsApart) {
  Listen();
  const Journal journal(path_);
  EXPECT_TRUE(journal.Send(JournalEntry(LogLevel::kWarning, "load", {{"user", "ada"}, {"error", "a\nb=c"}})));
  char received[4096];
  const ssize_t size = recv(socket_, received, sizeof(received), 0);
  ASSERT_GT(size, 0);
  EXPECT_THAT(FieldsOf({received, static_cast<size_t>(size)}),
              UnorderedElementsAre(Pair("MESSAGE", "warning load user=ada error=\"a\\nb=c\""), Pair("PRIORITY", "4"),
                                   Pair("SYSLOG_IDENTIFIER", "kernixd"), Pair("KERNIX_EVENT", "load"),
                                   Pair("KERNIX_USER", "ada"), Pair("KERNIX_ERROR", "a\nb=c")));
}

TEST_F(JournalTest, OneThatDoesNotListenTakesNothing) { EXPECT_FALSE(Journal(path_).Send("MESSAGE=x\n")); }

TEST_F(JournalTest, OneThatDoesNotReadIsNotWaitedFor) {
  Listen();
  const Journal journal(path_);
  int taken = 0;
  while (journal.Send(JournalEntry(LogLevel::kInfo, "load", {})) && taken < 100'000) ++taken;
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, 100'000);
}

}  // namespace
}  // namespace kernix
