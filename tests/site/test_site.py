# SPDX-License-Identifier: Apache-2.0
"""The site as a visitor meets it: Chromium opens what `make docs` has built."""

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

ROOT = pathlib.Path(__file__).parents[2]
SITE = ROOT / "build" / "site"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the site, and check.html beside its pages, which posts its answers."""

    def __init__(self, *arguments, answers):
        self.answers = answers
        super().__init__(*arguments, directory=str(SITE))

    def translate_path(self, path):
        if path.startswith("/check.html"):
            return str(pathlib.Path(__file__).with_name("check.html"))
        return super().translate_path(path)

    def do_POST(self):
        self.answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments):
        pass


def pages():
    """Return the names of all pages."""
    return sorted(path.name for path in SITE.glob("*.html") if path.name != "404.html")


def browser_command(profile, address):
    """Return the command that opens a page in Chromium and keeps it open."""
    program = shutil.which("chromium")
    assert program, "there is no chromium: make test-docs installs it"
    command = [program, "--headless", "--disable-gpu", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
    command += ["--no-sandbox"] if os.getuid() == 0 else []  # Chromium has none for root
    return [*command, address]


@pytest.fixture(name="visit", scope="module")
def visit_fixture(tmp_path_factory):
    """What check.html has found in all pages."""
    answers = queue.Queue()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, answers=answers)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        origin = f"http://127.0.0.1:{server.server_port}"
        command = browser_command(tmp_path_factory.mktemp("profile"), f"{origin}/check.html?pages={','.join(pages())}")
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
            try:
                yield answers.get(timeout=200) | {"origin": origin}
            finally:
                browser.terminate()
                server.shutdown()


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
