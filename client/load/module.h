// SPDX-License-Identifier: Apache-2.0
//
// From an artifact that the daemon has made to a module of this process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/runtime/library.h"
#include "kernix/module.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

// What the sections of the artifact at `path` hold that a build with Options.keep adds. kNotFound when the file is
// gone.
absl::StatusOr<std::vector<KeptText>> ReadKept(const std::string& path);

// What a load knows of a module besides the daemon's answer.
struct LoadedAs {
  std::string name;
  Language language = Language::kCpp;
  std::string path;  // where this load has the artifact
  std::vector<KeptText> kept;
};

// Finds and probes the handler of each function of `result` in `library`. LOAD errors name the function.
absl::StatusOr<std::shared_ptr<Module>> MakeModule(LoadedAs loaded, const v1::LoadResult& result,
                                                   std::shared_ptr<const Library> library);

}  // namespace kernix
