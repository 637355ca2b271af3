// SPDX-License-Identifier: Apache-2.0
#include "common/os/epoll.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <array>

#include "common/os/unique_fd.h"

namespace kernix::posix {
namespace {

TEST(EpollTest, ReturnsWhatHasHappened) {
  const UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC)), event(eventfd(/*initval=*/1, EFD_CLOEXEC));
  epoll_event wanted = {.events = EPOLLIN, .data = {.fd = event.get()}};
  ASSERT_EQ(epoll_ctl(epoll.get(), EPOLL_CTL_ADD, event.get(), &wanted), 0);
  std::array<epoll_event, 4> events;
  ASSERT_EQ(AwaitEvents(epoll.get(), events, /*timeout_ms=*/-1), 1);
  EXPECT_EQ(events[0].data.fd, event.get());
}

TEST(EpollDeathTest, AnErrorThatWouldLastEndsTheProcess) {
  std::array<epoll_event, 4> events;
  EXPECT_DEATH(AwaitEvents(/*epoll=*/-1, events, /*timeout_ms=*/0), "error epoll_failed descriptor=-1");
}

}  // namespace
}  // namespace kernix::posix
