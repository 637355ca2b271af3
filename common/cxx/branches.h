// SPDX-License-Identifier: Apache-2.0
//
// The conditionals of a text that is read: which of it is compiled for sure, which perhaps.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace kernix::language {

// Whether what stands at one place holds at another, later one.
enum class Reach { kNever, kPerhaps, kAlways };

class Branches {
 public:
  // `condition`: what is known of it. Of `#else` it is true.
  void If(std::optional<bool> condition);
  // Ends a branch: the place is that around the conditional, where the next one's condition stands. Else() follows.
  void Leave();
  void Else(std::optional<bool> condition);
  void End();

  // Whether the text here may be compiled.
  bool Live() const { return excluded_ == 0; }
  // Whether the branch that began last may be, as far as its own conditional tells.
  bool BranchLives() const { return open_.empty() || !open_.back().is_excluded; }

  // The place here.
  int Here() const { return here_; }
  Reach Reaches(int from, int to) const;
  // Whether what stands at all of `from` holds at `to`, in one of them at least.
  bool Cover(std::vector<int> from, int to) const;

 private:
  struct Open {
    int around;                // the place around it
    int conditional;           // its number
    bool is_excluded = false;  // its current branch
    bool is_decided = false;   // no later branch can be compiled
    bool is_open = false;      // some branch may have been compiled
  };
  // A branch that is compiled perhaps. What is certain within one is at the same place.
  struct Place {
    int around;
    int conditional;
    int depth;
  };

  void Begin(Open& conditional, std::optional<bool> condition);

  std::vector<Open> open_;
  struct Conditional {
    int around = 0;
    std::vector<int> places;   // of its branches
    bool is_complete = false;  // one of them is compiled
  };
  std::vector<Place> places_ = {{0, 0, 0}};
  int here_ = 0;
  std::vector<Conditional> conditionals_ = {{}};
  size_t excluded_ = 0;  // how many of `open_` are
};

}  // namespace kernix::language
