// SPDX-License-Identifier: Apache-2.0
//
// An arg_spec's tokens beside a signature: what the signature adds to a token, and whether both can be of one
// parameter.
#pragma once

#include <cstddef>
#include <string_view>

#include "daemon/language/read/signature.h"
#include "daemon/language/spec/function_spec.h"

namespace kernix::language {

// The number of parameters that a call passes. Unreadable parameters at the end of the list keep their default
// arguments.
size_t CountWithoutLeftOut(const Signature& signature);

// Marks the trailing attributes of `spec` that have a default argument: calls may leave them out.
void NoteDefaults(const Signature& signature, FunctionSpec& spec);

// Why no token can be inferred from a parameter; empty if TokenOf() can.
std::string_view ProblemOfInference(const SignatureParameter& declared);
Parameter TokenOf(const SignatureParameter& declared);

// The token of an attribute.
Parameter AttributeOf(const SignatureParameter& declared);

// Adds what the signature says of the arrays that a token takes, or of the type that an attribute is converted to.
void Complete(const SignatureParameter& declared, Parameter& token);

// Whether a parameter of that class may receive the token's value.
bool Fits(const Parameter& token, const SignatureParameter& declared);

// Why no value of the token can reach a parameter of a host function whose type kernix has not read, with what to take
// instead. Empty if the compiler may know a way.
std::string ProblemOfToken(const Parameter& token, const SignatureParameter& declared);

}  // namespace kernix::language
