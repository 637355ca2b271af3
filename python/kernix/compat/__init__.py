# SPDX-License-Identifier: Apache-2.0
"""Other packages' loaders, routed to kernixd. ``python -m kernix.compat brainevent script.py`` runs a script so."""
