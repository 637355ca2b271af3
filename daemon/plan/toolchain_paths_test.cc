// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/toolchain_paths.h"

#include <gtest/gtest.h>

namespace kernix::build {
namespace {

toolchain::Toolchain ToolchainAt(const std::string& place) {
  toolchain::Toolchain toolchain;
  toolchain.host.system_include_directories = {"/usr/include/c++/12", "/usr/include"};
  toolchain.cuda.emplace();
  toolchain.cuda->root = place + "/cu13";
  toolchain.cuda->include_directories = {place + "/cu13/include", place + "/runtime/include"};
  return toolchain;
}

TEST(ToolchainPathsTest, TheInnermostFolderNamesAPath) {
  const auto folders = ToolchainFolders(ToolchainAt("/home/a"));
  EXPECT_EQ(PortablePath(folders, "/usr/include/c++/12/vector"), "kernix-host-0/vector");
  EXPECT_EQ(PortablePath(folders, "/usr/include/math.h"), "kernix-host-1/math.h");
  EXPECT_EQ(PortablePath(folders, "/home/a/cu13/bin/../include/cuda.h"), "kernix-cuda-include-0/cuda.h");
  EXPECT_EQ(PortablePath(folders, "/home/a/cu13/nvvm/x.h"), "kernix-cuda/nvvm/x.h");
  EXPECT_EQ(PortablePath(folders, "/opt/other/x.h"), "/opt/other/x.h");
  EXPECT_EQ(PortablePath(folders, "/usr/includes/x.h"), "/usr/includes/x.h");
}

TEST(ToolchainPathsTest, AnotherPlaceGivesTheSameNames) {
  const auto here = ToolchainFolders(ToolchainAt("/home/a"));
  const auto there = ToolchainFolders(ToolchainAt("/home/somebody-else"));
  for (const char* path :
       {"/home/a/cu13/include/cuda.h", "/home/a/runtime/include/x.h", "/usr/include/math.h", "/opt/x.h"}) {
    const std::string name = PortablePath(here, path);
    EXPECT_EQ(LocalPath(here, name), path);
    EXPECT_EQ(PortablePath(there, LocalPath(there, name)), name);
  }
}

TEST(ToolchainPathsTest, TheOrderDoesNotDependOnThePlace) {
  const auto names = [](const std::string& place) {
    std::vector<std::string> found;
    for (const NamedFolder& folder : ToolchainFolders(ToolchainAt(place))) found.push_back(folder.name);
    return found;
  };
  EXPECT_EQ(names("/a"), names("/a/place/with/a/path/that/is/longer/than/others"));
}

TEST(ToolchainPathsTest, NamesOfFoldersThatAreNotThereStandForNothing) {
  const auto folders = ToolchainFolders(toolchain::Toolchain());
  EXPECT_EQ(LocalPath(folders, "kernix-cuda/include/cuda.h"), "");
}

}  // namespace
}  // namespace kernix::build
