# SPDX-License-Identifier: Apache-2.0
"""The policy `cached`: a load that never compiles."""

import json
import subprocess

import kernels
import pytest

import kernix
from kernix import _environment


def load(name, value=1, **options):
    """Load a tiny module without JAX."""
    return kernix.load_cpp_inline(name, kernels.constant(value), auto_register=False, **options)


def test_what_is_not_there_is_an_error_that_names_it_and_the_nearest(fresh_name, counters, forget):
    with pytest.raises(kernix.KernelNotCachedError) as nothing:
        load(fresh_name, 601, policy="cached")
    assert f'module "{fresh_name}"' in str(nothing.value)
    assert "no kernel of this name" in str(nothing.value)
    built = load(fresh_name, 601)
    forget()
    assert load(fresh_name, 601, policy="cached").key == built.key
    with pytest.raises(kernix.KernelNotCachedError) as other:
        load(fresh_name, 602, policy="cached")
    assert f"{built.key[:12]}, differs: source {fresh_name} changed" in str(other.value)
    with pytest.raises(kernix.KernelNotCachedError, match="other defines: now also N=2"):
        load(fresh_name, 601, policy="cached", defines={"N": 2})
    assert (counters.builds, counters.misses, counters.failures) == (1, 4, 0)


def test_the_variable_counts_for_loads_without_a_policy(fresh_name, monkeypatch, counters):
    monkeypatch.setenv("KERNIX_POLICY", "cached")
    with pytest.raises(kernix.KernelNotCachedError):
        load(fresh_name, 603)
    load(fresh_name, 603, policy="build")
    assert load(fresh_name, 603).function_names == ["value"]
    assert counters.builds == 1


@pytest.mark.parametrize("value", ["chached", "BUILD", "0"])
def test_an_unknown_policy_is_refused_with_those_there_are(value, fresh_name, monkeypatch):
    with pytest.raises(kernix.KernelRequestError, match=f'policy is "{value}".*build and cached'):
        load(fresh_name, 604, policy=value)
    monkeypatch.setenv("KERNIX_POLICY", value)
    with pytest.raises(kernix.KernelRequestError, match=f'KERNIX_POLICY is "{value}".*build and cached'):
        load(fresh_name, 604)


def test_a_forced_build_contradicts_it(fresh_name, monkeypatch, counters):
    with pytest.raises(kernix.KernelRequestError, match="force_rebuild compiles"):
        load(fresh_name, 605, policy="cached", force_rebuild=True)
    monkeypatch.setenv("KERNIX_POLICY", "cached")
    with pytest.raises(kernix.KernelRequestError, match="KERNIX_POLICY=cached"):
        load(fresh_name, 605, force_rebuild=True)
    load(fresh_name, 605, force_rebuild=True, policy="build")
    assert counters.builds == 1


def test_many_loads(fresh_name, counters):
    def specs(*values):
        return [
            {"name": f"{fresh_name}_{value}", "cpp_sources": kernels.constant(value), "auto_register": False}
            for value in values
        ]

    kernix.load_many(specs(606))
    with pytest.raises(kernix.KernelBatchError) as caught:
        kernix.load_many(specs(606, 607, 608), policy="cached")
    assert [type(error) for error in caught.value.exceptions] == [kernix.KernelNotCachedError] * 2
    assert [one is None for one in caught.value.modules] == [False, True, True]
    assert f"{fresh_name}_607" in str(caught.value)
    assert __file__ in caught.value.exceptions[0].__notes__[0]
    assert counters.builds == 1


def test_in_the_background_the_error_says_where_the_load_began(fresh_name):
    future = load(fresh_name, 609, policy="cached", wait=False)
    with pytest.raises(kernix.KernelNotCachedError) as caught:
        future.result()
    (note,) = caught.value.__notes__
    assert fresh_name in note
    assert f"{__file__}:" in note


def test_without_a_daemon_and_a_store_the_answer_is_the_same(own_place, tmp_path):
    source = tmp_path / "value.cpp"
    source.write_text(kernels.constant(610))
    environment = own_place.environment | {"KERNIXD": _environment.program("kernixd")}

    def compile_it(*options, **variables):
        command = [_environment.program("kernixctl"), "compile", str(source), *options]
        return subprocess.run(command, env=environment | variables, capture_output=True, text=True)

    for options, variables in [(["--policy", "cached"], {}), ([], {"KERNIX_POLICY": "cached"})]:
        done = compile_it(*options, **variables)
        assert done.returncode == 6
        assert 'the cache does not have the kernels of module "value"' in done.stderr
    assert compile_it("--policy", "build", KERNIX_POLICY="cached").returncode == 0
    assert compile_it("--policy", "cached").returncode == 0
    assert compile_it("--policy", "cached", "--force").returncode == 2
    assert compile_it("--policy", "never").returncode == 2
    own_place.kernixctl("shutdown")
    assert compile_it("--policy", "cached").returncode == 0  # by the next daemon of the same store
    assert json.loads(own_place.kernixctl("cache", "stats", "--json").stdout)["builds"] == 1


def test_builds_of_many_files_name_each_that_is_missing(own_place, tmp_path):
    for value in (611, 612):
        (tmp_path / f"value_{value}.cpp").write_text(kernels.constant(value))
    environment = own_place.environment | {"KERNIXD": _environment.program("kernixd")}
    command = [_environment.program("kernixctl"), "build", str(tmp_path), "--policy", "cached"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 6
    assert 'module "value_611"' in done.stderr
    assert 'module "value_612"' in done.stderr
    assert "2 modules: 2 missing, in " in done.stderr
