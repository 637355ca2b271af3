// SPDX-License-Identifier: Apache-2.0
//
// What was tried, and what came of it, by row of the table in docs' SECURITY.md; printed at the end.
#pragma once

#include <map>
#include <string>

namespace kernix::security {

class Tally {
 public:
  // The one of this process.
  static Tally& Get();

  void Attack(const std::string& row, bool succeeded);
  void Twin(const std::string& row, bool loaded);

  void Print() const;

 private:
  struct Row {
    int attacks = 0;
    int succeeded = 0;
    int twins = 0;
    int loaded = 0;
  };
  std::map<std::string, Row> rows_;
};

}  // namespace kernix::security
