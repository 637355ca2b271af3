# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes: valid by Kubernetes' schemas, and its commands do what its comments say.

There is no cluster here. The commands of the DaemonSet run as processes, with its config, where the node's folders have
other names; for some tests, with the users and capabilities of the pods.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import kernels
import kubernetes_validate
import pytest
import yaml

from kernix import _environment

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
FILES = sorted(FOLDER.glob("*.yaml"))

# The oldest that its users may still have, and the newest that the schemas are there for.
VERSIONS = ["1.31", "1.37"]


def documents(*names):
    """Return the objects of some files."""
    return [document for name in names for document in yaml.safe_load_all((FOLDER / name).read_text())]


def find(kind, name="kernixd.yaml"):
    """Return the one object of a kind."""
    (found,) = [document for document in documents(name) if document["kind"] == kind]
    return found


def pod_of(document):
    """Return the pod's spec of an object that makes pods."""
    return document["spec"]["template"]["spec"]


def containers_of(pod):
    """Return all containers of a pod."""
    return [*pod.get("initContainers", []), *pod["containers"]]


PODS = [document for document in documents(*(path.name for path in FILES)) if "template" in document.get("spec", {})]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_objects_are_valid(path, version):
    for document in documents(path.name):
        kubernetes_validate.validate(document, version, strict=True)


def test_the_schemas_refuse_what_kubernetes_does_not_know():
    daemon_set = find("DaemonSet")
    pod_of(daemon_set)["containers"][0]["volumeMount"] = []
    with pytest.raises(kubernetes_validate.ValidationError, match="volumeMount"):
        kubernetes_validate.validate(daemon_set, VERSIONS[0], strict=True)


@pytest.mark.parametrize("document", PODS, ids=lambda document: document["metadata"]["name"])
def test_a_pod_has_the_volumes_that_it_mounts_and_no_others(document):
    pod = pod_of(document)
    mounted = {mount["name"] for container in containers_of(pod) for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}


@pytest.mark.parametrize("document", PODS, ids=lambda document: document["metadata"]["name"])
def test_commands_use_folders_that_are_mounted(document):
    for container in containers_of(pod_of(document)):
        words = container["command"] + container.get("readinessProbe", {}).get("exec", {}).get("command", [])
        used = {
            path.rstrip("/")
            for path in re.findall(r"(?<![\w./-])/(?:run|var|etc|kernels|cache)[\w./-]*", "\n".join(words))
        }
        mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
        assert [path for path in used if not any(f"{path}/".startswith(f"{mount}/") for mount in mounts)] == []


@pytest.mark.parametrize("document", PODS, ids=lambda document: document["metadata"]["name"])
def test_a_selector_finds_its_pods(document):
    if "selector" in document["spec"]:
        labels = document["spec"]["template"]["metadata"]["labels"]
        assert document["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_jobs_reach_the_folders_of_the_daemon():
    def paths(pod):
        return {volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}

    daemon, job = pod_of(find("DaemonSet")), pod_of(find("Job", "job.yaml"))
    assert paths(job) == paths(daemon)
    assert job["securityContext"]["supplementalGroups"] == [daemon["securityContext"]["runAsGroup"]]


class Simulated:
    """The containers of the DaemonSet as processes of this machine, whose folders lie below one of ours."""

    def __init__(self, root):
        self.root = root
        self.processes = []
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        for folder in ("run/kernix", "var/cache/kernix", "etc/kernix", "kernels", "tmp", "bin"):
            (root / folder).mkdir(parents=True)
        for name in ("kernixd", "kernixctl"):
            (root / "bin" / name).symlink_to(_environment.program(name))
        self.write("etc/kernix/kernixd.toml", find("ConfigMap")["data"]["kernixd.toml"])
        self.containers = {container["name"]: container for container in containers_of(pod_of(find("DaemonSet")))}

    def moved(self, text):
        """Return a text whose paths lead below our folder, and whose port is one of ours."""
        text = text.replace(":9464", f":{self.port}")
        return re.sub(r"(?<![\w/])/(run/kernix|var/cache/kernix|etc/kernix|kernels|tmp)\b", rf"{self.root}/\1", text)

    def write(self, path, text):
        """Write a file of the containers, with the paths that they see."""
        (self.root / path).write_text(self.moved(text))

    def start_container(self, name):
        """Start the command of a container."""
        return self.start_in(name, self.containers[name]["command"])

    def start_in(self, name, command):
        """Start a command in a container."""
        return self.start(map(self.moved, command))

    def start(self, command):
        """Start a command, whose paths are those of this machine. Its processes end with the test."""
        environment = {"PATH": f"{self.root}/bin:{os.environ['PATH']}", "HOME": str(self.root)}
        with (self.root / "output").open("a") as output:
            process = subprocess.Popen(
                list(command), env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.processes.append(process)
        return process

    def run(self, command):
        """Return the exit code of a command."""
        return self.start(command).wait(timeout=120)

    def is_ready(self, name):
        """Return whether a container is ready, as its probe sees it."""
        return self.start_in(name, self.containers[name]["readinessProbe"]["exec"]["command"]).wait(timeout=120) == 0

    def await_ready(self, name, process):
        """Wait until a container is ready."""
        self.await_that(lambda: self.is_ready(name), process)

    def await_that(self, condition, process):
        """Wait until a condition holds, as long as a process runs."""
        end = time.monotonic() + 120
        while not condition():
            assert process.poll() is None, self.output()
            assert time.monotonic() < end, self.output()
            time.sleep(0.05)

    def output(self):
        """Return what the commands have printed."""
        return (self.root / "output").read_text()

    def end(self):
        """End all processes, as the end of a container does."""
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(name="make_node")
def make_node_fixture(own_place):
    """A function that makes a node without a pod."""
    nodes = []

    def make():
        nodes.append(Simulated(own_place.root / f"node{len(nodes)}"))
        return nodes[-1]

    yield make
    for node in nodes:
        node.end()


@pytest.fixture(name="node")
def node_fixture(make_node):
    """One node."""
    return make_node()


def test_the_config_is_good(node):
    assert node.run(["kernixd", "--config", f"{node.root}/etc/kernix/kernixd.toml", "--check-config"]) == 0, (
        node.output()
    )


def with_upstream(config, address):
    """Return a config with its lines about an engine, which is at another address."""
    config, lines = re.subn(r"^# (\[upstream\]|address = .*|write = .*)$", r"\1", config, flags=re.MULTILINE)
    assert lines == 3
    (host,) = [document["metadata"]["name"] for document in documents("engine.yaml") if document["kind"] == "Service"]
    assert f'"grpc://{host}:50051"' in config
    return config.replace(f"grpc://{host}:50051", address)


def test_a_node_takes_from_the_engine_what_another_one_has_compiled(make_node, own_place, tmp_path):
    engine_program = ROOT / ".engines" / "buildbox" / "buildbox-casd"
    if not engine_program.exists():
        pytest.skip("buildbox-casd is not in .engines: tests/support/engine/install.sh brings it")
    engine_socket = own_place.root / "engine"
    first, second = make_node(), make_node()
    command = pod_of(find("Deployment", "engine.yaml"))["containers"][0]["command"]
    assert f"--bind=0.0.0.0:{find('Service', 'engine.yaml')['spec']['ports'][0]['port']}" in command
    words = {"buildbox-casd": str(engine_program), "--bind=0.0.0.0:50051": f"--bind=unix:{engine_socket}"}
    words |= {"/cache": str(own_place.root / "casd"), "--reserved=1G": "--reserved=0"}
    engine = first.start([words.get(word, word) for word in command])
    for node in (first, second):
        config = node.root / "etc" / "kernix" / "kernixd.toml"
        config.write_text(with_upstream(config.read_text(), f"unix://{engine_socket}"))
    first.await_that(engine_socket.exists, engine)

    manifest = second.root / "kernels" / "kernels.manifest"
    (tmp_path / "value.cpp").write_text(kernels.constant(702))

    def build(node, *options):
        address = f"unix:{node.root}/run/kernix/kernixd.sock"
        return ["kernixctl", "--address", address, "build", str(tmp_path), *options]

    first.await_ready("kernixd", first.start_container("kernixd"))
    assert first.run(["kernixctl", "record", "-o", str(manifest), "--", *build(first)]) == 0, first.output()
    second.await_ready("kernixd", second.start_container("kernixd"))
    # As soon as the first one has written it to the engine.
    second.await_that(lambda: second.run(build(second, "--policy", "cached")) == 0, engine)
    assert "1 module: 1 from another node, in " in second.output()
    second.await_ready("prefetch", second.start_container("prefetch"))
    assert "1 module: 1 from the cache, in " in second.output()


# The image has the user kernix, and a mount namespace gives its commands that user's database.
WITH_USER = 'mount --bind "$0/passwd" /etc/passwd && mount --bind "$0/group" /etc/group && exec "$@"'


def rights_of(pod, container):
    """Return the words that run a command with the rights of a container, as its securityContexts have them."""
    context = {"runAsUser": 0, "runAsGroup": 0} | pod.get("securityContext", {}) | container["securityContext"]
    kept = ",".join(["-all", *(f"+{name.lower()}" for name in context["capabilities"].get("add", []))])
    assert context["capabilities"]["drop"] == ["ALL"]
    assert not context["allowPrivilegeEscalation"]
    ids = [f"--reuid={context['runAsUser']}", f"--regid={context['runAsGroup']}"]
    groups = ",".join(map(str, context.get("supplementalGroups", [])))
    ids.append(f"--groups={groups}" if groups else "--clear-groups")
    return ["setpriv", *ids, f"--inh-caps={kept}", f"--bounding-set={kept}", "--no-new-privs"]


class Confined(Simulated):
    """The same with the users and the capabilities that the pods have."""

    def __init__(self, root):
        super().__init__(root)
        for name, line in (("passwd", "kernix:x:950:950::/nonexistent:/usr/sbin/nologin"), ("group", "kernix:x:950:")):
            lines = pathlib.Path(f"/etc/{name}").read_text().splitlines()
            kept = [each for each in lines if not re.match(r"kernix:|[^:]*:[^:]*:950:", each)]
            (root / name).write_text("\n".join([*kept, line, ""]))
        (root / "tmp").chmod(0o1777)  # that of the image
        for folder in (root.parent, root):
            folder.chmod(0o755)

    def start_with(self, rights, command):
        """Start a command with some rights."""
        return self.start(["unshare", "--mount", "sh", "-c", WITH_USER, self.root, *rights, *command])

    def start_in(self, name, command):
        return self.start_with(rights_of(pod_of(find("DaemonSet")), self.containers[name]), map(self.moved, command))

    def run_in_job(self, command, groups):
        """Return the exit code of a command in a pod like the job's, whose user is in some groups."""
        pod = pod_of(find("Job", "job.yaml"))
        context = {"runAsUser": 2001, "runAsGroup": 2001, "supplementalGroups": groups}
        container = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        rights = rights_of({"securityContext": context}, {"securityContext": container})
        variables = {each["name"]: self.moved(each["value"]) for each in pod["containers"][0]["env"]}
        variables |= {"HOME": str(self.root / "tmp")}
        words = ["env", *(f"{name}={value}" for name, value in variables.items())]
        return self.start_with(rights, [*words, *command]).wait(timeout=120)


@pytest.fixture(name="confined")
def confined_fixture(own_place):
    """A node whose containers have no right but those of the manifest."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to give the containers the users and capabilities that the manifest says")
    node = Confined(own_place.root / "confined")
    if node.start_with([], ["true"]).wait() != 0:
        pytest.skip(f"cannot make a mount namespace with the image's users: {node.output()}")
    if node.start_with(["setpriv", "--reuid=950", "--clear-groups"], ["kernixctl", "--version"]).wait() != 0:
        pytest.skip(f"other users cannot run the programs of this build folder: {node.output()}")
    yield node
    node.end()


def test_the_folders_get_their_owner(confined):
    """Also when a pod comes again, and the folders are no longer root's, who may not read them then."""
    (confined.root / "var" / "cache" / "kernix" / "of-kernix").touch()
    for _ in range(2):
        assert confined.start_container("folders").wait(timeout=60) == 0, confined.output()
        for folder, mode in (("run/kernix", 0o755), ("var/cache/kernix", 0o750)):
            info = (confined.root / folder).stat()
            assert (info.st_uid, info.st_gid, info.st_mode & 0o777) == (950, 950, mode)


def test_only_pods_in_the_group_use_the_daemon(confined, tmp_path):
    kernel = confined.root / "kernels" / "value.cpp"
    kernel.write_text(kernels.constant(703))
    assert confined.start_container("folders").wait(timeout=60) == 0, confined.output()
    daemon = confined.start_container("kernixd")
    confined.await_ready("kernixd", daemon)
    build = ["kernixctl", "build", str(kernel)]
    in_group, others = [950], [951]

    assert confined.run_in_job(build, in_group) == 6  # the job's policy: never compile
    assert confined.run_in_job([*build, "--policy", "build"], others) == 3
    assert "1 built" not in confined.output()
    assert confined.run_in_job([*build, "--policy", "build"], in_group) == 0, confined.output()
    assert "1 module: 1 built, in " in confined.output()
    assert confined.run_in_job([*build, "-v"], in_group) == 0, confined.output()
    assert "1 module: 1 from the cache, in " in confined.output()
    artifacts = list((confined.root / "var" / "cache" / "kernix" / "artifacts").glob("*.so"))
    assert [(path.stat().st_uid, path.stat().st_gid) for path in artifacts] == [(950, 950)]
    for groups, exit_code in ((in_group, 0), (others, 1)):
        assert confined.run_in_job(["cat", str(artifacts[0])], groups) == exit_code

    daemon.terminate()
    assert daemon.wait(timeout=60) == 0, confined.output()


def test_a_node_is_ready_when_it_has_the_kernels(node, own_place, tmp_path):
    (tmp_path / "value.cpp").write_text(kernels.constant(701))
    kernixctl = _environment.program("kernixctl")
    manifest = node.root / "kernels" / "kernels.manifest"
    build = [kernixctl, "build", str(tmp_path)]
    recorded = subprocess.run(
        [kernixctl, "record", "-o", str(manifest), "--", *build],
        env=own_place.environment | {"KERNIXD": _environment.program("kernixd")},
        capture_output=True,
        text=True,
    )
    assert recorded.returncode == 0, recorded.stderr
    assert not node.is_ready("kernixd")
    daemon = node.start_container("kernixd")
    node.await_ready("kernixd", daemon)
    assert not node.is_ready("prefetch")
    prefetch = node.start_container("prefetch")
    node.await_ready("prefetch", prefetch)
    assert (node.root / "tmp" / "kernels-are-there").read_text() == "1 modules are there\n"
    assert "value (built in " in node.output()

    (container,) = pod_of(find("Job", "job.yaml"))["containers"]
    variables = {variable["name"]: node.moved(variable["value"]) for variable in container["env"]}
    used = subprocess.run(build, env=own_place.environment | variables, capture_output=True, text=True)
    assert used.returncode == 0, used.stderr
    assert "1 module: 1 from the cache, in " in used.stderr

    for process in (prefetch, daemon):
        process.terminate()
        assert process.wait(timeout=60) == 0, node.output()


def test_a_job_can_run_its_command(own_place):
    (container,) = pod_of(find("Job", "job.yaml"))["containers"]
    command = [sys.executable if word == "python3" else word for word in container["command"]]
    assert "ok    kernixd " in subprocess.run(command, env=own_place.environment, capture_output=True, text=True).stdout


def test_the_page_shows_counts_and_no_kernel(confined):
    def ask(path):
        with urllib.request.urlopen(f"http://127.0.0.1:{confined.port}{path}", timeout=60) as answer:
            return answer.read().decode()

    def is_ready():
        with contextlib.suppress(OSError):
            return ask(confined.containers["web"]["readinessProbe"]["httpGet"]["path"]) == "ok\n"

    kernel = confined.root / "kernels" / "value.cpp"
    kernel.write_text(kernels.constant(704))
    assert confined.start_container("folders").wait(timeout=60) == 0, confined.output()
    confined.await_ready("kernixd", confined.start_container("kernixd"))
    assert confined.run_in_job(["kernixctl", "build", str(kernel), "--policy", "build"], [950]) == 0, confined.output()
    confined.await_that(is_ready, confined.start_container("web"))
    assert "\nkernix_builds_total 1\n" in ask("/metrics")
    assert json.loads(ask("/api/status.json"))["status"]["hidden_entries"] == 1
    assert json.loads(ask("/api/entries.json")) == []
