// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/top.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace kernix::ctl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kUp[] = "\x1b[A";
constexpr char kDown[] = "\x1b[B";

void AddLoad(TopData& data, uint64_t id, const std::string& name, uint64_t elapsed_ms) {
  v1::RunningLoad& load = *data.status.add_load();
  load.set_id(id);
  load.set_owner(getuid());
  load.set_name(name);
  load.set_elapsed_ms(elapsed_ms);
  load.mutable_progress()->set_state(v1::Progress::RUNNING);
  load.mutable_progress()->set_step("ptxas");
  load.mutable_progress()->set_steps_total(9);
}

TopData Data() {
  TopData data;
  data.info = {.address = "unix:/run/kernix/kernixd.sock", .version = "0.1.0", .running_jobs = 2, .queued_jobs = 7};
  data.stats.set_builds(1);
  data.stats.set_hits(3);
  data.stats.set_misses(1);
  data.stats.set_bytes(2048);
  data.status.set_hidden_loads(4);
  AddLoad(data, 1, "charlie", 9'000);
  AddLoad(data, 2, "alpha", 70'000);
  AddLoad(data, 3, "bravo", 8'000);
  return data;
}

class TopViewTest : public testing::Test {
 protected:
  std::string Draw(size_t width = 80, size_t height = 24) {
    lines_ = view_.Draw(data_, width, height, "");
    std::string text;
    for (const std::string& line : lines_) text += line + "\n";
    return text;
  }
  // The order of the loads.
  std::string Order() {
    const std::string text = Draw();
    std::map<size_t, char> places;
    for (const char* name : {"alpha", "bravo", "charlie"}) {
      if (text.find(name) != std::string::npos) places[text.find(name)] = *name;
    }
    std::string order;
    for (const auto& [place, name] : places) order += name;
    return order;
  }
  void Type(const std::string& keys) {
    for (const char key : keys) EXPECT_EQ(view_.Press({key}), TopKey::kNone);
  }

  TopData data_ = Data();
  TopView view_{/*keys=*/true};
  std::vector<std::string> lines_;
};

TEST_F(TopViewTest, ShowsCountsAndLoads) {
  const std::string text = Draw();
  EXPECT_THAT(text, HasSubstr("jobs: 2 running, 7 queued   loads: 3, and 4 of other users"));
  EXPECT_THAT(text, HasSubstr("hits 3 (75 %)   misses 1   builds 1"));
  EXPECT_THAT(text, HasSubstr("ptxas, 0 of 9 steps done"));
  EXPECT_EQ(lines_.size(), 24u);
  EXPECT_THAT(lines_.back(), StartsWith("q quit"));
}

TEST_F(TopViewTest, FitsTheTerminal) {
  data_.status.mutable_load(0)->set_name(std::string(500, 'n') + "\u00e9");
  for (int i = 0; i < 100; ++i) AddLoad(data_, 100 + i, "more", 1);
  Draw(40, 10);
  EXPECT_EQ(lines_.size(), 10u);
  for (const std::string& line : lines_) EXPECT_LE(line.size(), line.starts_with("\x1b") ? 48u : 40u) << line;
  Draw(40, 3);
  EXPECT_EQ(lines_.size(), 3u);
}

TEST_F(TopViewTest, NamesDoNotActOnTheTerminal) {
  data_.status.mutable_load(0)->set_name("a\x1b[2Jb");
  EXPECT_THAT(Draw(), HasSubstr("a\\x1b[2Jb"));
}

TEST_F(TopViewTest, Sorts) {
  EXPECT_EQ(Order(), "acb") << "the longest-running first";
  Type("s");
  EXPECT_EQ(Order(), "abc");
  EXPECT_THAT(lines_.back(), HasSubstr("sort: name"));
  Type("ss");
  EXPECT_EQ(Order(), "acb");
}

TEST_F(TopViewTest, Filters) {
  Type("/rav");
  EXPECT_EQ(Order(), "b");
  EXPECT_THAT(lines_.back(), HasSubstr("filter: rav"));
  Type("q\x7f\nx");  // q is a letter of the filter, and x is not
  EXPECT_EQ(Order(), "b");
  EXPECT_EQ(view_.Press("q"), TopKey::kQuit);
  Type("/\n");
  EXPECT_EQ(Order(), "acb");
}

TEST_F(TopViewTest, TheCursorStaysOnItsLoad) {
  const auto selected = [this] {
    Draw();
    return view_.selected();
  };
  EXPECT_EQ(selected(), std::nullopt);
  view_.Press(kDown);
  EXPECT_EQ(selected(), 2u);
  view_.Press(kDown);
  EXPECT_EQ(selected(), 1u);
  EXPECT_THAT(lines_, Contains(StartsWith("\x1b[7mcharlie")));
  Type("s");  // by name: it is the last one
  EXPECT_EQ(selected(), 1u);
  view_.Press(kDown);
  EXPECT_EQ(selected(), 1u);
  view_.Press(kUp);
  EXPECT_EQ(selected(), 3u);
}

TEST_F(TopViewTest, ALoadThatHasEndedSelectsNoOther) {
  view_.Press(kDown);
  Draw();
  EXPECT_EQ(view_.selected(), 2u);
  data_.status.mutable_load()->DeleteSubrange(1, 1);
  Draw();
  EXPECT_EQ(view_.selected(), std::nullopt);
  EXPECT_THAT(lines_, Not(Contains(StartsWith("\x1b[7m"))));
}

TEST_F(TopViewTest, ALostTerminalEndsItAlsoWhileAFilterIsTyped) {
  Type("/q");
  EXPECT_EQ(view_.Press(kEndKey), TopKey::kQuit);
}

TEST_F(TopViewTest, WithoutKeysThereIsNoCursor) {
  TopView view(/*keys=*/false);
  const std::vector<std::string> lines = view.Draw(data_, 1000, 9, "");
  EXPECT_EQ(lines.size(), 8u);
  EXPECT_THAT(lines, Not(Contains(HasSubstr("\x1b"))));
}

}  // namespace
}  // namespace kernix::ctl
