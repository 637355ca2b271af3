// SPDX-License-Identifier: Apache-2.0
#include "tests/security/tally.h"

#include <cstdio>

namespace kernix::security {

Tally& Tally::Get() {
  static Tally tally;
  return tally;
}

void Tally::Attack(const std::string& row, bool succeeded) {
  ++rows_[row].attacks;
  rows_[row].succeeded += succeeded ? 1 : 0;
}

void Tally::Twin(const std::string& row, bool loaded) {
  ++rows_[row].twins;
  rows_[row].loaded += loaded ? 1 : 0;
}

void Tally::Print() const {
  Row sum;
  std::printf("\n%-44s %8s %9s %8s %8s\n", "row", "attacks", "succeeded", "twins", "loaded");
  for (const auto& [name, row] : rows_) {
    std::printf("%-44s %8d %9d %8d %8d\n", name.c_str(), row.attacks, row.succeeded, row.twins, row.loaded);
    sum = {sum.attacks + row.attacks, sum.succeeded + row.succeeded, sum.twins + row.twins, sum.loaded + row.loaded};
  }
  std::printf("%-44s %8d %9d %8d %8d\n", "all", sum.attacks, sum.succeeded, sum.twins, sum.loaded);
}

}  // namespace kernix::security
