# SPDX-License-Identifier: Apache-2.0
"""The setting ``disabled_shortcuts``: each shortcut that it names is not taken, all others are."""

import pytest

# The counter of loads that took it.
TAKEN = {
    "phases": 'kernix_nvcc_compiles_total{how="phases"}',
    "stand_ins": 'kernix_cuda_runtime_headers_total{how="parts"}',
    "preambles": 'kernix_preambles_total{how="kept"}',
    "compiled_preambles": 'kernix_compiled_preambles_total{how="compiled"}',
    "step_results": 'kernix_reusable_steps_total{how="reused"}',
    "link_stubs": 'kernix_plain_links_total{how="stubs"}',
}
# Those that are nothing without another one.
NEEDED_BY = {"phases": {"stand_ins", "preambles", "compiled_preambles", "step_results"}}


@pytest.fixture(name="counts")
def counts_fixture(own_place, run_python):
    """A function that loads kernels without some shortcuts, and returns how many loads took each of them."""

    def counts(disabled):
        text = run_python("edits_until_learned.py", where=own_place, KERNIX_DISABLED_SHORTCUTS=disabled)
        lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("kernix_"))
        return {name: int(lines[counter]) for name, counter in TAKEN.items()}

    return counts


@pytest.mark.parametrize("disabled", ["phases,link_stubs", "stand_ins,step_results", "preambles", "compiled_preambles"])
def test_what_is_disabled_is_not_taken(counts, disabled):
    taken = {name for name, count in counts(disabled).items() if count > 0}
    without = set(disabled.split(","))
    for name in list(without):
        without |= NEEDED_BY.get(name, set())
    assert taken == set(TAKEN) - without
