// SPDX-License-Identifier: Apache-2.0
//
// Finds where a text takes writable memory from an input. `data_ptr<T>()` of a `const BE::Tensor` returns a `T*`, and
// kernels in use rely on that.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernix::language {

struct WritableInput {
  std::string name;  // of the parameter
  int line = 0;
};

// Finds `float* p = x.data_ptr<float>()`, also with a cast, and `x.data_ptr<float>()[i] = 0`, where `x` is a parameter
// `const BE::Tensor x`. Leaves out what is read only, or passed to another function: `const float* p = ...`,
// `auto p = ...`, `f(x.data_ptr<float>())`. Macros are not expanded, and branches that are surely not compiled are left
// out. Finds the first twenty, and nothing in statements of hundreds of tokens.
std::vector<WritableInput> FindWritableInputs(std::string_view text);

}  // namespace kernix::language
