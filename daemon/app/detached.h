// SPDX-License-Identifier: Apache-2.0
//
// Leaves the program whose load has started kernixd.
#pragma once

namespace kernix::server {

// Goes on in a child process, whose parent ends, so that the program need not collect it. Must be called before the
// first thread starts. `report`: a socket of the program's. False, and nothing, if it is none.
bool Detach(int report);

// Tells the program, if it still listens, how the detached process ends.
void ReportEnd(int report, int exit_code);

}  // namespace kernix::server
