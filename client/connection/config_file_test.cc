// SPDX-License-Identifier: Apache-2.0
#include "client/connection/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/base/error.h"

namespace kernix {
namespace {

using ::testing::HasSubstr;

class ConfigFileTest : public testing::Test {
 protected:
  ConfigFileTest() {
    directory_ = Env::Posix().CreateTempDirectory(testing::TempDir() + "config_file_test-").value();
    variables_["HOME"] = directory_;
  }
  ~ConfigFileTest() override { EXPECT_TRUE(Env::Posix().RemoveTree(directory_).ok()); }

  void Write(const std::string& path, const std::string& text) {
    const std::string whole = JoinPath(directory_, path);
    ASSERT_TRUE(Env::Posix().CreateDirectories(Dirname(whole)).ok());
    ASSERT_TRUE(Env::Posix().WriteFile(whole, text, 0600).ok());
  }

  absl::StatusOr<ConfigFile> Read() {
    ClientEnvironment environment;
    environment.get_env = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional<std::string>(found->second);
    };
    return ReadConfigFile(environment);
  }

  std::string directory_;
  std::map<std::string, std::string> variables_;
};

TEST_F(ConfigFileTest, NoneAtTheUsualPlacesIsNoError) {
  const absl::StatusOr<ConfigFile> config = Read();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->path, "");
  EXPECT_EQ(config->address, "");
}

TEST_F(ConfigFileTest, IsReadFromHomeAndFromXdgConfigHomeFirst) {
  Write(".config/kernix/client.toml", "address = \"/home.sock\"\n");
  EXPECT_EQ(Read()->address, "/home.sock");
  Write("xdg/kernix/client.toml", "address = \"/xdg.sock\"\n");
  variables_["XDG_CONFIG_HOME"] = JoinPath(directory_, "xdg");
  EXPECT_EQ(Read()->address, "/xdg.sock");
}

TEST_F(ConfigFileTest, OneThatIsNamedMustBeThere) {
  variables_["KERNIX_CONFIG"] = JoinPath(directory_, "mine.toml");
  const absl::Status missing = Read().status();
  EXPECT_EQ(KindOf(missing), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("KERNIX_CONFIG: "));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("mine.toml"));
  Write("mine.toml", "address = \"unix:/mine.sock\"\n");
  EXPECT_EQ(Read()->address, "unix:/mine.sock");
}

TEST_F(ConfigFileTest, MistakesAreNamedWithTheirLine) {
  const std::string path = ".config/kernix/client.toml";
  Write(path, "\nadress = \"/x\"\n");
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("client.toml:2: unknown key \"adress\""));
  Write(path, "address = 3\n");
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("client.toml:1: address must be a string"));
  Write(path, "# fine\n\naddress = \n");
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("client.toml:3: "));
}

}  // namespace
}  // namespace kernix
