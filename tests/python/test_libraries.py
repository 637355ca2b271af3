# SPDX-License-Identifier: Apache-2.0
"""Kernels on NVIDIA's libraries: headers and libraries come from the wheels of this environment."""

import os
import pathlib
import shutil
import subprocess
import sys

import kernels
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


# --- Device code that launches --------------------------------------------------------------------------------------


def device_runtime():
    """Return the archive of the device runtime."""
    return str(next(toolkit().glob("**/libcudadevrt.a")))


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(list, id="none"),
        pytest.param(lambda: ["-lcudadevrt"], id="by name"),
        pytest.param(lambda: [device_runtime()], id="by path"),
        pytest.param(lambda: ["-L" + str(pathlib.Path(device_runtime()).parent), "-lcudadevrt"], id="by folder"),
        pytest.param(
            lambda: ["-Wl,--whole-archive", device_runtime(), "-Wl,--no-whole-archive"], id="the whole archive"
        ),
    ],
)
def test_device_code_that_launches_is_linked_with_the_device_runtime(flags):
    options = {**OPTIONS, "extra_cuda_cflags": ["-rdc=true"], "extra_ldflags": flags()}
    for forced in (False, True):
        module = kernix.load_cuda_inline("launches", kernels.LAUNCHES, force_rebuild=forced, **options)
        assert module.function_names == ["run"]


def test_units_that_launch_each_others_kernels(tmp_path):
    child, parent = kernels.LAUNCHES.split("__global__ void parent")
    (tmp_path / "child.cu").write_text(child)
    declared = child.split("{ y[")[0].strip() + ";\n"
    (tmp_path / "parent.cu").write_text(f"{declared}__global__ void parent{parent}")
    module = kernix.load_cuda_dir(tmp_path, extra_cuda_cflags=["-dc"], separate=True, **OPTIONS)
    assert module.function_names == ["run"]


# --- The driver -----------------------------------------------------------------------------------------------------

# With as many arguments as go through registers, and more.
DRIVER = """
#include <stdarg.h>
extern "C" int cuInit(unsigned flags) { return 100 + flags; }
extern "C" int cuTexRefSetMipmapLevelClamp(void* texture, float low, float high) { return low * 10 + high; }
extern "C" int cuLaunchKernel(void*, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned g,
                              void* stream, void** arguments, void** extra) {
    return a + 10 * b + 100 * c + 1000 * d + 10000 * e + 100000 * f + (extra == arguments);
}
"""
CALLS_DRIVER = f"""{HEAD}#include <cuda.h>
extern "C" int init() {{ return cuInit(7); }}
extern "C" int again() {{ return cuInit(1) + cuInit(2); }}
extern "C" int clamp() {{ return cuTexRefSetMipmapLevelClamp(nullptr, 4, 2); }}
extern "C" int launch() {{ return cuLaunchKernel(nullptr, 1, 2, 3, 4, 5, 6, 7, nullptr, nullptr, nullptr); }}
extern "C" int newer() {{ return cuMemFree(0); }}
// @BE f
void f(BE::Out<float> y) {{}}
"""
ASK = "import ctypes, sys; print(*(getattr(ctypes.CDLL(sys.argv[1]), name)() for name in sys.argv[2:]))"


def ask(module, *functions, **environment):
    """Call functions of a module's library in a process of its own."""
    command = [sys.executable, "-c", ASK, module.path, *functions]
    return subprocess.run(command, env=os.environ | environment, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("flags", [[], ["-lcuda"], ["-L/usr/local/cuda/lib64/stubs", "-lcuda"]], ids=str)
def test_the_driver_is_found_when_one_of_its_functions_is_called(flags, tmp_path):
    module = kernix.load_cuda_inline("calls_driver", CALLS_DRIVER, extra_ldflags=flags, **OPTIONS)
    (tmp_path / "driver.cc").write_text(DRIVER)
    library = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", "libcuda.so.1", "driver.cc"]
    subprocess.run(["g++", *library], cwd=tmp_path, check=True)
    answers = ask(module, "init", "again", "clamp", "launch", "newer", LD_LIBRARY_PATH=str(tmp_path))
    assert answers.split() == ["107", "203", "42", "654322", "500"]  # 500: this driver has no such function
    dynamic = subprocess.run(["readelf", "-dW", module.path], check=True, capture_output=True, text=True).stdout
    assert "libcuda.so" not in dynamic


def test_an_archive_that_calls_the_driver(tmp_path):
    (tmp_path / "part.c").write_text("int cuInit(unsigned); int part(void) { return cuInit(0); }\n")
    subprocess.run(["gcc", "-fPIC", "-c", "part.c"], cwd=tmp_path, check=True)
    subprocess.run(["ar", "rcs", "libpart.a", "part.o"], cwd=tmp_path, check=True)
    source = f'{HEAD}extern "C" int part();\n// @BE f\nvoid f(BE::Out<int> y) {{ part(); }}\n'
    module = kernix.load_cuda_inline("calls_part", source, extra_ldflags=[f"-L{tmp_path}", "-lpart"], **OPTIONS)
    assert module.function_names == ["f"]
