// SPDX-License-Identifier: Apache-2.0
//
// systemd's journal, which keeps the fields of a log line apart (https://systemd.io/JOURNAL_NATIVE_PROTOCOL).
#pragma once

#include <string>
#include <string_view>

namespace kernix {

class Journal {
 public:
  explicit Journal(std::string socket_path);

  // The journal that stderr leads to, as $JOURNAL_STREAM says. Null if it leads elsewhere.
  static const Journal* OfStderr();

  // Adds a field, in upper case behind `prefix`: ("KERNIX_", "user", "ada") becomes KERNIX_USER=ada.
  static void Add(std::string& entry, std::string_view prefix, std::string_view name, std::string_view value);

  // False if the journal does not take the entry now. Never waits.
  bool Send(const std::string& entry) const;

 private:
  const std::string socket_path_;
  const int socket_;
};

}  // namespace kernix
