// SPDX-License-Identifier: Apache-2.0
#include "client/connection/load_attendant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "common/base/error.h"

namespace kernix {
namespace {

using ::testing::ElementsAre;

v1::Output OutputOf(const std::string& text) {
  v1::Output output;
  output.set_text(text);
  return output;
}

absl::StatusOr<std::string> NoBlobs(const Digest&) { return absl::NotFoundError("none"); }

// A compiler that prints until it is cancelled. It stays at most one line ahead of its reader.
class Chatter {
 public:
  explicit Chatter(LoadMailbox& mailbox)
      : thread_([this, &mailbox] {
          while (!mailbox.cancellation().cancelled()) {
            if (printed_ == read_) mailbox.Push(OutputOf("line")), ++printed_;
            std::this_thread::yield();
          }
          mailbox.Finish(absl::CancelledError("by the caller"));
        }) {}
  ~Chatter() { thread_.join(); }

  void Read() { ++read_; }

 private:
  std::atomic<int> printed_{0}, read_{0};
  std::thread thread_;
};

TEST(AttendLoadTest, ASteadyStreamOfOutputDoesNotKeepTheCallerFromGivingUp) {
  LoadMailbox mailbox;
  Chatter chatter(mailbox);
  LoadCallbacks callbacks;
  callbacks.output = [&](std::string_view) { chatter.Read(); };
  callbacks.cancelled = [] { return true; };
  const auto result = AttendLoad(mailbox, NoBlobs, callbacks);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(KindOf(result->status()), v1::ErrorDetail::CANCELLED);
}

TEST(AttendLoadTest, AnExceptionOfACallbackCancelsTheLoad) {
  LoadMailbox mailbox;
  Chatter chatter(mailbox);
  LoadCallbacks callbacks;
  callbacks.output = [](std::string_view) { throw std::runtime_error("no"); };
  EXPECT_THROW(AttendLoad(mailbox, NoBlobs, callbacks), std::runtime_error);
  EXPECT_TRUE(mailbox.cancellation().cancelled());
}

TEST(AttendLoadTest, AllNewsIsDeliveredBeforeTheResult) {
  LoadMailbox mailbox;
  v1::Progress queued;
  queued.set_state(v1::Progress::QUEUED);
  queued.set_queue_position(2);
  v1::Output command;
  command.set_command("g++ -c");
  mailbox.Push(queued);
  mailbox.Push(queued);  // no news
  mailbox.Push(command);
  mailbox.Push(OutputOf("said"));
  mailbox.Push(WarningEvent{"beware"});
  v1::LoadResult done;
  done.set_build_ms(7);
  mailbox.Finish(done);
  std::vector<std::string> heard;
  LoadCallbacks callbacks;
  callbacks.output = callbacks.progress = callbacks.warning = [&](std::string_view text) { heard.emplace_back(text); };
  callbacks.cancelled = [] { return true; };  // too late
  const auto result = AttendLoad(mailbox, NoBlobs, callbacks);
  ASSERT_TRUE(result.has_value() && result->ok());
  EXPECT_EQ((*result)->build_ms(), 7u);
  EXPECT_THAT(heard, ElementsAre("queued (2 ahead)", "g++ -c\n", "said", "beware"));
}

}  // namespace
}  // namespace kernix
