# SPDX-License-Identifier: Apache-2.0
"""No parameter is decoration."""

import inspect
import io
import os
import struct
import sys
import time

import jax
import kernels
import numpy as np
import pytest

import kernix
from kernix.loading.console import LoadConsole

pytestmark = pytest.mark.usefixtures("on_cpu")

WITH_HEADER = """
#include "brainevent/common.h"
#include "answer.h"
// @BE answer arg ret
void answer(const BE::Tensor x, BE::Tensor y) { *y.data_ptr<float>() = ANSWER; }
"""


def call(target):
    """Call a target of one argument and one result like it."""
    x = np.zeros(1, np.float32)
    return float(jax.ffi.ffi_call(target, jax.ShapeDtypeStruct(x.shape, x.dtype))(x)[0])


def test_build_directory_receives_source_and_library(fresh_name, tmp_path):
    folder = tmp_path / "made" / "here"
    for _ in range(2):  # of a fresh load, and of one that is known
        module = kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE, build_directory=folder)
        assert "void add_one(" in (folder / f"{fresh_name}.kernix.cpp").read_text()
        assert module.path.endswith(".so")
        assert kernix.load_library(folder / f"{fresh_name}.so", auto_register=False).function_names == ["add_one"]
        assert sorted(path.name for path in folder.iterdir()) == [f"{fresh_name}.kernix.cpp", f"{fresh_name}.so"]
        (folder / f"{fresh_name}.so").unlink()


def test_build_directory_leaves_the_source_beside_it_alone(tmp_path):
    path = tmp_path / "mine.cpp"
    path.write_text(kernels.constant(3))
    kernix.load_cpp_file(path, build_directory=tmp_path, auto_register=False)
    assert path.read_text() == kernels.constant(3)
    assert (tmp_path / "mine.kernix.cpp").exists()


def test_build_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(kernix.KernelResourceError, match="build directory"):
        kernix.load_cpp_inline("parameters", kernels.ADD_ONE, build_directory=tmp_path / "file" / "sub")


def test_verbose_streams_commands_and_output(fresh_name, capsys):
    source = '#warning "look here"\n' + kernels.ADD_ONE
    kernix.load_cpp_inline(fresh_name, source, verbose=True)
    said = capsys.readouterr().err
    assert "-O3" in said
    assert f"{fresh_name}:1" in said
    assert "look here" in said
    assert f"kernixd: building {fresh_name}: new source\n" in said
    assert "built in" in said
    kernix.load_cpp_inline(fresh_name, source, verbose=True)
    assert "from the cache" in capsys.readouterr().err


def test_quiet_without_verbose(fresh_name, capsys):
    kernix.load_cpp_inline(fresh_name, "// quiet\n" + kernels.ADD_ONE)
    assert capsys.readouterr() == ("", "")


def test_compile_flags(fresh_name):
    source = kernels.constant("FROM_THE_FLAGS")
    kernix.load_cpp_inline(fresh_name, source, extra_cflags=["-DFROM_THE_FLAGS=41", "-std=c++20"])
    assert call(f"{fresh_name}.value") == 41


def test_flags_from_a_generator(fresh_name):
    source = kernels.ADD_ONE + "\nstatic_assert(N == 3);\n"
    assert kernix.load_cpp_inline(fresh_name, source, extra_cflags=(flag for flag in ["-DN=3"]))


def test_link_flags(fresh_name):
    kernix.load_cpp_inline(
        fresh_name,
        """
        #include "brainevent/common.h"
        extern "C" const char* zlibVersion();
        // @BE version arg ret
        void version(const BE::Tensor x, BE::Tensor y) { *y.data_ptr<float>() = zlibVersion()[0] - '0'; }
        """,
        extra_ldflags=["-l:libz.so.1"],
    )
    assert call(f"{fresh_name}.version") == 1


def test_a_library_that_does_not_open_is_a_load_error(fresh_name):
    source = kernels.constant("nowhere()").replace("// @BE", "float nowhere();\n// @BE")
    with pytest.raises(kernix.KernelLoadError, match=r"does not open.*undefined symbol.*nowhere.*extra_ldflags"):
        kernix.load_cpp_inline(fresh_name, source, extra_ldflags=["-Wl,-z,undefs"])
    assert not any(target.startswith(fresh_name) for target in kernix.list_registered_targets())


def test_include_paths_by_content(fresh_name, tmp_path, counters):
    """A header counts by what is in it: a change is a new build, and going back is a hit."""
    header = tmp_path / "answer.h"
    for answer, builds in ((41, 1), (42, 2), (41, 2)):
        header.write_text(f"#define ANSWER {answer}\n")
        kernix.load_cpp_inline(fresh_name, WITH_HEADER, extra_include_paths=[tmp_path], replace=True)
        assert call(f"{fresh_name}.answer") == answer
        assert counters.builds == builds


def test_known_load_with_headers_asks_nobody(fresh_name, tmp_path, counters):
    (tmp_path / "answer.h").write_text("#define ANSWER 7\n")
    kernix.load_cpp_inline(fresh_name, WITH_HEADER, extra_include_paths=[tmp_path])
    time.sleep(0.2)  # a header that was written a moment before a load is not trusted yet
    first = kernix.load_cpp_inline(fresh_name, WITH_HEADER, extra_include_paths=[tmp_path])
    counters.start()
    assert kernix.load_cpp_inline(fresh_name, WITH_HEADER, extra_include_paths=[tmp_path]) is first
    assert counters.hits == 0


def test_relative_include_path(fresh_name, tmp_path, monkeypatch):
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "answer.h").write_text("#define ANSWER 5\n")
    monkeypatch.chdir(tmp_path)
    kernix.load_cpp_inline(fresh_name, WITH_HEADER, extra_include_paths=["headers"])
    assert call(f"{fresh_name}.answer") == 5


def test_file_finds_headers_beside_it(tmp_path):
    (tmp_path / "answer.h").write_text("#define ANSWER 6\n")
    path = tmp_path / "beside.cpp"
    path.write_text(WITH_HEADER)
    module = kernix.load_cpp_file(path)
    assert module.name == "beside"
    assert call("beside.answer") == 6


def test_file_finds_headers_above_it(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "answer.h").write_text('#include "../number.h"\n#define ANSWER NUMBER\n')
    (tmp_path / "number.h").write_text("#define NUMBER 8\n")
    path = tmp_path / "src" / "above.cpp"
    path.write_text(WITH_HEADER.replace('"answer.h"', '"../common/answer.h"'))
    kernix.load_cpp_file(path)
    assert call("above.answer") == 8


def test_error_in_a_header_above_shows_its_path(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "broken.h").write_text("int nonsense = ;\n")
    path = tmp_path / "src" / "broken_above.cpp"
    path.write_text('#include "../broken.h"\n' + kernels.constant(1))
    with pytest.raises(kernix.KernelCompilationError) as caught:
        kernix.load_cpp_file(path)
    assert f"{tmp_path}/src/../broken.h:1:" in caught.value.compiler_output


def test_absolute_header_counts_by_content(fresh_name, tmp_path):
    """Also within one process, where a known load asks nobody."""
    header = tmp_path / "answer.h"
    source = WITH_HEADER.replace('"answer.h"', f'"{header}"')
    for answer in (1, 22):
        header.write_text(f"#define ANSWER {answer}\n")
        kernix.load_cpp_inline(fresh_name, source, replace=True)
        assert call(f"{fresh_name}.answer") == answer


def test_data_of_the_assembler_counts_by_content(fresh_name, tmp_path):
    """Also where a known load asks nobody, in a process that has not read the file."""
    data = tmp_path / "answer.bin"
    source = f"""
        #include "brainevent/common.h"
        asm(R"(
          .section .rodata
          .balign 4
          answer_data: .incbin "{data}"
          .text
        )");
        extern const float kAnswer[] asm("answer_data") __attribute__((visibility("hidden")));
        // @BE answer arg ret
        void answer(const BE::Tensor x, BE::Tensor y) {{ *y.data_ptr<float>() = kAnswer[0]; }}
        """
    paths = []
    for answer in (1, 22):
        data.write_bytes(struct.pack("f", answer))
        time.sleep(0.15)  # no load is remembered whose files are as young as itself
        for _ in range(3):
            paths.append(kernix.load_cpp_inline(fresh_name, source, auto_register=False).path)
    assert paths == [paths[0]] * 3 + [paths[3]] * 3
    assert paths[0] != paths[3]
    kernix.load_cpp_inline(fresh_name, source, replace=True)
    assert call(f"{fresh_name}.answer") == 22


def test_file_in_another_encoding(tmp_path):
    path = tmp_path / "latin.cpp"
    path.write_bytes("// Gr\u00fc\u00dfe\n".encode("latin-1") + kernels.constant(3).encode())
    kernix.load_cpp_file(str(path), name="latin_named")
    assert call("latin_named.value") == 3


def test_a_kernel_that_uses_xlas_own_headers(fresh_name):
    kernix.load_cpp_inline(
        fresh_name,
        """
        #include "brainevent/common.h"
        #include "xla/ffi/api/c_api.h"
        // @BE version arg ret
        void version(const BE::Tensor x, BE::Tensor y) { *y.data_ptr<float>() = XLA_FFI_API_MAJOR; }
        """,
    )
    assert call(f"{fresh_name}.version") == 0


def test_target_prefix(fresh_name):
    kernix.load_cpp_inline("parameters", kernels.constant(11), target_prefix=fresh_name)
    assert f"{fresh_name}.value" in kernix.list_registered_targets()
    assert "parameters.value" not in kernix.list_registered_targets()
    assert call(f"{fresh_name}.value") == 11


def test_auto_register_off(fresh_name):
    module = kernix.load_cpp_inline(fresh_name, kernels.constant(12), auto_register=False)
    assert module.function_names == ["value"]
    assert not any(target.startswith(fresh_name) for target in kernix.list_registered_targets())


def test_user_code_is_cpp17_by_default(fresh_name):
    source = kernels.constant("__cplusplus / 100")
    kernix.load_cpp_inline(fresh_name, source)
    assert call(f"{fresh_name}.value") == 2017


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"extra_cflags": "-O2"}, "extra_cflags"),
        ({"extra_ldflags": "-lz"}, "extra_ldflags"),
        ({"extra_include_paths": "/usr/include"}, "extra_include_paths"),
        ({"functions": "add_one"}, "functions"),
        ({"functions": {"add_one": "arg ret"}}, "functions"),
    ],
    ids=str,
)
def test_string_instead_of_list_is_refused(options, parameter):
    with pytest.raises(TypeError, match=parameter):
        kernix.load_cpp_inline("parameters", kernels.ADD_ONE, **options)


def test_unknown_parameter_is_refused(tmp_path):
    path = tmp_path / "kernel.cpp"
    path.write_text(kernels.ADD_ONE)
    with pytest.raises(TypeError, match="extra_flags"):
        kernix.load_cpp_file(path, extra_flags=["-O2"])


def test_keywords_are_those_of_the_documentation():
    cuda = list(inspect.signature(kernix.load_cuda_inline).parameters)
    cpp = list(inspect.signature(kernix.load_cpp_inline).parameters)
    assert cuda == [
        "name", "cuda_sources", "functions", "extra_cuda_cflags", "extra_ldflags", "extra_include_paths",
        "build_directory", "verbose", "compute_capability", "force_rebuild", "policy", "bundle", "replace",
        "auto_register", "target_prefix", "ninja_workers", "optimization_level", "use_fast_math", "allow_cuda_graph",
        "separate", "debug", "keep", "defines", "wait",
    ]  # fmt: skip
    assert cpp == [
        "name", "cpp_sources", "functions", "extra_cflags", "extra_ldflags", "extra_include_paths", "build_directory",
        "verbose", "force_rebuild", "policy", "bundle", "replace", "auto_register", "target_prefix", "separate",
        "debug", "defines", "wait",
    ]  # fmt: skip


class Terminal(io.StringIO):
    """A stderr that is a terminal."""

    def isatty(self):
        return True


def test_progress_line_appears_on_a_terminal_after_a_second(monkeypatch):
    terminal = Terminal()
    now = [100.0]
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with LoadConsole("slow") as console:
        console.progress("queued (3 ahead)")
        now[0] += 0.9
        console.poll()
        assert terminal.getvalue() == ""
        now[0] += 0.2
        console.poll()
        assert "kernix: slow: queued (3 ahead), 1 s" in terminal.getvalue()
        console.output("a line of the compiler")
        console.poll()
    assert "\x1b[Ka line of the compiler\n" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")  # nothing of it is left


def test_no_progress_line_without_a_terminal(monkeypatch):
    plain = io.StringIO()
    now = [100.0]
    monkeypatch.setattr(sys, "stderr", plain)
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with LoadConsole("slow") as console:
        now[0] += 5
        console.poll()
    assert plain.getvalue() == ""


class OnlyWrite:
    """An object that somebody put in the place of stderr to catch what is written."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text


def closed():
    """Return a file that is closed."""
    file = io.StringIO()
    file.close()
    return file


def broken_pipe():
    """Return a pipe whose other end is gone."""
    read, write = os.pipe()
    os.close(read)
    return open(write, "w", buffering=1)


@pytest.mark.parametrize(
    "make", [lambda: None, closed, broken_pipe, OnlyWrite], ids=["none", "closed", "pipe", "write"]
)
def test_no_stderr_is_reason_to_fail(make, fresh_name, monkeypatch):
    stream = make()
    monkeypatch.setattr(sys, "stderr", stream)
    module = kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE, verbose=True, auto_register=False)
    monkeypatch.undo()
    assert module.function_names == ["add_one"]
    if isinstance(stream, OnlyWrite):
        assert module.path in stream.text


def test_the_same_call_in_another_folder_is_another_load(fresh_name, tmp_path, monkeypatch):
    source = '#include "here.h"\n#include "brainevent/common.h"\n// @BE value arg ret\n' + (
        "void value(const BE::Tensor x, BE::Tensor y) { y.data_ptr<float>()[0] = HERE; }\n"
    )
    paths = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        (folder / "inc").mkdir(parents=True)
        (folder / "inc" / "here.h").write_text(f"#define HERE {number}\n")
        monkeypatch.chdir(folder)
        module = kernix.load_cpp_inline(fresh_name, source, extra_cflags=["-Iinc"], auto_register=False)
        paths.append(module.path)
    assert paths[0] != paths[1]
