# SPDX-License-Identifier: Apache-2.0
"""Loading: requests, the connection to the daemon, the messages of a load, modules, and the cache."""
