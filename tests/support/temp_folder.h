// SPDX-License-Identifier: Apache-2.0
//
// A folder for one test.
#pragma once

#include <string>
#include <string_view>

namespace kernix::testing {

// Creates an empty folder in the temporary folder. On destruction, removes it with its contents; if the test has failed
// by then, keeps it and prints its path. Links in its path are resolved.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(std::string_view name) const;

  // Writes a file, creates its folders, and returns its path.
  std::string Write(std::string_view name, std::string_view text, bool executable = false) const;

 private:
  std::string path_;
};

}  // namespace kernix::testing
