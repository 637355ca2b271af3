# SPDX-License-Identifier: Apache-2.0
"""`kernixctl web`: what it answers, and its page in Chromium."""

import base64
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import re
import resource
import select
import signal
import socket
import stat
import subprocess
import time
import urllib.error
import urllib.request

import browser
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parse_metrics

from kernix import _environment

CPP = """
#include "brainevent/common.h"
// @BE value ret
void value(BE::Tensor out) { *static_cast<float*>(out.data_ptr()) = 1; }
"""

CUDA = """
#include "brainevent/common.h"
__global__ void scale_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
// @BE scale arg ret stream
void scale(const BE::Tensor x, BE::Tensor y, int64_t stream) {
  int n = static_cast<int>(x.numel());
  scale_kernel<<<(n + 255) / 256, 256, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      static_cast<const float*>(x.data_ptr()), static_cast<float*>(y.data_ptr()), n);
}
"""


class Web:
    """A running `kernixctl web`, at the address that it has printed."""

    def __init__(self, process):
        self.process = process
        self.address = process.stdout.readline().strip()
        self.root, _, fragment = self.address.partition("#token=")
        self.token = fragment

    def ask(self, path, **headers):
        """Return status, headers and text of an answer."""
        headers = {"Authorization": f"Bearer {self.token}"} | headers
        request = urllib.request.Request(self.root.rstrip("/") + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read().decode()

    def json(self, path):
        """Return an answer that is JSON."""
        status, _, text = self.ask(path)
        assert status == 200, text
        return json.loads(text)


@contextlib.contextmanager
def serving(place, *arguments):
    """Run `kernixctl web` in a place."""
    command = [_environment.program("kernixctl"), "web", *arguments]
    with subprocess.Popen(command, env=place.environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Web(process)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == -signal.SIGTERM


def compile_source(place, path, text, *flags):
    """Compile a file by `kernixctl compile`, which starts a daemon where there is none. Returns the entry's key."""
    path.write_text(text)
    command = [_environment.program("kernixctl"), "compile", str(path), "--json", *flags]
    packages = os.pathsep.join(_environment.site_packages())
    environment = place.environment | {"KERNIXD": _environment.program("kernixd"), "KERNIX_SITE_PACKAGES": packages}
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)["key"]


@pytest.fixture(name="web")
def web_fixture(own_place, tmp_path):
    """A daemon that has built a kernel, and hit it once."""
    for _ in range(2):
        compile_source(own_place, tmp_path / "value.cpp", CPP)
    with serving(own_place, "--listen", "127.0.0.1:0") as web:
        yield web


def test_the_api_wants_the_token(web):
    assert len(web.token) == 32
    for path in ("/api/status.json", "/api/entries.json", "/api/kernel.json?key=00", "/api/events", "/api/nothing"):
        for authorization in ("", "Bearer ", "Bearer " + "0" * 32):
            status, _, text = web.ask(path, Authorization=authorization)
            assert (status, list(json.loads(text))) == (401, ["error"])
    for path in ("/", "/metrics", "/healthz", "/readyz"):
        assert web.ask(path, Authorization="")[0] == 200


def test_without_a_token_everybody_may_ask(own_place, tmp_path):
    compile_source(own_place, tmp_path / "value.cpp", CPP)
    with serving(own_place, "--listen", "127.0.0.1:0", "--no-token") as web:
        assert web.token == ""
        assert web.ask("/api/status.json", Authorization="")[0] == 200


def test_status_is_what_kernixctl_prints(web, own_place):
    answer = web.json("/api/status.json")
    own = json.loads(own_place.kernixctl("status", "--json").stdout)
    assert answer["status"] | {"uptime_ms": 0} == own | {"uptime_ms": 0}
    assert answer["cache"] == own_place.stats()
    assert (answer["cache"]["builds"], answer["cache"]["hits"]) == (1, 1)
    assert web.json("/api/entries.json") == json.loads(own_place.kernixctl("cache", "list", "--json").stdout)


def test_entries_say_how_long_their_builds_took(web):
    (entry,) = web.json("/api/entries.json")
    trace = web.json(f"/api/trace.json?key={entry['key']}")
    assert entry["build_ms"] == trace["otherData"]["total_us"] // 1000 > 0


def test_metrics_in_both_formats(web):
    status, headers, text = web.ask("/metrics")
    assert (status, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    plain = {family.name: family for family in parse_metrics(text)}
    _, headers, text = web.ask("/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    opened = {family.name: family for family in parse_open_metrics(text)}
    assert opened.keys() == plain.keys()
    assert {name: family.type for name, family in opened.items()} == {name: f.type for name, f in plain.items()}
    assert [sample.value for sample in opened["kernix_builds"].samples] == [1]


def test_a_kernel_that_was_kept_has_all_texts(own_place, tmp_path):
    flags = ("--arch", "sm_90", "--keep", "--flag=-lineinfo")
    key = compile_source(own_place, tmp_path / "scale.cu", CUDA, *flags)
    with serving(own_place, "--listen", "127.0.0.1:0") as web:
        kernel = web.json(f"/api/kernel.json?key={key}")
    assert kernel["entry"] == json.loads(own_place.kernixctl("cache", "show", key, "--json").stdout)
    assert kernel["trace"]["otherData"]["total_us"] > 0
    assert "scale_kernel" in kernel["texts"]["units"][0]["text"]
    kept = {text["kind"]: text["text"] for text in kernel["texts"]["kept"]}
    assert ".loc" in kept["ptx"]
    assert re.search(r'//## File ".*scale\.cu", line 5', kept["sass"])


def test_errors_are_json_below_api(web):
    for path, status in [("/api/kernel.json?key=00", 400), (f"/api/kernel.json?key={'0' * 64}", 404), ("/api/x", 404)]:
        code, _, text = web.ask(path)
        assert (code, list(json.loads(text))) == (status, ["error"])
    assert web.ask("/nothing")[::2] == (404, "there is no /nothing\n")


def test_without_a_daemon_it_waits(own_place, tmp_path):
    with serving(own_place, "--listen", "127.0.0.1:0") as web:
        for path in ("/metrics", "/healthz", "/readyz", "/api/status.json"):
            status, _, text = web.ask(path)
            assert status == 503
            assert "no kernixd" in text
        assert not (own_place.root / "store").exists(), "asking must not start a daemon"
        compile_source(own_place, tmp_path / "value.cpp", CPP)
        assert [web.ask(path)[0] for path in ("/metrics", "/healthz", "/readyz")] == [200, 200, 200]


def events(response, count):
    """Return the first events of a stream as (name, data)."""
    found = []
    while len(found) < count:
        name, data, end = (response.readline().decode() for _ in range(3))
        assert (name[:7], data[:6], end) == ("event: ", "data: ", "\n")
        found.append((name[7:-1], json.loads(data[6:])))
    return found


def test_a_stream_begins_with_the_history_and_goes_on(web):
    request = urllib.request.Request(web.root + "api/events", headers={"Authorization": f"Bearer {web.token}"})
    with urllib.request.urlopen(request, timeout=60) as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        (first, history), (second, now), (third, later) = events(response, 3)
    assert (first, second, third) == ("history", "now", "now")
    assert history[0]["builds"] == now["cache"]["builds"] == later["cache"]["builds"] == 1
    assert later["unix_ms"] > now["unix_ms"]


def test_a_page_that_nobody_opens_keeps_no_daemon_alive(own_place, tmp_path):
    path = tmp_path / "value.cpp"
    path.write_text(CPP)
    environment = own_place.environment | {"KERNIX_IDLE_TIMEOUT": "7s", "KERNIXD": _environment.program("kernixd")}
    command = [_environment.program("kernixctl"), "compile", str(path)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    pid = json.loads(own_place.kernixctl("status", "--json").stdout)["pid"]
    watch = os.pidfd_open(pid)
    with serving(own_place, "--listen", "127.0.0.1:0"):
        assert select.select([watch], [], [], 60)[0], "kernixd still runs"
    os.close(watch)


def test_it_answers_get_and_nothing_else(web):
    host = web.root.removeprefix("http://").rstrip("/")
    for method, body in [("POST", "x"), ("PUT", "x"), ("DELETE", None), ("OPTIONS", None)]:
        connection = http.client.HTTPConnection(host, timeout=60)
        connection.request(method, "/metrics", body=body)
        assert connection.getresponse().status in (405, 413, 501)
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request("HEAD", "/metrics")
    assert connection.getresponse().status == 200


def test_the_page_may_run_its_own_script_only(web):
    status, headers, page = web.ask("/", Authorization="")
    assert status == 200
    policy = headers["Content-Security-Policy"]
    script = page[page.index("<script>") + 8 : page.rindex("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)


def test_a_unix_socket_is_for_its_user(own_place, tmp_path):
    compile_source(own_place, tmp_path / "value.cpp", CPP)
    path = own_place.root / "web.sock"
    with serving(own_place, "--socket", str(path)) as web:
        assert web.address == f"listening at {path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.sendall(b"GET /api/status.json HTTP/1.0\r\n\r\n")
            assert b" 200 " in connection.makefile("rb").readline()
        again = own_place.kernixctl("web", "--socket", str(path), check=False)
        assert (again.returncode, ") listens at " in again.stderr) == (1, True)
    with serving(own_place, "--socket", str(path)) as web:
        assert web.address == f"listening at {path}", "what is left of the first is replaced"


def test_what_is_no_socket_stays(own_place, tmp_path):
    path = tmp_path / "results.csv"
    path.write_text("1,2\n")
    result = own_place.kernixctl("web", "--socket", str(path), check=False)
    assert (result.returncode, "is not a socket" in result.stderr) == (1, True)
    assert path.read_text() == "1,2\n"


def test_no_web_site_asks_through_a_name_of_its_own(web):
    port = web.root.rstrip("/").rpartition(":")[2]
    for path in ("/", "/metrics", "/api/status.json"):
        for host in ("evil.example", "127.0.0.1.evil.example", "127.evil.example", "localhost.evil"):
            assert web.ask(path, Host=f"{host}:{port}")[0] == 403
        for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"):
            assert web.ask(path, Host=host)[0] == 200


def test_names_and_schemes_in_any_case_and_probes_without_a_host(web):
    port = web.root.rstrip("/").rpartition(":")[2]
    assert web.ask("/api/status.json", Host=f"LOCALHOST:{port}", Authorization=f"bearer {web.token}")[0] == 200
    with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as connection:
        connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert b" 200 " in connection.makefile("rb").readline()


def test_a_daemon_that_hangs_holds_nobody_up(web, own_place):
    pid = json.loads(own_place.kernixctl("status", "--json").stdout)["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        for path in ("/healthz", "/readyz", "/metrics", "/api/status.json"):
            status, _, text = web.ask(path)
            assert (status, "no answer came within the time limit" in text) == (503, True)
        assert web.ask("/")[0] == 200
        assert time.monotonic() - began < 10, "one limit for all"
    finally:
        os.kill(pid, signal.SIGCONT)
    end = time.monotonic() + 60
    while web.ask("/healthz")[0] != 200:
        assert time.monotonic() < end


def test_streams_that_are_closed_take_no_memory(web):
    def resident():
        status = pathlib.Path(f"/proc/{web.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    def open_and_close(times):
        for _ in range(times):
            headers = {"Authorization": f"Bearer {web.token}", "X-Long": "x" * 10_000}
            with urllib.request.urlopen(urllib.request.Request(web.root + "api/events", headers=headers)) as response:
                response.readline()

    open_and_close(300)
    before = resident()
    open_and_close(1000)
    assert resident() - before < 5_000, "KiB; the headers alone would be 10 MB"


def test_it_outlives_connections_that_take_all_descriptors(web):
    most = 40
    resource.prlimit(web.process.pid, resource.RLIMIT_NOFILE, (most, most))
    host, _, port = web.root.removeprefix("http://").rstrip("/").rpartition(":")
    with contextlib.ExitStack() as connections:
        for _ in range(most + 20):
            connections.enter_context(socket.create_connection((host, int(port)), timeout=60))
        with pytest.raises(subprocess.TimeoutExpired):
            web.process.wait(timeout=2)
    assert web.ask("/healthz")[0] == 200


def test_a_connection_that_asks_nothing_ends_soon(web):
    host, _, port = web.root.removeprefix("http://").rstrip("/").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as silent:
        assert silent.recv(1) == b""


def test_a_connection_goes_on_after_head(web):
    connection = http.client.HTTPConnection(web.root.removeprefix("http://").rstrip("/"), timeout=9)
    for method, path in [("HEAD", "/api/events"), ("GET", "/healthz"), ("HEAD", "/"), ("GET", "/healthz")]:
        connection.request(method, path, headers={"Authorization": f"Bearer {web.token}"})
        response = connection.getresponse()
        assert (response.status, bool(response.read())) == (200, method == "GET"), (method, path)


def test_wrong_addresses(own_place):
    for address in ("9464", "localhost:http", "127.0.0.1:99999"):
        result = own_place.kernixctl("web", "--listen", address, check=False)
        assert result.returncode == 2
        assert "give HOST:PORT" in result.stderr
    result = own_place.kernixctl("web", "--listen", "192.0.2.1:0", check=False)
    assert (result.returncode, "192.0.2.1:0" in result.stderr) == (1, True)


# --- The page --------------------------------------------------------------------------------------------------------

IMAGES = pathlib.Path(__file__).parents[2] / "build" / "web"


@pytest.fixture(name="tab", scope="module")
def tab_fixture(tmp_path_factory):
    """A tab of Chromium."""
    with browser.opened(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


TEXT = "document.getElementById('page').innerText"


def shown(*words):
    """Return the expression that all words are on the page."""
    return " && ".join(f"{TEXT}.includes({json.dumps(word)})" for word in words)


def keep_picture(tab, name):
    """Write build/web/NAME.png, of which docs/images has copies."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    (IMAGES / f"{name}.png").write_bytes(tab.picture())


def test_the_page_shows_the_daemon(web, tab):
    tab.look(1280, 1400)
    tab.open(web.address)
    tab.wait_for(shown("hit rate", "50.0 %", "Recent builds", "value", "Where time went"))
    assert "token" not in tab.run("location.href")
    tab.wait_for("document.querySelectorAll('.tiny i').length > 0")
    tab.wait_for("document.querySelectorAll('svg polyline').length === 4")
    keep_picture(tab, "now")


def test_the_page_follows_events(web, tab, own_place, tmp_path):
    tab.open(web.address)
    tab.wait_for(shown("Recent builds", "value"))
    compile_source(own_place, tmp_path / "another.cpp", CPP.replace("1;", "2;"))
    tab.wait_for(shown("another"))


def test_dark_and_on_a_phone(web, tab):
    brightness = {}
    for scheme in ("light", "dark"):
        tab.look(390, 800, scheme)
        tab.open(web.address)
        tab.wait_for(shown("Recent builds", "value"))
        keep_picture(tab, f"phone-{scheme}")
        color = tab.run("getComputedStyle(document.body).backgroundColor")
        brightness[scheme] = sum(map(int, re.findall(r"\d+", color)[:3])) / 3
        assert tab.run("document.documentElement.scrollWidth") <= 390
    assert brightness["dark"] < 64 < 192 < brightness["light"]


def test_no_request_leaves_the_host(web, tab):
    tab.open(web.address)
    tab.wait_for(shown("Recent builds", "value"))
    asked = tab.run("performance.getEntriesByType('resource').map(entry => entry.name)")
    assert asked
    assert [address for address in asked if not address.startswith(web.root)] == []


def test_names_do_not_become_markup(own_place, tab, tmp_path):
    name = "x<img src=x onerror=alert(1)>"
    key = compile_source(own_place, tmp_path / f"{name}.cpp", CPP, "--name", name)
    with serving(own_place, "--listen", "127.0.0.1:0") as web:
        for address in (web.address, f"{web.address}&kernel={key}"):
            tab.open("about:blank")
            tab.open(address)
            tab.wait_for(shown(name))
            assert tab.run("document.querySelectorAll('#page img').length") == 0


def test_an_address_of_a_kernel_or_a_comparison_can_be_opened_again(own_place, tab, tmp_path):
    before = compile_source(own_place, tmp_path / "value.cpp", CPP)
    after = compile_source(own_place, tmp_path / "value.cpp", CPP.replace("1;", "2;"))
    with serving(own_place, "--listen", "127.0.0.1:0") as web:
        tab.open("about:blank")
        tab.open(f"{web.address}&kernel={after}&with={before}")
        tab.wait_for("document.querySelectorAll('.removed').length > 0")
        tab.run(f"location.hash = 'kernel={'0' * 64}'")
        tab.wait_for(shown("No such kernel", "no entry of yours"))


PRESS = """
[...document.querySelectorAll('.code .linked')].find(line => line.innerText.includes('3 * x[i]')).click()
"""
LIT = """
[...document.querySelectorAll('.code')].map(
  pane => [...pane.querySelectorAll('.lit')].map(line => line.innerText).join())
"""


def test_a_kernel_beside_its_machine_code_and_an_earlier_build(own_place, tab, tmp_path):
    flags = ("--arch", "sm_90", "--keep", "--flag=-lineinfo")
    before = compile_source(own_place, tmp_path / "scale.cu", CUDA, *flags)
    changed = CUDA.replace("2 * x[i]", "3 * x[i] + 1")
    after = compile_source(own_place, tmp_path / "scale.cu", changed, *flags)
    with serving(own_place, "--listen", "127.0.0.1:0") as web:
        tab.look(1280, 1800)
        tab.open(web.address)
        tab.wait_for(shown("scale"))
        tab.run(f"location.hash = 'kernel={after}'")
        tab.wait_for(shown("scale_kernel", "GPU kernels", "PTX sm_90", "SASS sm_90", "Compiled source: scale.cu"))
        tab.run(PRESS)
        source, ptx, sass = tab.run(LIT)
        assert ("3 * x[i] + 1" in source, "fma.rn.f32" in ptx, "FFMA" in sass) == (True, True, True)

        tab.run(f"location.hash = 'kernel={after}&with={before}'")
        tab.wait_for("document.querySelectorAll('.removed').length > 0")
        assert "2 * x[i]" in tab.run("document.querySelector('.removed').innerText")
        assert "3 * x[i] + 1" in tab.run("document.querySelector('.added').innerText")
        keep_picture(tab, "kernel")


def test_differences_are_those_of_diff(web, tab):
    tab.open(web.address)

    def differences(before, after):
        lines = tab.run(f"differences({json.dumps(before)}, {json.dumps(after)})")
        return [sign + line for sign, line in lines]

    assert differences("a\nb\nc", "a\nx\nc\nd") == [" a", "-b", "+x", " c", "+d"]
    assert differences("a", "a") == [" a"]
    assert differences("a\nb", "b") == ["-a", " b"]
    assert differences("b", "a\nb") == ["+a", " b"]


def test_a_daemon_that_goes_and_comes_back(own_place, tab, tmp_path):
    compile_source(own_place, tmp_path / "value.cpp", CPP)
    with serving(own_place, "--listen", "127.0.0.1:0") as web:
        tab.look(1280, 800)
        tab.open(web.address)
        tab.wait_for(shown("Recent builds", "value"))
        own_place.kernixctl("shutdown")
        tab.wait_for("document.getElementById('problem').innerText.includes('no kernixd')")
        compile_source(own_place, tmp_path / "value.cpp", CPP)
        tab.wait_for("document.getElementById('problem').innerText === ''")
