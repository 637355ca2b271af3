// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/tool_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "daemon/builder/dependency_file.h"
#include "tests/support/test_util.h"

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

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

toolchain::Toolchain At(const std::string& cuda, const std::string& host) {
  toolchain::Toolchain toolchain;
  toolchain.host.path = host;
  toolchain.cuda.emplace().root = cuda;
  toolchain.cuda->nvcc = StrCat(cuda, "/bin/nvcc");
  toolchain.cuda->include_directories = {StrCat(cuda, "/include"), "/wheels/cccl"};
  return toolchain;
}

TEST(ToolPathsTest, CommandsReachToolsThroughLinks) {
  toolchain::Toolchain toolchain = At("/opt/my (cuda) $x", "/home/a b/bin/g++");
  toolchain.cuda->include_directories[1] = "/home/`w`/cccl";
  toolchain.cuda->library_directories = {"/opt/my (cuda) $x/lib64", "/home/`w`/lib"};
  const auto tools = FindToolPaths(toolchain);
  ASSERT_THAT(tools, IsOk());
  EXPECT_EQ(tools->nvcc, "toolchain/cuda/bin/nvcc");
  EXPECT_THAT(tools->local_paths, UnorderedElementsAre(Pair(tools->host_compiler, "toolchain/host/g++"),
                                                       Pair("{kernix-host-folder}", "/home/a b/bin")));
  EXPECT_THAT(tools->include_directories, ElementsAre("toolchain/cuda/include", "toolchain/include-1"));
  EXPECT_THAT(tools->library_directories, ElementsAre("toolchain/cuda/lib64", "toolchain/lib-1"));
  std::map<std::string, std::string> targets;
  for (const exec::InputLink& link : tools->links) targets[link.path] = link.target;
  EXPECT_THAT(targets, UnorderedElementsAre(
                           Pair("toolchain/cuda", "/opt/my (cuda) $x"), Pair("toolchain/host", "/home/a b/bin"),
                           Pair("toolchain/include-1", "/home/`w`/cccl"), Pair("toolchain/lib-1", "/home/`w`/lib")));
}

// nvcc finds its parts relative to the folder through which it is called, and ".." behind a link is another folder.
TEST(ToolPathsTest, AToolkitBesideTheHostCompilerIsReachedFromItsRoot) {
  const auto tools = FindToolPaths(At("/env", "/env/bin/g++"));
  ASSERT_THAT(tools, IsOk());
  EXPECT_EQ(tools->nvcc, "toolchain/cuda/bin/nvcc");
  EXPECT_THAT(tools->local_paths, Contains(Pair(tools->host_compiler, "toolchain/cuda/bin/g++")));
}

TEST(ToolPathsTest, ClangIsCalledByItsOwnPath) {
  toolchain::Toolchain toolchain = At("/cuda", "/usr/bin/clang++-14");
  toolchain.host.kind = toolchain::HostCompilerKind::kClang;
  const auto tools = FindToolPaths(toolchain);
  ASSERT_THAT(tools, IsOk());
  EXPECT_THAT(tools->local_paths, Contains(Pair(tools->host_compiler, "/usr/bin/clang++-14")));
}

TEST(ToolPathsTest, AProgramsOwnNameHasToBeHarmless) {
  const auto tools = FindToolPaths(At("/cuda", "/usr/bin/g++ (mine)"));
  EXPECT_EQ(KindOf(tools.status()), v1::ErrorDetail::TOOLCHAIN);
}

TEST(ToolPathsTest, TheEnvironmentNamesNoPlaceOfTheMachine) {
  for (const char* host : {"/usr/bin/g++", "/opt/gcc/bin/g++"}) {
    toolchain::Toolchain toolchain;
    toolchain.host.path = host;
    toolchain.environment = {{"LC_ALL", "C"}, {"PATH", "/opt/gcc/bin:/usr/bin:/bin"}};
    const auto tools = FindToolPaths(toolchain);
    ASSERT_THAT(tools, IsOk());
    EXPECT_THAT(EnvironmentFor(toolchain),
                ElementsAre(Pair("LC_ALL", "C"), Pair("PATH", "{kernix-host-folder}:/usr/bin:/bin")));
  }
}

TEST(ToolPathsTest, DependenciesBehindLinksGoByTheirOwnPaths) {
  const std::vector<exec::InputLink> links = {{"toolchain/0", "/a b/$c#"}, {"toolchain/1", "/other"}};
  const std::string file =
      "unit.o: unit.cu toolchain/0/bin/../include/x.h \\\n toolchain/1/y.h "
      "inc/0/toolchain/0/z.h\n";
  EXPECT_THAT(ParseDependencyFile(FollowLinks(file, links)),
              ElementsAre("unit.cu", "/a b/$c#/bin/../include/x.h", "/other/y.h", "inc/0/toolchain/0/z.h"));
  EXPECT_EQ(FollowLinks(file, {}), file);
  EXPECT_EQ(BehindLinks("toolchain/0/../x.h", links), "/a b/$c#/../x.h");
  EXPECT_EQ(BehindLinks("inc/0/toolchain/0/z.h", links), "inc/0/toolchain/0/z.h");
}

TEST(ToolPathsTest, MessagesNameFilesByTheirOwnPaths) {
  const std::vector<exec::InputLink> links = {{"toolchain/0", "/a b/$c#"}, {"toolchain/1", "/other"}};
  EXPECT_EQ(WithUsersNames("toolchain/0/x.h(3): error: see \"toolchain/1/y.h\" and \u2018toolchain/0/z.h\u2019\n"
                           "                 from toolchain/1/y.h:1,\n",
                           links),
            "/a b/$c#/x.h(3): error: see \"/other/y.h\" and \u2018/a b/$c#/z.h\u2019\n"
            "                 from /other/y.h:1,\n");
  EXPECT_EQ(WithUsersNames("kernix-source/k.cu:3: in \u2018kernix-source/l.cu\u2019, my-kernix-source/k.cu\n", links),
            "k.cu:3: in \u2018l.cu\u2019, my-kernix-source/k.cu\n");
  for (const char* other : {"inc/0/toolchain/0/z.h:1: error", "my-toolchain/0/z.h", "toolchain/2/z.h", "toolchain/0"}) {
    EXPECT_EQ(WithUsersNames(other, links), other);
  }
}

}  // namespace

}  // namespace kernix::build
