# SPDX-License-Identifier: Apache-2.0
"""Kernels on NVIDIA's libraries: headers and libraries come from the wheels of this environment."""

import pathlib
import shutil
import subprocess

import pytest

import kernix
from kernix import _core, _environment

OPTIONS = {"compute_capability": "sm_90", "auto_register": False}
HEAD = '#include <cuda_runtime.h>\n#include "brainevent/common.h"\n'


def toolkit():
    """Return the folder of the toolkit whose nvcc is used."""
    return pathlib.Path(_core.find_nvcc(_environment.site_packages())).resolve().parents[1]


def wheel_has(pattern):
    """Return whether a wheel of this environment, or the toolkit, has a file."""
    folders = [pathlib.Path(site, "nvidia") for site in _environment.site_packages()]
    found = any(next(folder.glob(f"*/{pattern}"), None) for folder in folders)
    return found or next(toolkit().glob(pattern), None) is not None


def needs(pattern, wheel):
    """Skip a test where a header or library is missing."""
    return pytest.mark.skipif(not wheel_has(pattern), reason=f"needs {pattern} (wheel {wheel})")


@needs("include/curand_kernel.h", "nvidia-curand")
def test_curand_in_device_code():
    source = f"""{HEAD}
#include <curand_kernel.h>
__global__ void draw(float* y) {{
    curandStatePhilox4_32_10_t state;
    curand_init(1, threadIdx.x, 0, &state);
    y[threadIdx.x] = curand_uniform(&state);
}}
// @BE uniform ret stream
void uniform(BE::Tensor y, cudaStream_t stream) {{ draw<<<1, y.numel(), 0, stream>>>(y.data_ptr<float>()); }}
"""
    assert kernix.load_cuda_inline("uses_curand", source, **OPTIONS).function_names == ["uniform"]


@needs("include/cublas_v2.h", "nvidia-cublas")
@pytest.mark.parametrize(
    ("header", "call", "library"),
    [
        ("cublas_v2.h", "int version; cublasGetVersion(nullptr, &version);", "cublas"),
        ("cublasLt.h", "(void)cublasLtGetVersion();", "cublasLt"),
    ],
)
def test_cublas(tmp_path, header, call, library):
    source = f"{HEAD}#include <{header}>\n// @BE f ret stream\nvoid f(BE::Tensor y, cudaStream_t stream) {{ {call} }}\n"
    kernix.load_cuda_inline("uses_cublas", source, extra_ldflags=[f"-l{library}"], build_directory=tmp_path, **OPTIONS)
    assert_names_only(tmp_path / "uses_cublas.so", f"lib{library}.so.")
    # The one that JAX uses too, and no other.
    opened = [line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if "lib" in line]
    assert any(f"/lib{library}.so." in path for path in opened)


def assert_names_only(path, library):
    """Check that a shared library asks for another by its name, and names no folder."""
    dynamic = subprocess.run(["readelf", "-dW", path], check=True, capture_output=True, text=True).stdout
    assert f"[{library}" in dynamic
    assert "RUNPATH" not in dynamic
    assert "RPATH" not in dynamic


@pytest.fixture(name="wheel")
def wheel_fixture(tmp_path):
    """A library for CUDA, laid out as its wheels are, in a folder of packages of its own."""
    package = tmp_path / "site" / "nvidia" / toolkit_package()
    (package / "include").mkdir(parents=True)
    (package / "lib").mkdir()
    (package / "include" / "kxfake.h").write_text('extern "C" int kxfake_value(void);\n')
    (tmp_path / "kxfake.c").write_text("int kxfake_value(void) { return 42; }\n")
    library = package / "lib" / "libkxfake.so.7"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-Wl,-soname,libkxfake.so.7", "-o", library, tmp_path / "kxfake.c"], check=True
    )
    return package


def toolkit_package():
    """Return the name of a folder of wheels for the toolkit at hand."""
    text = next(toolkit().glob("**/include/cuda.h")).read_text(errors="replace")
    major = int(text.split("#define CUDA_VERSION ")[1].split()[0]) // 1000
    return "kxfake" if major == 12 else f"cu{major}"


def test_a_wheel_beside_the_toolkit(wheel, tmp_path, run_python):
    """With nvcc elsewhere: header and library are found by name, at build time and when the module is opened."""
    source = tmp_path / "kernel.cu"
    source.write_text(
        f"{HEAD}#include <kxfake.h>\n#include <stdexcept>\n// @BE f ret stream\n"
        'void f(BE::Tensor y, cudaStream_t stream) { if (kxfake_value() != 42) throw std::runtime_error("no"); }\n'
    )
    output = run_python("load_with_site.py", str(wheel.parents[1]), str(source), str(tmp_path))
    assert output.split() == ["False", str(wheel / "lib" / "libkxfake.so.7")]
    assert_names_only(tmp_path / "kernel.so", "libkxfake.so.7")

    # Another user's environment has it elsewhere; the artifact is the same, and finds that one's.
    other = tmp_path / "other" / "nvidia" / wheel.name
    other.parent.mkdir(parents=True)
    shutil.move(wheel, other)
    output = run_python("load_with_site.py", str(tmp_path / "other"), str(source), str(tmp_path))
    assert output.split() == ["True", str(other / "lib" / "libkxfake.so.7")]
