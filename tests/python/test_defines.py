# SPDX-License-Identifier: Apache-2.0
"""The macros of a load's ``defines``, as the compilers see them."""

import kernels
import numpy as np
import pytest

import kernix

DEFINES = {
    "WHOLE": 128,
    "LONG": 2**40,
    "MINUS": -3,
    "OF_NUMPY": np.int64(7),
    "YES_OF_NUMPY": np.bool_(True),
    "REAL_OF_NUMPY": np.float32(0.1),
    "HALF": np.float16(-1.5),
    "NO_DIMENSIONS": np.array(2.5),
    "REAL": -0.1,
    "YES": True,
    "NO": False,
    "BARE": None,
    "TYPE": "unsigned char",
    "TEXT": r'"a, \"b\"\n"',
    "LIST": r"1, 2, sizeof(',') + ('\\'), 4",
    "EMPTY": "",
    "LESS": "9 -WHOLE -g",
    "g": 1,
}

CHECKS = r"""
static_assert(WHOLE == 128 && LONG == 1099511627776 && 1-MINUS == 4 && OF_NUMPY == 7 && REAL == -0.1, "");
static_assert(YES_OF_NUMPY == 1 && REAL_OF_NUMPY == double(0.1f) && 1-HALF == 2.5 && NO_DIMENSIONS == 2.5, "");
static_assert(YES == 1 && NO == 0 && BARE == 1 && sizeof(TYPE) == 1 && sizeof(TEXT) == sizeof("a, .b..") , "");
constexpr int kList[] = {LIST EMPTY};
static_assert(LESS == 9 - 128 - 1, "");
static_assert(sizeof(kList) == 4 * sizeof(int) && kList[2] == 1 + '\\' && TEXT[3] == '"', "");
"""


def test_cpp_sees_the_values(fresh_name):
    assert kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE + CHECKS, defines=DEFINES, auto_register=False)


def test_nvcc_sees_the_values(fresh_name):
    options = {"compute_capability": "sm_90", "auto_register": False}
    assert kernix.load_cuda_inline(fresh_name, kernels.ADD_ONE + CHECKS, defines=DEFINES, **options)


def test_other_values_are_another_build(tmp_path, counters):
    (tmp_path / "a.cpp").write_text(kernels.constant("BY"))
    x = np.zeros(1, np.float32)
    for value, builds in ((1.5, 1), (2.5, 2), (1.5, 2)):
        module = kernix.load_cpp_file(tmp_path / "a.cpp", defines={"BY": value}, auto_register=False)
        assert (module.value(x)[0], counters.builds) == (value, builds)


def test_flags_come_after_defines(fresh_name):
    source = kernels.ADD_ONE + "static_assert(N == 4);\n"
    options = {"auto_register": False, "defines": {"N": 3}}
    assert kernix.load_cpp_inline(fresh_name, source, extra_cflags=["-UN", "-DN=4"], **options)


WRONG = {
    "name with a space": ({"A B": 1}, kernix.KernelRequestError, "'A B' is not the name of a macro"),
    "name with parameters": ({"F(x)": "x"}, kernix.KernelRequestError, r"'F\(x\)' is not the name of a macro"),
    "name that is no str": ({3: 1}, kernix.KernelRequestError, "3 is not the name of a macro"),
    "operator": ({"defined": 1}, kernix.KernelRequestError, "'defined' is not the name of a macro"),
    "two lines": ({"A": "1\n2"}, kernix.KernelRequestError, r"defines\['A'\] has more than one line: '1\\n2'"),
    "not a number": ({"A": float("nan")}, kernix.KernelRequestError, r"defines\['A'\] is nan, which C\+\+ has no"),
    "list": ({"A": [1]}, TypeError, r"defines\['A'\] must be an int, float, bool, str or None, not list"),
    "array": ({"A": np.ones(2)}, TypeError, r"defines\['A'\] must be .*, not ndarray"),
    "no dict": (["A=1"], TypeError, r"defines must be a dict of names and values, not \['A=1'\]"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_defines(case, fresh_name):
    defines, error, message = WRONG[case]
    with pytest.raises(error, match=message):
        kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE, defines=defines)
