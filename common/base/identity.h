// SPDX-License-Identifier: Apache-2.0
//
// Who asks. The transport finds that out, once for each connection, which then carries it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace kernix {

// A number that stands for a user, in limits, queues and ownership. A local user's is the uid. Stores and the wire keep
// it as a number.
enum class UserId : uint32_t {};

constexpr uint32_t ToNumber(UserId user) { return static_cast<uint32_t>(user); }

// Two identities of one id answer alike. Thread-safe.
class Identity {
 public:
  virtual ~Identity() = default;
  Identity(const Identity&) = delete;
  Identity& operator=(const Identity&) = delete;

  UserId id() const { return id_; }

  // For logs and errors. That of a local user who is not in the user database is the uid.
  const std::string& name() const { return name_; }

  // Whether this one may do what concerns everybody, by now: see and drop the entries of all, have their artifacts,
  // read the metrics, stop the daemon. Not remembered, since it may change while a connection is open.
  virtual bool IsAdministrator() const = 0;

 protected:
  Identity(UserId id, std::string name) : id_(id), name_(std::move(name)) {}

 private:
  const UserId id_;
  const std::string name_;
};

using IdentityPtr = std::shared_ptr<const Identity>;

}  // namespace kernix
