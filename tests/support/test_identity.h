// SPDX-License-Identifier: Apache-2.0
//
// For tests: users who are nobody of this machine.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/base/identity.h"
#include "common/base/strings.h"

namespace kernix {

class TestIdentity final : public Identity {
 public:
  explicit TestIdentity(uint32_t id) : Identity(UserId{id}, StrCat(id)) {}

  bool IsAdministrator() const override { return administrator_; }
  void SetAdministrator(bool administrator) { administrator_ = administrator; }

 private:
  std::atomic<bool> administrator_ = false;
};

}  // namespace kernix
