// SPDX-License-Identifier: Apache-2.0
//
// Everything that a kernel needs: BE::Tensor, checks, dispatch over element types.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include "brainevent/check.h"
#include "brainevent/dispatch.h"
#include "brainevent/tensor.h"
