// SPDX-License-Identifier: Apache-2.0
//
// The unit of HandlersPart() (plan_parts.h). It is no part of kernixd's own code.
#include "brainevent/internal/handler_runtime.h"
