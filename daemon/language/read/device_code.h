// SPDX-License-Identifier: Apache-2.0
//
// What nvcc's device compiler (cicc) can make use of in a unit.
//
// cicc reads all of the unit, the host's code too, and compiles what is for devices. Its result stays the same
// - wherever tokens stand: white space, and the numbers in line markers, do not count;
// - whatever the body of a plain host function does, as long as it names the same things of the device. cicc makes no
//   device code of such a function, whatever refers to it: calls from code for both sides, pointers, templates. A body
//   can only add an instance of a template, or a use of something that it names, to the device's code.
//
// A plain host function has a body at namespace scope and has nothing to do with templates. Its body counts in full
// - if another declaration may be one of the same function, for devices: something that is declared for devices has its
//   name. A member, a parameter or a local variable that has it is another thing;
// - if templates of the unit could make it add code: if a kernel, or a variable of a device, is a template. cicc drops
//   all else that nothing on the device uses, instances of device functions too.
//
// Of other bodies, unused variables count as well, since cicc warns of them (#177-D, #550-D), and cudafe++ does not.
//
// Known gaps, of such a body:
// - An error that only the device's preprocessing sees is not found again: under `#ifdef __CUDA_ARCH__`, or since a
//   constant or a template has another value or body there. It was never in the host's code.
// - A warning that only cicc gives is not shown again if it is of something else: a label, a format of printf (#224-D),
//   an element of an array, a variable whose name the body uses for another one or that it casts to void. Some
//   declarations are not known as such: `int* x;`, `int (*x)(int)`, `decltype(n) x`, the second of `int *x = p, *y =
//   p`.
// - Instances of device function templates may stand in another order: in that in which an earlier body names them.
#pragma once

#include <optional>
#include <string_view>

#include "common/base/digest.h"

namespace kernix::language {

// Represents what cicc can make use of in `preprocessed`, the output of `g++ -E` for the device. Units of the same
// digest give the same functions for devices, as long as no debug information or line table is made. nullopt: lines
// count, since the unit asks for them (`__builtin_LINE()`). Linear in the size of the text.
std::optional<Digest> DigestOfDeviceCode(std::string_view preprocessed);

}  // namespace kernix::language
