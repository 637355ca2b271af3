// SPDX-License-Identifier: Apache-2.0
#include "client/connection/config_file.h"

#include <optional>
#include <sstream>
#include <utility>

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

// Header-only, because Debian builds the shared library of toml++ with exceptions.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace kernix {
namespace {

absl::Status Invalid(const std::string& message) { return MakeError(v1::ErrorDetail::INVALID_REQUEST, message); }

std::string UsualPath(const GetEnv& get_env) {
  if (const std::optional<std::string> config = get_env("XDG_CONFIG_HOME")) {
    return JoinPath(*config, "kernix/client.toml");
  }
  const std::optional<std::string> home = get_env("HOME");
  return home ? JoinPath(*home, ".config/kernix/client.toml") : "";
}

std::string Place(const std::string& path, const toml::source_region& source) {
  return StrCat(path, ":", source.begin.line);
}

absl::StatusOr<ConfigFile> Parse(const std::string& path, const std::string& text) {
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    return Invalid(StrCat(Place(path, parsed.error().source()), ": ", parsed.error().description()));
  }
  ConfigFile config{.path = path};
  for (const auto& [key, value] : parsed.table()) {
    if (key.str() != "address") {
      return Invalid(
          StrCat(Place(path, value.source()), ": unknown key \"", key.str(), "\"; the known key is: address"));
    }
    const std::optional<std::string> address = value.value_exact<std::string>();
    if (!address)
      return Invalid(StrCat(Place(path, value.source()), ": address must be a string such as \"unix:/path\""));
    config.address = *address;
  }
  return config;
}

}  // namespace

absl::StatusOr<ConfigFile> ReadConfigFile(const ClientEnvironment& environment) {
  const std::optional<std::string> asked = environment.get_env("KERNIX_CONFIG");
  const std::string path = asked ? *asked : UsualPath(environment.get_env);
  if (path.empty()) return ConfigFile{};
  const absl::StatusOr<std::string> text = environment.env->ReadFile(path);
  if (text.ok()) return Parse(path, *text);
  if (!asked && absl::IsNotFound(text.status())) return ConfigFile{};
  return Invalid(StrCat(asked ? "KERNIX_CONFIG: " : "", text.status().message()));
}

}  // namespace kernix
