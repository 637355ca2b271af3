// SPDX-License-Identifier: Apache-2.0
//
// From an artifact that the daemon has made to a module of this process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/src/library.h"
#include "kernix/module.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

// What the sections of the artifact at `path` hold that a build with Options.keep adds. kNotFound when the file is
// gone.
absl::StatusOr<std::vector<KeptText>> ReadKept(const std::string& path);

// Finds and probes the handler of each function of `result` in `library`, whose file this load has at `path`. LOAD
// errors name the function.
absl::StatusOr<std::shared_ptr<Module>> MakeModule(std::string name, std::string path, const v1::LoadResult& result,
                                                   std::shared_ptr<const Library> library, std::vector<KeptText> kept);

}  // namespace kernix
