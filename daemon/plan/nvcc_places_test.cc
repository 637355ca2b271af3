// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/nvcc_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "daemon/builder/dependency_file.h"
#include "tests/support/test_util.h"

namespace kernix::build {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

toolchain::Toolchain At(const std::string& cuda, const std::string& host) {
  toolchain::Toolchain toolchain;
  toolchain.host.path = host;
  toolchain.cuda.emplace().root = cuda;
  toolchain.cuda->nvcc = StrCat(cuda, "/bin/nvcc");
  toolchain.cuda->include_directories = {StrCat(cuda, "/include"), "/wheels/cccl"};
  return toolchain;
}

TEST(NvccPlacesTest, HarmlessPathsAreUsedAsTheyAre) {
  const auto places = FindNvccPlaces(At("/usr/local/cuda-13.0", "/usr/bin/g++-12"));
  ASSERT_THAT(places, IsOk());
  EXPECT_EQ(places->nvcc, "/usr/local/cuda-13.0/bin/nvcc");
  EXPECT_EQ(places->host_compiler, "/usr/bin/g++-12");
  EXPECT_THAT(places->include_directories, ElementsAre("/usr/local/cuda-13.0/include", "/wheels/cccl"));
  EXPECT_THAT(places->links, IsEmpty());
}

TEST(NvccPlacesTest, OthersAreReachedThroughLinks) {
  toolchain::Toolchain toolchain = At("/opt/my (cuda) $x", "/home/a b/bin/g++");
  toolchain.cuda->include_directories[1] = "/home/`w`/cccl";
  const auto places = FindNvccPlaces(toolchain);
  ASSERT_THAT(places, IsOk());
  EXPECT_EQ(places->nvcc, "kernix-toolchain/0/bin/nvcc");
  EXPECT_EQ(places->host_compiler, "kernix-toolchain/1/g++");
  EXPECT_THAT(places->include_directories, ElementsAre("kernix-toolchain/0/include", "kernix-toolchain/2"));
  ASSERT_EQ(places->links.size(), 3u);
  EXPECT_EQ(places->links[0].target, "/opt/my (cuda) $x");
  EXPECT_EQ(places->links[1].target, "/home/a b/bin");
  EXPECT_EQ(places->links[2].target, "/home/`w`/cccl");
}

TEST(NvccPlacesTest, AProgramsOwnNameHasToBeHarmless) {
  const auto places = FindNvccPlaces(At("/cuda", "/usr/bin/g++ (mine)"));
  EXPECT_EQ(KindOf(places.status()), v1::ErrorDetail::TOOLCHAIN);
}

TEST(NvccPlacesTest, DependenciesBehindLinksGoByTheirOwnPaths) {
  const std::vector<exec::InputLink> links = {{"kernix-toolchain/0", "/a b/$c#"}, {"kernix-toolchain/1", "/other"}};
  const std::string file =
      "unit.o: unit.cu kernix-toolchain/0/bin/../include/x.h \\\n kernix-toolchain/1/y.h "
      "inc/0/kernix-toolchain/0/z.h\n";
  EXPECT_THAT(ParseDependencyFile(FollowLinks(file, links)),
              ElementsAre("unit.cu", "/a b/$c#/bin/../include/x.h", "/other/y.h", "inc/0/kernix-toolchain/0/z.h"));
  EXPECT_EQ(FollowLinks(file, {}), file);
  EXPECT_EQ(BehindLinks("kernix-toolchain/0/../x.h", links), "/a b/$c#/../x.h");
  EXPECT_EQ(BehindLinks("inc/0/kernix-toolchain/0/z.h", links), "inc/0/kernix-toolchain/0/z.h");
}

}  // namespace
}  // namespace kernix::build
