# SPDX-License-Identifier: Apache-2.0
"""Packages that ship their kernels: the example's wheel, the hooks that build it, and ``python -m kernix bundle``."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import kernels
import pytest

from kernix import _environment
from kernix.packaging import project as packaging
from kernix.packaging.project import platform_tag, read_settings

EXAMPLE = pathlib.Path(__file__).parents[2] / "python/examples/package"
TAG = re.compile(r"py3-none-manylinux_2_\d+_x86_64")


@pytest.fixture(name="project")
def project_fixture(tmp_path):
    """A copy of the example."""
    ignored = shutil.ignore_patterns("__pycache__", "*.kernix")
    return pathlib.Path(shutil.copytree(EXAMPLE, tmp_path / "project", ignore=ignored))


def run(*command, check=True, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def pip(*arguments, **options):
    return run(sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments, **options)


def build_wheel(project, place, check=True):
    """Build the wheel with the project's backend, and return its path."""
    offline = ["--no-deps", "--no-index", "--no-build-isolation"]
    done = pip("wheel", *offline, "--wheel-dir", project / "dist", project, env=place.environment, check=check)
    return next((project / "dist").glob("*.whl")) if check else done


def install(wheel, folder):
    pip("install", "--no-deps", "--no-index", "--target", folder, wheel)
    return folder


def bundle_in(wheel):
    """Return the files of the bundle in a wheel."""
    prefix = "kernix_example/kernels.kernix/"
    with zipfile.ZipFile(wheel) as archive:
        return {name.removeprefix(prefix): archive.read(name) for name in archive.namelist() if name.startswith(prefix)}


def tags_of(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/WHEEL"))
        return re.findall(r"^Tag: (.*)$", archive.read(name).decode(), re.MULTILINE)


# --- Where nothing can compile

COMPILER = re.compile(r"(.*-)?(cc|c\+\+|gcc|g\+\+|cpp|clang|clang\+\+|clang-cpp|cc1|cc1plus|nvcc|cicc|ptxas)(-\d+)?")

MASK = 'while [ "$1" != -- ]; do mount --bind /dev/null "$1" || exit 99; shift; done; shift; exec "$@"'


def programs_that_compile():
    """Return the compilers of this machine and kernix's programs, without links."""
    folders = [pathlib.Path(folder) for folder in os.get_exec_path() if folder]
    folders += pathlib.Path("/usr/lib/gcc").glob("*/*")
    folders += [pathlib.Path(place) / "nvidia" for place in _environment.site_packages()]
    folders.append(pathlib.Path("/usr/local/cuda"))
    found = [path for folder in folders for path in folder.rglob("*") if COMPILER.fullmatch(path.name)]
    found += [pathlib.Path(_environment.program(name)) for name in ("kernixd", "kernixctl")]
    found.append(pathlib.Path(_environment.program("kernixd")).with_name("kernix-spawn"))
    return sorted({str(path.resolve()) for path in found if path.is_file() and os.access(path, os.X_OK)})


@pytest.fixture(name="masked", scope="session")
def masked_fixture():
    """Return the words before a command that runs it where the machine's compilers and kernixd are not."""
    programs = programs_that_compile()
    words = ["unshare", "--mount", "sh", "-c", MASK, "sh", *programs, "--"]
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare(1)")
    tried = subprocess.run([*words, "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"this user cannot mask programs by mounts: {tried.stderr.strip()}")
    return words


def call_where_nothing_compiles(masked, installed, place, **variables):
    """Call the installed package's kernel with an empty cache, and return what ``shipped.py`` prints."""
    script = pathlib.Path(__file__).parent / "scripts/shipped.py"
    environment = place.environment | variables
    environment["PYTHONPATH"] = f"{installed}:{environment['PYTHONPATH']}"
    programs = masked[masked.index("sh", 4) + 1 : -1]
    return run(*masked, sys.executable, script, *programs, env=environment, check=False)


def test_the_example_runs_without_a_compiler_and_without_kernixd(project, place, own_place, masked, tmp_path):
    wheel = build_wheel(project, place)
    assert TAG.search(wheel.name)
    assert tags_of(wheel) == TAG.findall(wheel.name)
    installed = install(wheel, tmp_path / "installed")
    done = call_where_nothing_compiles(masked, installed, own_place)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["ewma"] == [[1.0, 2.0, 3.5]]
    assert said["error"].startswith("KernelDaemonError: ")
    assert said["can run"] == []


def test_an_edited_source_is_not_what_the_wheel_has(project, place, own_place, masked, tmp_path):
    installed = install(build_wheel(project, place), tmp_path / "installed")
    with (installed / "kernix_example/ewma.cpp").open("a") as source:
        source.write("// an edit\n")
    done = call_where_nothing_compiles(masked, installed, own_place, KERNIX_POLICY="cached")
    assert done.returncode != 0
    assert 'has "ewma_cpu" from other inputs, which differ in source ewma.cpp' in done.stderr


# --- The hooks

WITH_SETUPTOOLS = """
[build-system]
requires = ["setuptools", "kernix"]
build-backend = "setuptools.build_meta"

[tool.setuptools.package-data]
kernix_example = ["*.cpp", "*.cu"]
"""


def use_setuptools(project):
    """Rewrite the example's pyproject.toml for the other backend."""
    path = project / "pyproject.toml"
    own = re.search(r"\[project\].*?(?=\[tool)", path.read_text(), re.DOTALL).group()
    kernix = re.search(r"\[tool\.kernix\].*", path.read_text(), re.DOTALL).group()
    path.write_text(WITH_SETUPTOOLS + own + kernix)


def test_both_backends_put_the_same_bundle_into_the_same_wheel(project, place, tmp_path):
    earlier = project / "src/kernix_example/kernels.kernix"  # as `python -m kernix bundle` makes one
    earlier.mkdir()
    (earlier / "kernix-bundle").write_text("another\n")
    (earlier / "old.so").touch()
    by_hatchling = build_wheel(project, place)
    other = pathlib.Path(shutil.copytree(project, tmp_path / "other", ignore=shutil.ignore_patterns("dist")))
    use_setuptools(other)
    settings = (other / "pyproject.toml").read_text()
    (other / "pyproject.toml").write_text(settings.replace("kernels.kernix", "./kernels.kernix/"))
    by_setuptools = build_wheel(other, place)
    assert by_setuptools.name == by_hatchling.name
    assert tags_of(by_setuptools) == tags_of(by_hatchling)
    files = bundle_in(by_hatchling)
    assert sorted(pathlib.Path(name).suffix for name in files) == ["", ".kernel", ".kernel", ".so", ".so"]
    assert bundle_in(by_setuptools) == files


def test_an_editable_install_compiles_as_usual(project, place, tmp_path):
    with (project / "pyproject.toml").open("a") as file:
        file.write('[tool.hatch.build]\ndev-mode-dirs = ["src"]\n')  # without it, hatchling needs another package
    for backend in ("hatchling.build", "setuptools.build_meta"):
        if backend.startswith("setuptools"):
            use_setuptools(project)
        folder = tmp_path / backend
        folder.mkdir()
        script = f"import {backend} as backend, sys; backend.build_editable(sys.argv[1])"
        run(sys.executable, "-c", script, folder, cwd=project, env=place.environment)
        (wheel,) = folder.glob("*.whl")
        assert bundle_in(wheel) == {}


def test_a_kernel_that_does_not_compile_ends_the_build(project, place):
    (project / "src/kernix_example/ewma.cpp").write_text("// @BE ewma\nvoid ewma(")
    done = build_wheel(project, place, check=False)
    assert done.returncode != 0
    assert "KernelCompilationError" in done.stdout + done.stderr
    assert "[tool.kernix]: the program whose kernels are recorded has failed" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ('load = ["p"]', "lacks 'bundle'"),
        ('bundle = "p/k.kernix"', "lacks 'load'"),
        ('load = "p"\nbundle = "p/k.kernix"', "load .* must be a list of strings"),
        ('load = ["p"]\nbundle = "../k.kernix"', "is a path inside the wheel, not ../k.kernix"),
        ('load = ["p"]\nbundle = "p/.."', "is a path inside the wheel, not p/.."),
        ('load = ["p"]\nbundle = "p/k.kernix"\narchs = []', "has 'archs'; it may have load, bundle, architectures"),
    ],
)
def test_a_mistake_in_the_settings_is_named(tmp_path, table, error):
    (tmp_path / "pyproject.toml").write_text(f"[tool.kernix]\n{table}\n")
    with pytest.raises(ValueError, match=error):
        read_settings(str(tmp_path))


def test_other_projects_have_no_settings(tmp_path):
    assert read_settings(str(tmp_path)) is None
    (tmp_path / "pyproject.toml").write_text("[tool.other]\n")
    assert read_settings(str(tmp_path)) is None


@pytest.mark.parametrize(
    ("needs", "tag"),
    [
        ([], "manylinux_2_17_x86_64"),
        (["GLIBC_2.2.5", "GLIBCXX_3.4", "CXXABI_1.3", "GCC_3.0"], "manylinux_2_17_x86_64"),
        (["GLIBC_2.34", "GLIBCXX_3.4.19"], "manylinux_2_34_x86_64"),
        (["GLIBC_2.17", "GLIBCXX_3.4.26"], "manylinux_2_31_x86_64"),
        (["GLIBC_2.17", "CXXABI_1.3.15"], "manylinux_2_39_x86_64"),
        (["GLIBC_ABI_DT_RELR"], "manylinux_2_36_x86_64"),
    ],
)
def test_the_tag_is_of_the_oldest_system_with_all_versions(needs, tag):
    assert platform_tag(needs) == tag


@pytest.mark.parametrize("need", ["GLIBCXX_3.4.99", "GLIBC_PRIVATE", "libcublas.so.13"])
def test_a_version_without_a_tag_is_named(need):
    with pytest.raises(ValueError, match=f"no manylinux tag promises {need}"):
        platform_tag([need])


@pytest.mark.parametrize("others", [[], ["libcurl.so.4", "libgomp.so.1", "libmine.so"]])
def test_a_library_that_no_tag_promises_is_named(others, tmp_path, monkeypatch, capsys):
    (tmp_path / "pyproject.toml").write_text('[tool.kernix]\nload = ["p"]\nbundle = "p/k.kernix"\n')
    promised = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "ld-linux-x86-64.so.2"}
    with_nvidia = promised | {"libcuda.so.1", "libcublasLt.so.13", "libnccl.so.2", "libnppc.so.13"}
    monkeypatch.setattr(packaging, "make_bundle", lambda *_, **__: None)
    monkeypatch.setattr(packaging, "needs_of", lambda _: ({"GCC_12.0.0"}, with_nvidia | {*others}))
    tag = packaging.build_bundle(str(tmp_path), read_settings(str(tmp_path)), "bundle")
    assert tag.startswith("py3-none-manylinux_2_35_")
    said = capsys.readouterr().err
    assert (f"the kernels need {', '.join(others)}, which other machines may lack" in said) == bool(others)


# --- python -m kernix bundle

ONE_KERNEL = f"""
import kernix

def warm_up():
    kernix.load_cpp_inline("shipped", {kernels.ADD_ONE!r}, bundle="kernels.kernix")

def fails():
    raise SystemExit(7)
"""


def make(place, folder, *arguments, text=ONE_KERNEL, **variables):
    """Run the command in a folder with the module ``shipped``."""
    (folder / "shipped.py").write_text(text)
    command = [sys.executable, "-m", "kernix", "bundle", *arguments, "-o", "kernels.kernix"]
    return run(*command, cwd=folder, env=place.environment | variables, check=False)


def names_in(folder):
    shown = run(_environment.program("kernixctl"), "bundle", "show", folder / "kernels.kernix", "--json")
    return [kernel["name"] for kernel in json.loads(shown.stdout)]


def contents(folder):
    return {path.name: path.read_bytes() for path in (folder / "kernels.kernix").iterdir()}


def test_a_bundle_of_what_a_function_loads(place, tmp_path):
    assert make(place, tmp_path, "shipped:warm_up").returncode == 0
    assert names_in(tmp_path) == ["shipped"]


def test_a_package_below_src(place, tmp_path):
    (tmp_path / "src/below").mkdir(parents=True)
    (tmp_path / "src/below/__init__.py").write_text(ONE_KERNEL)
    done = make(place, tmp_path, "below:warm_up")
    assert done.returncode == 0, done.stderr
    assert names_in(tmp_path) == ["shipped"]


def test_an_older_bundle_hides_no_change(place, tmp_path):
    """Also if it is damaged, and named by the program or by the environment."""
    make(place, tmp_path, "shipped:warm_up")
    before = contents(tmp_path)
    edited = ONE_KERNEL.replace("+ 1.0f", "+ 2.0f")
    assert make(place, tmp_path, "shipped:warm_up", text=edited).returncode == 0
    after = contents(tmp_path)
    assert names_in(tmp_path) == ["shipped"]
    assert after.keys() != before.keys()
    bundles = str(tmp_path / "kernels.kernix")
    for path in (tmp_path / "kernels.kernix").glob("*.kernel"):
        path.write_text("damaged")
    done = make(place, tmp_path, "shipped:warm_up", text=edited, KERNIX_BUNDLES=bundles)
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path) == after


def test_a_source_file_beside_a_package(place, tmp_path):
    (tmp_path / "alone.cpp").write_text(kernels.ADD_ONE)
    assert make(place, tmp_path, "shipped:warm_up", "alone.cpp").returncode == 0
    assert names_in(tmp_path) == ["alone", "shipped"]


def test_options_of_kernixctl_follow_two_dashes(place, tmp_path):
    (tmp_path / "shipped.py").write_text(ONE_KERNEL)
    command = [sys.executable, "-m", "kernix", "bundle", "shipped:warm_up", "-o", "kernels.kernix"]
    done = run(*command, "--", "--no-such-option", cwd=tmp_path, env=place.environment, check=False)
    assert done.returncode != 0
    assert "--no-such-option" in done.stderr


def test_a_signed_bundle(place, tmp_path):
    openssl = shutil.which("openssl")
    run(openssl, "genpkey", "-algorithm", "ed25519", "-out", tmp_path / "key.pem")
    public = run(openssl, "pkey", "-in", tmp_path / "key.pem", "-pubout").stdout
    assert make(place, tmp_path, "shipped:warm_up", "--sign-with", "key.pem").returncode == 0
    key = public.splitlines()[1]
    verified = run(_environment.program("kernixctl"), "bundle", "verify", tmp_path / "kernels.kernix", "--key", key)
    assert "signed by a trusted key" in verified.stdout


@pytest.mark.parametrize(
    ("what", "code", "error"),
    [
        ("no_such_package", 1, "there is no module 'no_such_package' in "),
        ("shipped:no_such", 1, "module 'shipped' has no attribute 'no_such'"),
        ("shipped:fails", 7, "has failed with exit code 7"),
        ("shipped", 1, "the program that was recorded has loaded no kernel"),
    ],
)
def test_what_gives_no_bundle_says_why(place, tmp_path, what, code, error):
    done = make(place, tmp_path, what)
    assert error in done.stderr
    assert (done.returncode == code) or what == "shipped"
    assert done.returncode != 0
    assert not (tmp_path / "kernels.kernix").exists()
