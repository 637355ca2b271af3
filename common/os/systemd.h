// SPDX-License-Identifier: Apache-2.0
//
// What systemd and the services that it starts say to each other: sd_notify(3), sd_listen_fds(3). These protocols are
// documented and stable, so no library is needed for them.
#pragma once

#include <string_view>

namespace kernix {

// Tells systemd the state of this service: "READY=1". Does nothing if systemd has not started it, or does not listen.
void NotifySystemd(std::string_view state);

inline constexpr int kFirstPassedDescriptor = 3;

// How many descriptors systemd has passed to this process. Started programs inherit neither them nor the variables that
// name them.
int TakePassedDescriptors();

// Whether `fd` is a Unix stream socket that listens.
bool ListensAtUnixSocket(int fd);

}  // namespace kernix
