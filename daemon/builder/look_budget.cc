// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/look_budget.h"

namespace kernix::build {

bool LookBudget::IsSpent() const {
  const MutexLock lock(mutex_);
  return (looks_ == 0 ? left_ : since_ + left_ - env_.Now()) < kLeast;
}

void LookBudget::Renew() {
  const MutexLock lock(mutex_);
  left_ = total_;
}

MonotonicTime LookBudget::Begin() {
  const MutexLock lock(mutex_);
  if (looks_++ == 0) since_ = env_.Now();
  return since_ + left_;
}

void LookBudget::End() {
  const MutexLock lock(mutex_);
  if (--looks_ == 0) left_ -= env_.Now() - since_;
}

}  // namespace kernix::build
