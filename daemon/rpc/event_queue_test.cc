// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/event_queue.h"

#include <gtest/gtest.h>

#include <string>

namespace kernix::server {
namespace {

v1::LoadEvent Progress(const std::string& step) {
  v1::LoadEvent event;
  event.mutable_progress()->set_step(step);
  return event;
}

v1::LoadEvent Output(std::string text) {
  v1::LoadEvent event;
  event.mutable_output()->set_text(std::move(text));
  return event;
}

TEST(EventQueue, KeepsTheOrder) {
  EventQueue queue;
  queue.Push(Output("a"));
  queue.Push(Progress("compile"));
  queue.Push(Output("b"));
  EXPECT_EQ(queue.Pop()->output().text(), "a");
  EXPECT_EQ(queue.Pop()->progress().step(), "compile");
  EXPECT_EQ(queue.Pop()->output().text(), "b");
  EXPECT_FALSE(queue.Pop().has_value());
}

TEST(EventQueue, NewProgressReplacesOldThatWaits) {
  EventQueue queue;
  queue.Push(Progress("compile"));
  queue.Push(Progress("link"));
  EXPECT_EQ(queue.Pop()->progress().step(), "link");
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, DropsOutputThatNobodyReadsAndSaysSoOnce) {
  EventQueue queue;
  const std::string piece(EventQueue::kMaxOutputBytes / 2, 'x');
  queue.Push(Output(piece));
  queue.Push(Output(piece));
  queue.Push(Output("too much"));
  queue.Push(Output("too much"));
  queue.Push(Progress("link"));
  EXPECT_EQ(queue.Pop()->output().text(), piece);
  EXPECT_EQ(queue.Pop()->output().text(), piece);
  EXPECT_NE(queue.Pop()->output().text().find("output dropped"), std::string::npos);
  EXPECT_TRUE(queue.Pop()->has_progress());
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, TakesOutputAgainOnceItIsRead) {
  EventQueue queue;
  const std::string all(EventQueue::kMaxOutputBytes, 'x');
  queue.Push(Output(all));
  queue.Push(Output("lost"));
  while (queue.Pop()) {
  }
  queue.Push(Output("seen"));
  EXPECT_EQ(queue.Pop()->output().text(), "seen");
}

}  // namespace
}  // namespace kernix::server
