# SPDX-License-Identifier: Apache-2.0
"""The site as a visitor meets it: Chromium opens what `make docs` has built."""

import contextlib
import functools
import http.server
import json
import os
import pathlib
import queue
import re
import shutil
import subprocess
import threading

import pytest

HERE = pathlib.Path(__file__).parent
SITE = HERE.parents[1] / "build" / "site"
PATIENCE = 200  # seconds


class Answers:
    """What a page of this folder has posted."""

    def __init__(self):
        self.queue = queue.Queue()
        self.posted = threading.Event()

    def put(self, answer):
        self.queue.put(answer)
        self.posted.set()


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the site, and beside its pages those of this folder, which post answers."""

    def __init__(self, *arguments, answers):
        self.answers = answers
        super().__init__(*arguments, directory=str(SITE))

    def translate_path(self, path):
        own = HERE / pathlib.PurePath(path.partition("?")[0]).name
        return str(own) if own.suffix == ".html" and own.exists() else super().translate_path(path)

    def do_GET(self):
        if self.path == "/after-answers":
            self.answers.posted.wait(PATIENCE)
        super().do_GET()

    def do_POST(self):
        self.answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def served(answers):
    """Serve the site; gives its address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, answers=answers)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def pages():
    """Return the names of all pages."""
    return sorted(path.name for path in SITE.glob("*.html") if path.name != "404.html")


def browser(profile, *arguments):
    """Return the command that opens a page in Chromium."""
    program = shutil.which("chromium")
    assert program, "there is no chromium: make test-docs installs it"
    command = [program, "--headless", "--disable-gpu", f"--user-data-dir={profile}"]
    command += ["--no-sandbox"] if os.getuid() == 0 else []  # Chromium has none for root
    return [*command, *arguments]


@pytest.fixture(name="visit", scope="module")
def visit_fixture(tmp_path_factory):
    """What check.html has found in all pages."""
    answers = Answers()
    with served(answers) as origin:
        address = f"{origin}/check.html?pages={','.join(pages())}"
        command = browser(tmp_path_factory.mktemp("profile"), "--remote-debugging-port=0", address)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                return answers.queue.get(timeout=PATIENCE) | {"origin": origin}
            finally:
                process.terminate()


def test_search_finds_pages(visit):
    assert visit["search"]["box"] == "scratch"
    assert "/kernels.html" in visit["search"]["results"]


def test_light_and_dark(visit):
    brightness = [sum(map(int, re.findall(r"\d+", color)[:3])) / 3 for color in visit["modes"]]
    assert sorted(light > 128 for light in brightness) == [False, True], visit["modes"]


def test_pages_fit_a_phone(visit):
    assert [answer["page"] for answer in visit["phone"]] == pages()
    assert {answer["page"]: answer["width"] for answer in visit["phone"] if answer["width"] > 390} == {}


def test_no_page_asks_another_host(visit):
    asked = [address for answer in [visit["search"], *visit["phone"]] for address in answer["requests"]]
    assert any(address.endswith(".css") for address in asked)
    assert [address for address in asked if not address.startswith(visit["origin"])] == []


def test_screenshot(tmp_path):
    """Writes build/site.png, which docs/images/site.png is a copy of."""
    answers = Answers()
    picture = SITE.with_suffix(".png")
    picture.unlink(missing_ok=True)
    with served(answers) as origin:
        shot = [f"--screenshot={picture}", "--window-size=1410,760", "--hide-scrollbars", f"{origin}/screenshot.html"]
        subprocess.run(browser(tmp_path, *shot), check=True, capture_output=True, timeout=PATIENCE)
    assert answers.posted.is_set()
    assert picture.read_bytes().startswith(b"\x89PNG")
