# SPDX-License-Identifier: Apache-2.0
"""Wait until the daemon has no job any more; print how many were cancelled."""

from kernix.loading import connection

client = connection.client()
while client.info(start=False).running_jobs or not client.stats(start=False).cancelled:
    pass
print("cancelled", client.stats(start=False).cancelled)
