// SPDX-License-Identifier: Apache-2.0
//
// One Load call.
#pragma once

#include <grpcpp/support/server_callback.h>

#include "common/base/identity.h"
#include "daemon/rpc/backend.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::server {

// Starts a call of `caller`: reads the request, runs it in a thread of its own, and streams events until it ends. The
// result deletes itself when gRPC is done with it. It stays inside `backend.gate` until its last message is sent.
grpc::ServerBidiReactor<v1::LoadClientMessage, v1::LoadEvent>* StartLoadCall(Backend& backend, IdentityPtr caller);

}  // namespace kernix::server
