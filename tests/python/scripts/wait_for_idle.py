# SPDX-License-Identifier: Apache-2.0
"""Wait until the daemon has no job any more; print how many were cancelled."""

import sys
import time

from kernix.loading import connection

client = connection.client()
deadline = time.monotonic() + 60
while client.info(start=False).running_jobs or not client.stats(start=False).cancelled:
    if time.monotonic() > deadline:
        sys.exit(f"not idle after a minute: {client.info(start=False)}, {client.stats(start=False)}")
print("cancelled", client.stats(start=False).cancelled)
