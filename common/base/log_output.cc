// SPDX-License-Identifier: Apache-2.0
#include "common/base/log_output.h"

namespace kernix {

LogBudget::Answer LogBudget::Ask(std::string_view account, uint64_t bytes, Time now) {
  const MutexLock lock(mutex_);
  auto found = accounts_.find(account);
  if (found == accounts_.end()) found = accounts_.emplace(account, Account{now + window_}).first;
  Account& own = found->second;
  Answer answer;
  if (own.end <= now) {
    answer.left_out = own.left_out;
    own = {now + window_};
  }
  answer.write = own.bytes < bytes_;
  answer.write ? own.bytes += bytes : ++own.left_out;
  return answer;
}

std::vector<std::pair<std::string, uint64_t>> LogBudget::Settle(Time now) {
  std::vector<std::pair<std::string, uint64_t>> left_out;
  const MutexLock lock(mutex_);
  for (const auto& [name, account] : accounts_) {
    if (account.end <= now && account.left_out > 0) left_out.emplace_back(name, account.left_out);
  }
  std::erase_if(accounts_, [now](const auto& entry) { return entry.second.end <= now; });
  return left_out;
}

}  // namespace kernix
