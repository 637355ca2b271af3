# SPDX-License-Identifier: Apache-2.0
"""``python -m kernix tune``."""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from kernix._errors import KernelError
from kernix.calling.call import Spec
from kernix.tuning.autotune import autotune
from kernix.tuning.source import Source
from kernix.tuning.space import Settings, shown_settings

#: What messages call an argument of :func:`kernix.autotune`, and the option of the command for it.
_OPTIONS = {
    "compile_only=True": "--compile-only",
    "compute_capability": "--arch",
    "function=": "--function",
    "out=": "--out",
}

_EPILOG = """\
Values of --space, --attribute and --launch are Python literals, or else text. The arrays have random elements between
0 and 1, of integers between 0 and 99. Nothing checks the results: kernix.autotune() has check=.

exit codes: 0 there is a best variant; 1 there is none; 2 the arguments are wrong; 130 Ctrl-C, which prints what was
found out so far

examples:
  python -m kernix tune total.cpp --space UNROLL=1,2,4,8 --arg float32[100000] --out float32[1]
  python -m kernix tune scale.cu --space VECTOR=1,2,4 --space block=128,256 --launch 'grid=4194304//(block*VECTOR)' \\
      --attribute n=4194304 --arg float32[4194304]
"""


def tune(arguments: Sequence[str]) -> int:
    """Tune the kernel that `arguments` name, and print the table. Return an exit code."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    try:
        space = {name: _values(values) for name, values in _named("--space", chosen.space)}
        launch = {name: _formula(text) for name, text in _named("--launch", chosen.launch)}
        attributes = {name: _literal(value) for name, value in _named("--attribute", chosen.attribute)}
        args, out = (list(map(_spec, texts)) for texts in (chosen.arg, chosen.out))
    except ValueError as error:
        parser.error(str(error))
    options = {"compute_capability": chosen.arch} if chosen.arch else {}
    try:
        on_gpu = Source(chosen.file, None, None, options).is_cuda and not chosen.compile_only
        result = autotune(
            chosen.file,
            space,
            [_random(spec, on_gpu=on_gpu) for spec in args],
            function=chosen.function,
            out=out[0] if len(out) == 1 else out or None,
            launch=launch,
            attributes=attributes,
            compile_only=chosen.compile_only,
            force=chosen.force,
            **options,
        )
    except KeyboardInterrupt as stop:
        for note in getattr(stop, "__notes__", []):
            print(note)
        return 130
    except (KernelError, MemoryError, OSError, TypeError, ValueError) as error:
        print(f"python -m kernix tune: {_in_words_of_command(str(error))}", file=sys.stderr)
        return 1
    print(result)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kernix tune",
        description="Compile the variants of a kernel, time each, and print the table: kernix.autotune() for a file.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    many: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument("file", metavar="FILE", help="the source")
    parser.add_argument("--space", metavar="NAME=VALUE,...", required=True, **many, help="the values of one name")
    parser.add_argument("--arg", metavar="TYPE[SHAPE]", **many, help="an argument: float32[1024,1024]")
    parser.add_argument("--out", metavar="TYPE[SHAPE]", **many, help="a result (default: one like the argument)")
    parser.add_argument("--attribute", metavar="NAME=VALUE", **many, help="what all calls take besides arrays")
    parser.add_argument("--launch", metavar="NAME=FORMULA", **many, help="what a call takes, from names of the space")
    parser.add_argument("--function", metavar="NAME", help="the function (default: the only one)")
    parser.add_argument("--arch", metavar="ARCH", default="", help="GPU architecture (default: this machine's GPU)")
    parser.add_argument("--compile-only", action="store_true", help="only compile")
    parser.add_argument("--force", action="store_true", help="search even if the result of an earlier search is known")
    return parser


def _in_words_of_command(message: str) -> str:
    for argument, option in _OPTIONS.items():
        message = re.sub(rf"(?<!\w){argument}", option, message)
    return message


def _named(option: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return the names and values that `option` was given."""
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"{text!r} is not of the form NAME=VALUE")
        if name in values:
            raise ValueError(f"{option} names {name} twice: give it once, with all that it has")
        values[name] = value
    return list(values.items())


def _values(text: str) -> list[Any]:
    """Return the values in ``"1,2"``, ``"float,double"`` or ``"(8,8),(16,16)"``."""
    try:
        values = ast.literal_eval(f"[{text}]")
    except (ValueError, SyntaxError):
        values = [_literal(value) for value in text.split(",")]
    return list(values)


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _formula(text: str) -> Callable[[Settings], Any]:
    try:
        code = compile(text, "--launch", "eval")
    except SyntaxError:
        raise ValueError(f"--launch: {text!r} is not a Python expression") from None

    def value(settings: Settings) -> Any:
        try:
            return eval(code, {"__builtins__": {}}, dict(settings))
        except Exception as error:
            raise ValueError(f"--launch: {text!r} fails with {shown_settings(settings)}: {error}") from None

    return value


def _spec(text: str) -> Spec:
    """Return what ``"float32[1024,1024]"`` describes."""
    found = re.fullmatch(r"(\w+)\[([\d,\s]*)\]", text)
    dtype = _dtype(found[1]) if found is not None else None
    if found is None or dtype is None:
        raise ValueError(f"{text!r} is not of the form float32[1024,1024]")
    return Spec(tuple(int(size) for size in found[2].split(",") if size.strip()), dtype)


def _dtype(name: str) -> Any:
    import ml_dtypes  # as JAX has it: bfloat16 and shorter types are its own
    import numpy as np

    with suppress(TypeError):
        return np.dtype(getattr(ml_dtypes, name, name))
    return None


def _random(spec: Spec, *, on_gpu: bool) -> Any:
    import numpy as np

    random = np.random.default_rng(0)
    values = random.integers(0, 100, spec.shape) if spec.dtype.kind in "iu" else random.random(spec.shape)
    if not on_gpu:
        return values.astype(spec.dtype)
    import jax

    return jax.device_put(values.astype(spec.dtype))
