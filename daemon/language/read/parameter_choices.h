// SPDX-License-Identifier: Apache-2.0
//
// Parameters with macros that conditionals decide: what they are whichever way that goes.
#pragma once

#include <optional>

#include "absl/types/span.h"
#include "common/cxx/lexer.h"
#include "daemon/language/read/signature.h"

namespace kernix::language {

// Whether each parameter of `list` can be read by itself: its conditionals are those of macros, and hold no comma that
// would end a parameter, nor half a pair of brackets.
bool HasChoicesWithinParameters(absl::Span<const Token> list);

// As ReadParameter(), of tokens with such conditionals; nullopt when it depends on them. Of a number or a stream a
// choice that cannot be read counts for nothing: where it is compiled, the compiler converts or refuses. Of a tensor it
// would decide whether that is an input, so there all choices must read alike.
std::optional<SignatureParameter> ReadChoices(absl::Span<const Token> tokens, const TypeNames& types);

}  // namespace kernix::language
