// SPDX-License-Identifier: Apache-2.0
#include "client/connection/quick_lookup.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>

#include "client/connection/endpoint.h"

namespace kernix {
namespace {

class KeptSocketTest : public testing::Test {
 protected:
  // Keeps one end of a connection for `address`, and returns the other end.
  UniqueFd Keep(const std::string& address) {
    auto [kept, other] = MakeSocketPair().value();
    number_ = kept.get();
    socket_.Keep(address, std::move(kept));
    return std::move(other);
  }

  // Whether nobody has the kept end open any more.
  static bool IsClosed(const UniqueFd& other) {
    char byte = 0;
    return recv(other.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }

  KeptSocket& socket_ = *new KeptSocket;  // fork() uses its lock for ever
  int number_ = -1;                       // of the kept descriptor
};

TEST_F(KeptSocketTest, IsTakenOnce) {
  const UniqueFd other = Keep("a");
  const UniqueFd taken = socket_.Take("a");
  EXPECT_EQ(taken.get(), number_);
  EXPECT_FALSE(socket_.Take("a").ok());
  EXPECT_FALSE(IsClosed(other));
}

TEST_F(KeptSocketTest, OneForAnotherAddressIsClosed) {
  const UniqueFd other = Keep("a");
  EXPECT_FALSE(socket_.Take("b").ok());
  EXPECT_TRUE(IsClosed(other));
}

TEST_F(KeptSocketTest, TheNextOneReplacesIt) {
  const UniqueFd first = Keep("a");
  const UniqueFd second = Keep("a");
  EXPECT_TRUE(IsClosed(first));
  EXPECT_FALSE(IsClosed(second));
  EXPECT_TRUE(socket_.Take("a").ok());
}

// A program that becomes a service closes all descriptors, and opens files under their numbers.
TEST_F(KeptSocketTest, WhatTheApplicationHasClosedIsForgottenAndNothingOfItsOwnClosed) {
  const UniqueFd other = Keep("a");
  const UniqueFd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(dup3(file.get(), number_, O_CLOEXEC), number_);
  EXPECT_TRUE(IsClosed(other));
  EXPECT_FALSE(socket_.Take("a").ok());
  EXPECT_EQ(fcntl(number_, F_GETFD), FD_CLOEXEC) << "the application's file is still open";
  close(number_);
}

TEST_F(KeptSocketTest, AChildDoesNotUseItsParents) {
  const UniqueFd other = Keep("a");
  const pid_t child = fork();
  if (child == 0) _exit(socket_.Take("a").ok() ? 1 : 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(IsClosed(other));
  EXPECT_TRUE(socket_.Take("a").ok()) << "the parent's is as it was";
}

}  // namespace

}  // namespace kernix
