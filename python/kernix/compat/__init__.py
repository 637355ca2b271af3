# SPDX-License-Identifier: Apache-2.0
"""Routes other packages' loaders to kernixd. ``python -m kernix.compat brainevent script.py`` runs a script so."""
