// SPDX-License-Identifier: Apache-2.0
//
// Makes a module of this process from an artifact that the daemon has built.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/flags/languages.h"
#include "kernix/client.h"
#include "kernix/load.h"
#include "kernix/module.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

// The public languages have the numbers of the wire's. An unknown language is C++.
inline v1::Language ToWire(Language language) { return static_cast<v1::Language>(language); }
inline Language FromWire(v1::Language language) { return static_cast<Language>(TraitsOf(language).language); }
inline const LanguageTraits& TraitsOf(Language language) { return TraitsOf(ToWire(language)); }

// The facts about a module that a load knows without the daemon's answer.
struct LoadedAs {
  std::string name;
  Language language = Language::kCpp;
  std::string path;                             // where this load has the artifact
  std::optional<Origin> origin = std::nullopt;  // nullopt: what the daemon's answer says
};

Origin OriginOf(const v1::LoadResult& result);

// Opens the artifact of `result`, and finds and probes the handler of each function. LOAD errors name the function. See
// OpenLibrary(). Of the options, only those of LoadLibrary() and `force_rebuild` count.
absl::StatusOr<std::shared_ptr<Module>> MakeModule(LoadedAs loaded, const v1::LoadResult& result,
                                                   const LoadOptions& options, const ClientOptions& client);

// What MakeModule() has made the module of; null if another function has made it.
const v1::LoadResult* ResultOf(const Module& module);

// Libraries that users are given: the output of `kernixctl compile -o`, and <name>.so of a build directory. Each is the
// artifact with one section more, ".kernix.module", which has what LoadLibrary() must know besides. Its content is an
// internal::LibraryFile. The store's artifacts lack it, because they serve modules of any name.

// The library of a module. That of a module which MakeModule() has not made is its artifact.
absl::StatusOr<std::string> LibraryFileOf(const Module& module);

}  // namespace kernix
