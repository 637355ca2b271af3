# SPDX-License-Identifier: Apache-2.0
"""The messages on docs/troubleshooting.md are those that a user gets."""

import itertools
import pathlib
import re
import warnings

import jax
import jax.numpy as jnp
import pytest

import kernix

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()
QUOTES = re.findall(r"^```text\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
NAMES = (f"trouble_{number}" for number in itertools.count())

ADD_ONE = """#include "brainevent/common.h"
// @BE add_one
void add_one(const BE::Tensor x, BE::Tensor y) {
    for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = x.data_ptr<const float>()[i] + 1;
}
"""
X = jnp.zeros(4, jnp.float32)


def function(signature, body=""):
    """Return the source of a function f."""
    return f'#include "brainevent/common.h"\n// @BE f\nvoid f({signature}) {{ {body} }}\n'


def cpp(source, **options):
    return kernix.load_cpp_inline(next(NAMES), source, **options)


def cuda(compute_capability):
    source = function("const BE::Tensor x, BE::Tensor y, cudaStream_t stream")
    return kernix.load_cuda_inline(next(NAMES), source, compute_capability=compute_capability)


def taken():
    kernix.load_cpp_inline("trouble_taken", ADD_ONE)
    kernix.load_cpp_inline("trouble_taken", ADD_ONE.replace("+ 1", "+ 2"))


def on_cpu():
    return jax.device_put(X, jax.devices("cpu")[0])


def one_more_dimension():
    f = cpp(function("BE::In<float, 1> x, BE::Out<float, 1> y")).f
    jax.block_until_ready(jax.vmap(lambda x: f(x, vmap_method="broadcast_all"))(jnp.zeros((3, 2), jnp.float32)))


def without_const():
    source = "// @BE f\n__global__ void f(float* x, float* y) { *y = *x; }"
    with warnings.catch_warnings(action="ignore"):
        module = kernix.load_cuda_inline(next(NAMES), source, compute_capability="sm_90")
    module.f(X, grid=1, block=4)


def traced():
    module = cpp(function("const BE::Tensor x, BE::Tensor y, float factor"))
    jax.jit(lambda x, factor: module.f(x, factor=factor))(X, 3)


# By the beginning of each quote: what provokes it.
PROVOKED = {
    'CXX="g++ -O2"': lambda: cpp(ADD_ONE + "// with CXX\n"),
    "nvcc … cannot compile for": lambda: cuda("sm_50"),
    "…: no '// @BE": lambda: cpp(ADD_ONE.replace("// @BE add_one", "")),
    "…: parameter 3": lambda: cpp(function("const BE::Tensor x, BE::Tensor y, struct S* s")),
    "error: '__global__'": lambda: cpp("__global__ void kernel() {}\n" + ADD_ONE),
    "fatal error: mine.h": lambda: cpp('#include "mine.h"\n' + ADD_ONE),
    "link failed: undefined": lambda: cpp("void elsewhere();\n" + function("BE::Tensor y", "elsewhere();")),
    "target '…' is taken": taken,
    "No FFI handler": lambda: jax.ffi.ffi_call("trouble.nobody", jax.ShapeDtypeStruct((), X.dtype))(X),
    "…() needs out=": lambda: cpp(function("const BE::Tensor x, const BE::Tensor z, BE::Tensor y")).f(X, X[1:]),
    "…(): attribute 'factor'": traced,
    "…() is CUDA code": lambda: cuda("sm_90").f(on_cpu()),
    "… is CUDA code": lambda: jax.block_until_ready(jax.jit(cuda("sm_90").f)(on_cpu())),
    "…() cannot be": lambda: jax.grad(lambda x: cpp(ADD_ONE).add_one(x).sum())(X),
    "vmap is only": lambda: jax.vmap(cpp(ADD_ONE).add_one)(jnp.zeros((2, 4), jnp.float32)),
    "…(): argument 0 (x) takes float32,": lambda: cpp(function("BE::In<float> x, BE::Out<float> y")).f(jnp.arange(4)),
    "…: argument 0 (x) takes float32[1]": one_more_dimension,
    "…(): argument 0 (x) takes float64,": lambda: jax.jit(cpp(function("BE::In<double> x, BE::Out<double> y")).f)(X),
    "…() takes 0 arrays": without_const,
}

# What needs a machine without a compiler, a GPU or a daemon: other tests provoke them, and the sources say them.
ELSEWHERE = (
    "no C++ compiler found",
    "no nvcc found",
    "there is no GPU",
    "no kernixd answers",
    "…: users other than",
    'step "…" could not run on a worker',
    "Is the token in …",
    "this node has no compiler for module",
    "a worker has read …",
)


def pattern(quote):
    """Return what a quote stands for: the page writes … for what differs."""
    return ".*".join(re.escape(part) for part in quote.split("…"))


@pytest.mark.parametrize("beginning", PROVOKED)
def test_message_is_what_the_page_quotes(beginning, monkeypatch, forget):
    (quote,) = [quote for quote in QUOTES if quote.startswith(beginning)]
    if beginning.startswith("CXX"):
        monkeypatch.setenv("CXX", "g++ -O2")
    with pytest.raises(Exception, match=re.compile(pattern(quote), re.DOTALL)):
        PROVOKED[beginning]()


def test_every_quote_is_checked():
    assert [quote for quote in QUOTES if not quote.startswith((*PROVOKED, *ELSEWHERE))] == []


def test_other_quotes_stand_in_the_sources():
    root = pathlib.Path(__file__).parents[2]
    paths = [path for folder in ("client", "daemon") for path in sorted((root / folder).rglob("*.cc"))]
    sources = "".join(path.read_text() for path in paths if not path.stem.endswith("_test"))
    literals = re.sub(r'"\s*"', "", sources).replace('\\"', '"')  # the compiler joins them, too
    quotes = [quote for quote in QUOTES if quote.startswith(ELSEWHERE)]
    assert len(quotes) == len(ELSEWHERE)
    parts = [part.strip(' ().:"') for quote in quotes for part in quote.split("…")]
    assert [part for part in parts if part not in literals] == []
