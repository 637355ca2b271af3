# SPDX-License-Identifier: Apache-2.0
"""Bundles: made with the compilers of one place, used in another one that has neither compilers nor kernixd."""

import concurrent.futures
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import sysconfig
import warnings
import zipfile

import conftest
import kernels
import numpy as np
import pytest

import kernix

ADD_N = """
#include "brainevent/common.h"
#include "n.h"
// @BE add_n
void add_n(BE::In<float> x, BE::Out<float> y) {
    for (int64_t i = 0; i < x.size(); ++i) y[i] = x[i] + N;
}
"""

LOAD = """
import os, sys, kernix, numpy
module = kernix.load_cpp_file(sys.argv[1], bundle=sys.argv[2:] or None, auto_register=False)
print(module.path, numpy.asarray(module.add_n(numpy.zeros(1, numpy.float32)))[0])
"""


@pytest.fixture(name="folder")
def folder_fixture(tmp_path):
    """A folder of kernels."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / "add.cpp").write_text(ADD_N)
    (folder / "n.h").write_text("#define N 5\n")
    return folder


@pytest.fixture(name="bare")
def bare_fixture(request):
    """A function that loads a file in a process that finds neither a compiler nor kernixd."""
    place = conftest.Place()
    before = request.session.testsfailed

    def load(*arguments, **variables):
        environment = place.environment | {"PATH": "/nonexistent", "KERNIXD": "/nonexistent/kernixd"} | variables
        command = [sys.executable, "-c", LOAD, *map(str, arguments)]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    yield load
    place.close(keep=request.session.testsfailed > before)


def make(place, bundle, *arguments):
    """Make a bundle of C++ and CUDA kernels, and return its folder."""
    packages = ["--site-packages", sysconfig.get_path("purelib")]
    done = place.kernixctl("bundle", "make", *map(str, arguments), "-o", str(bundle), *packages, check=False)
    assert done.returncode == 0, done.stderr
    return bundle


def shown(place, bundle):
    """Return the kernels of a bundle as kernixctl shows them."""
    return json.loads(place.kernixctl("bundle", "show", str(bundle), "--json").stdout)


def test_a_kernel_of_a_bundle_needs_no_compiler_and_no_kernixd(place, folder, bare, tmp_path):
    bundle = make(place, tmp_path / "b.kernix", folder)
    for path in bundle.iterdir():
        path.chmod(0o444)
    bundle.chmod(0o555)
    loaded = bare(folder / "add.cpp", bundle)
    assert loaded.returncode == 0, loaded.stderr
    path, value = loaded.stdout.split()
    assert os.path.dirname(path) == str(bundle)
    assert value == "5.0"
    assert bare(folder / "add.cpp").returncode != 0


def test_a_variable_that_names_no_compiler_matters_only_without_a_bundle(place, folder, bare, tmp_path):
    bundle = make(place, tmp_path / "b.kernix", folder)
    wrong = {"CXX": "/nonexistent/g++", "PATH": os.environ["PATH"]}
    loaded = bare(folder / "add.cpp", bundle, **wrong)
    assert loaded.returncode == 0, loaded.stderr
    refused = bare(folder / "add.cpp", **wrong)
    assert 'CXX asks for the C++ compiler "/nonexistent/g++", but there is no such program' in refused.stderr


def test_where_bundles_are_found(place, folder, bare, tmp_path):
    bundle = make(place, tmp_path / "b.kernix", folder)
    by_variable = bare(folder / "add.cpp", KERNIX_BUNDLES=f"/nonexistent:{bundle}")
    assert by_variable.returncode == 0, by_variable.stderr
    shutil.copytree(bundle, folder / "add.kernix")
    beside = bare(folder / "add.cpp", tmp_path / "none")
    assert beside.stdout.startswith(str(folder / "add.kernix")), beside.stderr


def test_another_place_of_the_sources_does_not_matter(place, folder, bare, tmp_path):
    bundle = make(place, tmp_path / "b.kernix", folder)
    moved = shutil.move(folder, tmp_path / "elsewhere")
    (tmp_path / "headers").mkdir()
    loaded = bare(moved / "add.cpp", bundle, CPATH=str(tmp_path / "headers"))
    assert loaded.returncode == 0, loaded.stderr


def test_a_change_is_a_miss_that_says_what_differs(place, folder, bare, tmp_path, forget):
    bundle = make(place, tmp_path / "b.kernix", folder)
    (folder / "n.h").write_text("#define N 6\n")
    failed = bare(folder / "add.cpp", bundle)
    differs = f'the bundle {bundle} has "add" from other inputs, which differ in header n.h'
    assert failed.returncode != 0
    assert f"Besides, {differs}." in failed.stderr
    with pytest.warns(kernix.KernelWarning, match="other inputs, which differ in header n.h"):
        kernix.load_cpp_file(folder / "add.cpp", bundle=bundle, auto_register=False)
    with pytest.raises(kernix.KernelNotCachedError, match="compile flags"):
        kernix.load_cpp_file(folder / "add.cpp", bundle=bundle, policy="cached", defines={"M": 1}, auto_register=False)
    assert kernix.load_cpp_file(folder / "add.cpp", bundle=bundle, force_rebuild=True).path.startswith(str(place.store))


def test_the_memory_of_a_process_notices_another_bundle(place, folder, tmp_path):
    bundle = make(place, tmp_path / "b.kernix", folder)
    load = lambda: kernix.load_cpp_file(folder / "add.cpp", bundle=bundle, auto_register=False)  # noqa: E731
    assert load().path.startswith(str(bundle))
    assert load().origin == "bundle"
    shutil.rmtree(bundle)
    assert load().path.startswith(str(place.store))
    assert load().origin == "cache"


def test_the_same_kernels_make_the_same_bytes(place, folder, tmp_path):
    one = make(place, tmp_path / "one", folder)
    other = make(place, tmp_path / "other", folder, "-j", "1")
    assert {path.name: path.read_bytes() for path in one.iterdir()} == {
        path.name: path.read_bytes() for path in other.iterdir()
    }
    assert stat.S_IMODE(one.stat().st_mode) == 0o755


def test_a_program_that_was_recorded(place, folder, bare, tmp_path):
    manifest = tmp_path / "kernels.manifest"
    place.kernixctl("record", "-o", str(manifest), "--", sys.executable, "-c", LOAD, str(folder / "add.cpp"))
    bundle = make(place, tmp_path / "b.kernix", manifest)
    assert bare(folder / "add.cpp", bundle).returncode == 0


def test_one_bundle_for_several_gpus(place, tmp_path):
    (tmp_path / "vector_add.cu").write_text(kernels.VECTOR_ADD)
    source = tmp_path / "vector_add.cu"
    options = ["--flag=-DSIZE=4"]
    ampere = make(place, tmp_path / "ampere", source, "--arch", "8.0", *options)
    hopper = make(place, tmp_path / "hopper", source, "--arch", "9.0", *options)
    both = tmp_path / "both"
    place.kernixctl("bundle", "merge", str(ampere), str(hopper), "-o", str(both))
    assert sorted(kernel["machine_code"] for kernel in shown(place, both)) == [["sm_80"], ["sm_90"]]
    assert all(kernel["cuda_version"] // 1000 >= 12 for kernel in shown(place, both))
    flags = {"extra_cuda_cflags": ["-DSIZE=4"], "policy": "cached", "auto_register": False}
    load = lambda arch: kernix.load_cuda_file(source, bundle=both, compute_capability=arch, **flags)  # noqa: E731
    assert load("9.0").path.startswith(str(both))
    assert load("sm_80").path.startswith(str(both))
    targets = "sm_80, PTX of sm_80, sm_90, PTX of sm_90"
    with pytest.raises(kernix.KernelNotCachedError, match=f'"vector_add" for {targets}, not for 12.0'):
        load("12.0")


# --- One file, and images


def test_a_bundle_may_be_one_file(place, folder, bare, tmp_path):
    bundle = make(place, tmp_path / "b.zip", folder)
    with zipfile.ZipFile(bundle) as zip_file:
        assert zip_file.testzip() is None
        assert {entry.compress_type for entry in zip_file.infolist()} == {zipfile.ZIP_STORED}
    loaded = bare(folder / "add.cpp", bundle)
    assert loaded.stdout.split()[1] == "5.0", loaded.stderr
    assert bare(folder / "add.cpp", bundle).stdout == loaded.stdout, "it is unpacked once"
    assert [kernel["name"] for kernel in shown(place, bundle)] == ["add"]
    verified = place.kernixctl("bundle", "verify", str(bundle)).stdout
    assert verified == "1 kernel, whole\n"
    again = tmp_path / "again.zip"
    place.kernixctl("bundle", "merge", str(bundle), "-o", str(again))
    assert again.read_bytes() == bundle.read_bytes()


def test_another_file_of_the_same_name_is_another_bundle(place, folder, tmp_path):
    bundle = make(place, tmp_path / "b.zip", folder)
    load = lambda: kernix.load_cpp_file(folder / "add.cpp", bundle=bundle, auto_register=False)  # noqa: E731
    first = load()
    assert first.origin == "bundle"
    (folder / "n.h").write_text("#define N 6\n")
    make(place, bundle, folder)
    second = load()
    assert second.origin == "bundle"
    assert second.add_n(np.zeros(1, np.float32))[0] == 6
    assert os.path.exists(first.path), "a process that has just found it may still open it"
    os.utime(os.path.dirname(first.path), (0, 0))
    make(place, bundle, folder, "--flag=-DM")
    kernix.load_cpp_file(folder / "add.cpp", bundle=bundle, auto_register=False, defines={"M": 1})
    assert not os.path.exists(first.path), "what was unpacked the day before goes"


def test_many_processes_unpack_at_once(place, folder, bare, tmp_path):
    bundle = make(place, tmp_path / "b.zip", folder)
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        loaded = list(pool.map(lambda _: bare(folder / "add.cpp", bundle), range(6)))
    assert [run.returncode for run in loaded] == [0] * 6, loaded[0].stderr


def test_a_stranger_cannot_plant_what_is_unpacked(place, folder, bare, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: makes a folder of another user")
    bundle = make(place, tmp_path / "b.zip", folder)
    unpacked = os.path.dirname(bare(folder / "add.cpp", bundle).stdout.split()[0])
    os.chown(os.path.dirname(unpacked), 65534, 65534)
    refused = bare(folder / "add.cpp", bundle)
    assert refused.returncode != 0
    assert f"cannot unpack the bundle {bundle}: " in refused.stderr
    assert "belongs to" in refused.stderr


@pytest.mark.parametrize("lost", ["kernix-bundle", "*.so", "*.kernel"])
@pytest.mark.parametrize("how", [pathlib.Path.unlink, lambda path: path.write_bytes(b"")], ids=["removed", "emptied"])
def test_what_was_unpacked_and_lost_is_unpacked_again(lost, how, place, folder, bare, tmp_path):
    bundle = make(place, tmp_path / "b.zip", folder)
    path = bare(folder / "add.cpp", bundle).stdout.split()[0]
    for file in pathlib.Path(path).parent.glob(lost):
        how(file)
    again = bare(folder / "add.cpp", bundle)
    assert again.stdout.split() == [path, "5.0"], again.stderr


def test_a_file_where_nothing_can_be_written(place, folder, bare, tmp_path):
    bundle = make(place, tmp_path / "b.zip", folder)
    failed = bare(folder / "add.cpp", bundle, KERNIX_CACHE_DIR="/proc/nothing")
    assert failed.returncode != 0
    assert f"cannot unpack the bundle {bundle}: " in failed.stderr
    assert "Set KERNIX_CACHE_DIR to a folder that you can write, or unzip the bundle" in failed.stderr


@pytest.mark.parametrize("damage", [lambda content: content[:-40], lambda content: b"no zip", lambda content: b""])
def test_a_damaged_file_is_an_error(place, folder, tmp_path, damage):
    bundle = make(place, tmp_path / "b.zip", folder)
    bundle.write_bytes(damage(bundle.read_bytes()))
    with pytest.raises(kernix.KernelLoadError, match="is no bundle of kernels: it is neither a folder nor a whole zip"):
        kernix.load_cpp_file(folder / "add.cpp", bundle=bundle, auto_register=False)


def test_an_image_of_a_bundle(place, folder, bare, tmp_path):
    """Skopeo reads it and writes the layer, which another program unpacks."""
    bundle = make(place, tmp_path / "b.kernix", folder)
    command = [sys.executable, "-m", "kernix", "image", str(bundle), "-o", str(tmp_path / "image")]
    subprocess.run([*command, "--prefix", "models/kernels"], check=True)
    layout = f"oci:{tmp_path}/image:latest"
    inspected = json.loads(subprocess.run(["skopeo", "inspect", layout], check=True, capture_output=True).stdout)
    assert (inspected["Os"], inspected["Architecture"], len(inspected["Layers"])) == ("linux", "amd64", 1)
    copy = ["skopeo", "copy", "--insecure-policy", layout, f"dir:{tmp_path}/copy"]
    subprocess.run(copy, check=True, capture_output=True)
    layer = tmp_path / "copy" / inspected["Layers"][0].removeprefix("sha256:")
    (tmp_path / "root").mkdir()
    subprocess.run(["tar", "-xf", str(layer), "-C", str(tmp_path / "root")], check=True)
    loaded = bare(folder / "add.cpp", KERNIX_BUNDLES=str(tmp_path / "root" / "models" / "kernels"))
    assert loaded.stdout.split()[1] == "5.0", loaded.stderr
    doubled = [*command[:-1], str(tmp_path / "doubled"), "--prefix", "/models//./kernels/"]
    subprocess.run(doubled, check=True)
    blobs = [{path.name for path in (tmp_path / image / "blobs/sha256").iterdir()} for image in ("image", "doubled")]
    assert blobs[0] == blobs[1]
    outside = subprocess.run(
        [*command[:-1], str(tmp_path / "outside"), "--prefix", "../../etc"], capture_output=True, text=True
    )
    assert (outside.returncode, (tmp_path / "outside").exists()) == (1, False)
    assert "the prefix ../../etc must be a folder in the image" in outside.stderr
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 1
    assert f"{tmp_path / 'image'} exists already: name a new folder" in again.stderr
    none = subprocess.run([*command[:4], str(tmp_path), "-o", str(tmp_path / "i")], capture_output=True, text=True)
    assert "is no folder of a bundle" in none.stderr


def test_an_image_is_for_the_processor_of_the_kernels(place, folder, tmp_path):
    bundle = make(place, tmp_path / "b.kernix", folder)
    (artifact,) = bundle.glob("*.so")
    aarch64 = bytearray(artifact.read_bytes())
    aarch64[18:20] = (183).to_bytes(2, "little")  # e_machine, as readelf -h shows it
    artifact.write_bytes(aarch64)
    subprocess.run([sys.executable, "-m", "kernix", "image", str(bundle), "-o", str(tmp_path / "image")], check=True)
    skopeo = ["skopeo", "inspect", "--override-arch", "arm64", f"oci:{tmp_path}/image:latest"]
    assert json.loads(subprocess.run(skopeo, check=True, capture_output=True).stdout)["Architecture"] == "arm64"


def test_two_bundles_are_compared(place, folder, tmp_path):
    one = make(place, tmp_path / "one", folder)
    (folder / "n.h").write_text("#define N 7\n")
    (folder / "more.cpp").write_text(ADD_N.replace("add_n", "more"))
    other = make(place, tmp_path / "other", folder)
    same = place.kernixctl("bundle", "diff", str(one), str(one))
    assert same.stdout == ""
    differ = place.kernixctl("bundle", "diff", str(one), str(other), check=False)
    assert differ.returncode == 1
    assert sorted(differ.stdout.splitlines()) == ["+ add: header n.h", "+ more", "- add: header n.h"]


def keys_in(folder, name):
    """Make a key; return its file and its public text."""
    path = folder / f"{name}.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", path], check=True)
    path.chmod(0o600)
    shown_key = subprocess.run(["openssl", "pkey", "-in", path, "-pubout"], check=True, capture_output=True, text=True)
    return path, shown_key.stdout.splitlines()[1]


def test_only_kernels_that_a_trusted_key_has_signed(place, folder, bare, tmp_path):
    owner, owners = keys_in(tmp_path, "owner")
    _, mallorys = keys_in(tmp_path, "mallory")
    is_signed = make(place, tmp_path / "signed", folder, "--sign-with", owner)
    unsigned = make(place, tmp_path / "unsigned", folder)
    assert bare(folder / "add.cpp", is_signed, KERNIX_BUNDLE_KEYS=f"{mallorys},{owners}").returncode == 0
    assert bare(folder / "add.cpp", is_signed, KERNIX_BUNDLE_KEYS=mallorys).returncode != 0
    assert (
        "no key of KERNIX_BUNDLE_KEYS has signed it"
        in bare(folder / "add.cpp", unsigned, KERNIX_BUNDLE_KEYS=owners).stderr
    )
    [artifact] = is_signed.glob("*.so")
    content = artifact.read_bytes()
    artifact.write_bytes(content[:-1] + b"x")
    assert "its content has changed" in bare(folder / "add.cpp", is_signed, KERNIX_BUNDLE_KEYS=owners).stderr
    artifact.write_bytes(content)
    assert "KERNIX_BUNDLE_KEYS" in bare(folder / "add.cpp", is_signed, KERNIX_BUNDLE_KEYS="no key").stderr
    assert "KERNIX_BUNDLE_KEYS holds no key" in bare(folder / "add.cpp", unsigned, KERNIX_BUNDLE_KEYS="").stderr
    verified = place.kernixctl("bundle", "verify", str(is_signed), "--key", owners)
    assert verified.stdout == "1 kernel, whole and signed by a trusted key\n"
    refused = place.kernixctl("bundle", "verify", str(unsigned), "--key", owners, check=False)
    assert refused.returncode == 1
    assert "1 of 1 kernels" in refused.stderr


def test_one_trusted_signature_of_several_is_enough(place, folder, tmp_path):
    files, publics = zip(*(keys_in(tmp_path, name) for name in ("one", "other")), strict=True)
    bundles = [make(place, tmp_path / file.stem, folder, "--sign-with", file) for file in files]
    place.kernixctl("bundle", "merge", *map(str, bundles), "-o", str(tmp_path / "both"))
    verified = place.kernixctl("bundle", "verify", str(tmp_path / "both"), "--key", publics[0])
    assert verified.stdout == "1 kernel, whole and signed by a trusted key\n"


def test_a_hit_of_the_cache_does_not_say_why_a_bundle_beside_has_it_not(place, folder, forget):
    make(place, folder / "add.kernix", folder)
    load = lambda: kernix.load_cpp_file(folder / "add.cpp", auto_register=False)  # noqa: E731
    (folder / "n.h").write_text("#define N 8\n")
    with pytest.warns(kernix.KernelWarning, match="other inputs, which differ in header n.h"):
        load()
    forget()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load().origin == "cache"


def test_what_a_kernel_needs_is_shown(place, folder, tmp_path):
    (folder / "add.cpp").write_text(ADD_N.replace("y[i] = x[i] + N", "y[i] = float(_Float16(x[i])) + N"))
    (kernel,) = shown(place, make(place, tmp_path / "b.kernix", folder))
    assert "libc.so.6" in kernel["libraries"]
    assert "GCC_12.0.0" in kernel["needs"]
    by_openmp = make(place, tmp_path / "omp.kernix", folder, "--link-flag=-Wl,--no-as-needed", "--link-flag=-lgomp")
    assert "libgomp.so.1" in shown(place, by_openmp)[0]["libraries"]


def test_damage_is_told_with_its_file_and_hides_nothing(place, folder, bare, tmp_path):
    bundle = make(place, tmp_path / "b.kernix", folder)
    [artifact] = bundle.glob("*.so")
    content = artifact.read_bytes()
    artifact.write_bytes(content[:-1])
    for failed in (bare(folder / "add.cpp", bundle), place.kernixctl("bundle", "verify", str(bundle), check=False)):
        assert failed.returncode != 0
        assert f"{artifact}: it has another size" in failed.stderr
    artifact.write_bytes(content[:-1] + b"x")
    verified = place.kernixctl("bundle", "verify", str(bundle), check=False)
    assert f"{artifact}: its content has changed" in verified.stderr
    artifact.write_bytes(content)
    [statement] = bundle.glob("*.kernel")
    statement.unlink()
    verified = place.kernixctl("bundle", "verify", str(bundle), check=False)
    assert (verified.returncode, f"has lost what it says about {artifact.name}" in verified.stderr) == (1, True)
    (bundle / "kernix-bundle").write_text("kernix bundle, format 9\n")
    assert "was made by a newer kernix" in bare(folder / "add.cpp", bundle).stderr
    bundle.rename(folder / "add.kernix")
    assert "was made by a newer kernix" in bare(folder / "add.cpp").stderr


def test_an_error_says_what_the_bundles_lack(place, folder, bare, tmp_path, forget):
    other = tmp_path / "other"
    other.mkdir()
    (other / "mul.cpp").write_text(ADD_N)
    (other / "n.h").write_text("#define N 5\n")
    bundle = make(place, tmp_path / "b.kernix", other)
    failed = bare(folder / "add.cpp", bundle, KERNIX_BUNDLES="/nonexistent")
    says = f'Besides, the bundle {bundle} has nothing named "add"; there is no bundle /nonexistent.'
    assert says in failed.stderr
    with pytest.warns(kernix.KernelWarning, match='has nothing named "add"'):
        kernix.load_cpp_file(folder / "add.cpp", bundle=bundle, auto_register=False)
    forget()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as in a clone of a package
        kernix.load_cpp_file(folder / "add.cpp", bundle=tmp_path / "none", auto_register=False)


def test_what_a_bundle_has_built_counts_as_built(own_place, folder, tmp_path):
    make_it = ("bundle", "make", str(folder), "-o", str(tmp_path / "b.kernix"))
    assert "1 module: 1 built, in" in own_place.kernixctl(*make_it).stderr
    assert "1 module: 1 from the cache, in" in own_place.kernixctl(*make_it).stderr


REFUSED = {
    "-march=native": "the flag -march=native makes code for this machine's processor",
    "-mtune=native": "the flag -mtune=native makes code for this machine's processor",
}


@pytest.mark.parametrize("flag", REFUSED)
def test_what_only_this_machine_can_run_is_refused(flag, place, folder, tmp_path):
    bundle = tmp_path / "b.kernix"
    done = place.kernixctl("bundle", "make", str(folder), f"--flag={flag}", "-o", str(bundle), check=False)
    assert done.returncode == 1
    assert REFUSED[flag] in done.stderr
    assert not bundle.exists()


@pytest.mark.parametrize("flags", [["-Xcompiler=-O2,-march=native,-g0"], ["-Xcompiler", "-march=native,-O2"]], ids=str)
def test_also_behind_a_flag_of_nvcc(flags, place, tmp_path):
    (tmp_path / "k.cu").write_text(kernels.VECTOR_ADD)
    packages = ["--site-packages", sysconfig.get_path("purelib"), "--arch=9.0", "--flag=-DSIZE=4"]
    options = [*packages, *(f"--flag={flag}" for flag in flags)]
    done = place.kernixctl("bundle", "make", str(tmp_path / "k.cu"), "-o", str(tmp_path / "b"), *options, check=False)
    assert done.returncode == 1
    assert REFUSED["-march=native"] in done.stderr


def test_what_another_machine_cannot_compare_is_refused(place, folder, tmp_path):
    (folder / "add.cpp").write_text(ADD_N.replace('"n.h"', f'"{folder / "n.h"}"'))
    done = place.kernixctl("bundle", "make", str(folder), "-o", str(tmp_path / "b"), check=False)
    assert done.returncode == 1
    assert f"it reads {folder / 'n.h'} by its absolute path" in done.stderr


def test_what_becomes_a_part_of_the_kernel_unseen_is_refused(place, folder, tmp_path):
    (tmp_path / "help.cpp").write_text("int help() { return 1; }")
    subprocess.run(["g++", "-fPIC", "-c", tmp_path / "help.cpp", "-o", tmp_path / "help.o"], check=True)
    flag = f"--link-flag={tmp_path / 'help.o'}"
    done = place.kernixctl("bundle", "make", str(folder), flag, "-o", str(tmp_path / "b"), check=False)
    assert done.returncode == 1
    assert f"a flag names {tmp_path / 'help.o'}" in done.stderr


def test_the_slash_of_a_completion_does_not_matter(place, folder, tmp_path):
    bundle = make(place, tmp_path / "b.kernix", folder)
    before = {path.name for path in bundle.iterdir()}
    make(place, f"{bundle}/", folder)
    assert {path.name for path in bundle.iterdir()} == before
    assert [path.name for path in tmp_path.glob("b.kernix*")] == ["b.kernix"]


def test_no_other_folder_is_replaced(place, folder, tmp_path):
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "text").write_text("all of it")
    done = place.kernixctl("bundle", "make", str(folder), "-o", str(thesis), check=False)
    assert done.returncode != 0
    assert "will not replace" in done.stderr
    assert (thesis / "text").read_text() == "all of it"


@pytest.mark.parametrize("bundle", [3, [3]])
def test_what_is_no_path_is_refused(bundle, folder):
    with pytest.raises(TypeError, match="bundle"):
        kernix.load_cpp_file(folder / "add.cpp", bundle=bundle)
