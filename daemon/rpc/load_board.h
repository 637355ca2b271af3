// SPDX-License-Identifier: Apache-2.0
//
// The loads that have not ended, for people who ask what the daemon does.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/base/user_id.h"
#include "common/os/env.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::server {

// Thread-safe.
class LoadBoard {
 public:
  struct Load {
    UserId owner{};
    std::string name;                  // shortened if long: nobody has checked it yet
    std::vector<std::string> sources;  // labels; shortened in the same way
    MonotonicTime begin;
    v1::Progress progress;  // STATE_UNSPECIFIED until the first report
  };

  // Held as long as the load runs. The board must outlive it.
  class Place {
   public:
    Place(LoadBoard& board, int id) : board_(board), id_(id) {}
    ~Place() { board_.Remove(id_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    void Note(const v1::Progress& progress) { board_.Note(id_, progress); }

   private:
    LoadBoard& board_;
    const int id_;
  };

  std::unique_ptr<Place> Add(UserId owner, const v1::LoadRequest& request, MonotonicTime begin);

  // The oldest first.
  std::vector<Load> List() const;

 private:
  void Note(int id, const v1::Progress& progress);
  void Remove(int id);

  mutable Mutex mutex_;
  int next_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int, Load> loads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::server
