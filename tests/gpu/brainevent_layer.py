# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: brainevent's own tests compile their kernels through kernixd, in every pytest-xdist worker, too.

On a machine with a GPU, install brainevent, kernix and the packages that brainevent's tests import, then run
``PYTHONPATH=tests/gpu python -m pytest -p brainevent_layer -m "" --pyargs brainevent._csr brainevent._dense ...``;
without ``-p brainevent_layer`` the same tests run on brainevent's own loaders.
"""

from kernix.compat import brainevent

brainevent.install()
