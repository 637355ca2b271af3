// SPDX-License-Identifier: Apache-2.0
//
// The processes below this one, as /proc shows them. This process must be the one that orphans below it come to
// (PR_SET_CHILD_SUBREAPER, or process 1 of its namespace).
#pragma once

#include <cstddef>

namespace kernix::spawn {

// `proc`: a descriptor of /proc.

// Whether there are more, zombies included, than `most`.
bool HasMoreDescendants(int proc, size_t most);

// Kills them all and collects them, those that they start meanwhile, too. `is_first`: this is process 1 of its
// namespace.
void KillDescendants(int proc, bool is_first);

}  // namespace kernix::spawn
