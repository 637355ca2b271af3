// SPDX-License-Identifier: Apache-2.0
//
// What goes over the wire besides the request: headers up, artifacts down.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/connection/daemon_client.h"
#include "common/base/error.h"
#include "tests/integration/client_world.h"
#include "tests/support/need_right.h"

namespace kernix {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ClientTransferTest : public ClientWorld {};

TEST_F(ClientTransferTest, HeadersOfAnySizeAreUploaded) {
  ASSERT_TRUE(Env::Posix().CreateDirectories(Path("include")).ok());
  ASSERT_TRUE(Env::Posix().WriteFile(Path("include/empty.h"), "", 0600).ok());
  // More than gRPC takes in one message.
  const std::string large = "#define VALUE 3\n//" + std::string(5 << 20, 'x') + "\n";
  ASSERT_TRUE(Env::Posix().WriteFile(Path("include/large.h"), large, 0600).ok());
  LoadOptions options;
  options.include_paths = {Path("include")};
  const auto module =
      LoadCppInline(*MakeClient(), "headers",
                    {"#include \"empty.h\"\n#include \"large.h\"\n#include \"brainevent/common.h\"\n"
                     "// @BE f ret\nvoid f(BE::Tensor out) { *static_cast<int*>(out.data_ptr()) = VALUE; }\n"},
                    options);
  EXPECT_TRUE(module.ok()) << module.status();
}

TEST_F(ClientTransferTest, AnArtifactThatCannotBeOpenedIsFetchedOnce) {
  ClientOptions options;
  options.start_timeout = std::chrono::minutes(2);
  const auto client = DaemonClient::Create(ClientEnvironment{}, options).value();
  const auto module = LoadKernel(*client, 31);
  ASSERT_TRUE(module.ok()) << module.status();
  const std::string original = Env::Posix().ReadFile((*module)->path()).value();

  v1::LoadResult elsewhere;
  elsewhere.set_artifact_digest(Digest::FromHex((*module)->artifact_digest())->Raw());
  elsewhere.set_artifact_size(original.size());
  elsewhere.set_artifact_path("/nonexistent/artifact");
  const absl::StatusOr<std::string> fetched = client->LocalArtifact(elsewhere);
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_THAT(*fetched, StartsWith(Path("store/fetched")));
  EXPECT_EQ(Env::Posix().ReadFile(*fetched).value(), original);

  // A second time without the daemon.
  ASSERT_TRUE(client->Shutdown({}).ok());
  EXPECT_EQ(client->LocalArtifact(elsewhere).value(), *fetched);
  EXPECT_FALSE(client->Info(/*start=*/false).ok());
}

TEST_F(ClientTransferTest, AnArtifactThatSomebodyElseCouldExchangeIsFetchedInstead) {
  const auto client = DaemonClient::Create(ClientEnvironment{}, {}).value();
  const auto module = LoadKernel(*client, 32);
  ASSERT_TRUE(module.ok()) << module.status();
  const std::string original = Env::Posix().ReadFile((*module)->path()).value();

  const std::string exchangeable = Path("open/store/artifact.so");
  ASSERT_TRUE(Env::Posix().CreateDirectories(Path("open/store"), 0755).ok());
  ASSERT_TRUE(Env::Posix().WriteFile(exchangeable, original, 0444).ok());
  ASSERT_EQ(chmod(Path("open").c_str(), 0777), 0);
  v1::LoadResult elsewhere;
  elsewhere.set_artifact_digest(Digest::FromHex((*module)->artifact_digest())->Raw());
  elsewhere.set_artifact_size(original.size());
  elsewhere.set_artifact_path(exchangeable);
  const absl::StatusOr<std::string> fetched = client->LocalArtifact(elsewhere);
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_THAT(*fetched, StartsWith(Path("store/fetched")));

  ASSERT_EQ(chmod(Path("open").c_str(), 0755), 0);
  EXPECT_EQ(client->LocalArtifact(elsewhere).value(), exchangeable) << "now nobody can";
}

TEST_F(ClientTransferTest, NothingIsKeptWhereOthersMayWrite) {
  const auto client = DaemonClient::Create(ClientEnvironment{}, {}).value();
  v1::LoadResult elsewhere;
  elsewhere.set_artifact_digest(DigestOf("any").Raw());
  const std::string folder = Path("store/fetched");
  ASSERT_TRUE(Env::Posix().CreateDirectories(folder, 0700).ok());
  ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
  const absl::Status open_to_all = client->LocalArtifact(elsewhere).status();
  EXPECT_EQ(KindOf(open_to_all), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(std::string(open_to_all.message()), HasSubstr("chmod 700 " + folder));

  KERNIX_NEED_ROOT("giving a folder away takes root");
  ASSERT_EQ(chown(folder.c_str(), 4711, 4711), 0);
  const absl::Status of_a_stranger = client->LocalArtifact(elsewhere).status();
  EXPECT_EQ(KindOf(of_a_stranger), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(std::string(of_a_stranger.message()), HasSubstr("belongs to uid 4711"));
}

TEST_F(ClientTransferTest, AnArtifactThatIsGoneIsNotFound) {
  const auto client = DaemonClient::Create(ClientEnvironment{}, {}).value();
  v1::LoadResult gone;
  gone.set_artifact_digest(DigestOf("nobody has this").Raw());
  gone.set_artifact_size(10);
  EXPECT_TRUE(absl::IsNotFound(client->LocalArtifact(gone).status()));
}

}  // namespace
}  // namespace kernix
