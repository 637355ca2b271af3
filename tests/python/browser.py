# SPDX-License-Identifier: Apache-2.0
"""A Chromium that a test drives through its DevTools protocol."""

import asyncio
import base64
import contextlib
import json
import os
import shutil
import subprocess
import time
import urllib.request

import pytest
import tornado.websocket

PATIENCE = 60  # seconds


class Tab:
    """One page. `run` evaluates JavaScript; `wait_for` polls an expression until it is true."""

    def __init__(self, address):
        self._loop = asyncio.new_event_loop()
        self._socket = self._loop.run_until_complete(self._connect(address))
        self._count = 0

    async def _connect(self, address):
        return await tornado.websocket.websocket_connect(address, max_message_size=1 << 28)

    def call(self, method, **parameters):
        """Call a method of the protocol, and return its result."""
        return self._loop.run_until_complete(asyncio.wait_for(self._call(method, parameters), PATIENCE))

    async def _call(self, method, parameters):
        self._count += 1
        await self._socket.write_message(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while True:
            answer = json.loads(await self._socket.read_message())
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]

    def run(self, script):
        """Return the value of an expression, of which a promise is awaited."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait_for(self, script):
        """Return the first value of an expression that is true."""
        end = time.monotonic() + PATIENCE
        while not (value := self.run(script)):
            assert time.monotonic() < end, f"never true: {script}\n{self.run('document.body.innerText')}"
            time.sleep(0.05)
        return value

    def open(self, address):
        """Go to an address."""
        self.call("Page.navigate", url=address)
        self.wait_for("document.readyState === 'complete'")

    def look(self, width, height, scheme="light"):
        """Set the window's size and the preferred colours."""
        mobile = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self):
        """Return a screenshot, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])


def command(profile, *arguments):
    """Return the command that runs Chromium."""
    program = shutil.which("chromium")
    if not program:
        pytest.skip("there is no chromium: make setup installs Debian's, and Ubuntu has it only as a snap")
    # Chromium has no sandbox for root.
    sandbox = ["--no-sandbox"] if os.getuid() == 0 else []
    return [program, "--headless", "--disable-gpu", f"--user-data-dir={profile}", *sandbox, *arguments]


@contextlib.contextmanager
def opened(profile):
    """Run Chromium; gives a tab."""
    arguments = command(profile, "--remote-debugging-port=0", "about:blank")
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield Tab(_address(profile, process))
        finally:
            process.terminate()


def _address(profile, process):
    """Return the address of Chromium's first page."""
    ports = profile / "DevToolsActivePort"
    end = time.monotonic() + PATIENCE
    while not (ports.exists() and "\n" in ports.read_text()):
        assert process.poll() is None, "Chromium has ended"
        assert time.monotonic() < end, "Chromium does not listen"
        time.sleep(0.05)
    with urllib.request.urlopen(f"http://127.0.0.1:{ports.read_text().split()[0]}/json") as answer:
        pages = [page for page in json.load(answer) if page["type"] == "page"]
    return pages[0]["webSocketDebuggerUrl"]
