"""A headless Chromium driven over its DevTools pipe: no ports, no driver to install.

The pipe's messages are JSON objects, each ended by a zero byte; Chromium reads from its file
descriptor 3 and writes to 4 (https://chromedevtools.github.io/devtools-protocol/).
"""

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

PATIENCE_S: Final = 60.0
"""How long one answer may take."""

COMPLAINTS: Final = {"error", "warning", "assert"}


def chromium() -> str | None:
    """Path of a Chromium here, None where there is none."""
    return shutil.which("chromium") or shutil.which("google-chrome")


class Browser:
    """One Chromium with one page, without any network.

    `complaints` are errors and warnings of the console, exceptions and breaches of the page's policy;
    `requests` are the addresses that the page tried to load.
    """

    def __init__(self, program: str, folder: Path, width: int = 1400, height: int = 900) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._width, self._height = width, height
        self._count = 0
        self._buffer = b""
        self._session: str | None = None
        self._log = folder / "chromium.log"
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # Above 4, so that neither is overwritten before it is put in its place.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out)]
        command = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--remote-debugging-pipe", "--disable-background-networking", "--disable-sync",
            "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
            "--host-resolver-rules=MAP * ~NOTFOUND", f"--window-size={width},{height}",
            f"--user-data-dir={folder / 'profile'}", "about:blank",
        ]  # fmt: skip
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._pid = os.posix_spawn(
            program,
            command,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, str(self._log), flags, 0o600),
                (os.POSIX_SPAWN_DUP2, ends[0], 3),
                (os.POSIX_SPAWN_DUP2, ends[1], 4),
            ],
            # A group of its own: all its processes end with it.
            setpgroup=0,
        )
        for end in (theirs_in, theirs_out, *ends):
            os.close(end)

    def __enter__(self) -> Self:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Network.emulateNetworkConditions",
            offline=True,
            latency=0,
            downloadThroughput=0,
            uploadThroughput=0,
        )
        self.resize(self._width, self._height)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._in)
        os.close(self._out)

    def forget(self) -> None:
        """Leave the page and whatever it complained of."""
        self.call("Page.navigate", url="about:blank")
        self.colours("light")
        self.complaints.clear()
        self.requests.clear()

    def resize(self, width: int, height: int) -> None:
        """Make the window so many pixels large."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def colours(self, scheme: str) -> None:
        """Prefer "light" or "dark"."""
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def open(self, address: str) -> None:
        """Load a page and wait until it is drawn."""
        self.call("Page.navigate", url=address)
        deadline = time.monotonic() + PATIENCE_S
        while self.run("document.readyState + location.href.slice(0, 5)") != "completefile:":
            assert time.monotonic() < deadline, f"{address} does not open"
        self.settle()

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, expression: str) -> Any:
        """The value of an expression; promises are awaited."""
        done = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def point(self, kind: str, x: float, y: float, **more: Any) -> None:
        """A mouse event of DevTools: mouseMoved, mousePressed, mouseReleased, mouseWheel."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        """A real click at a place of the window."""
        self.point("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.point(kind, x, y, button="left", clickCount=1)
        self.settle()

    def press(self, key: str) -> None:
        """A key, by its name: "Enter", "a"."""
        more = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = {"Enter": 13}.get(key, 0)
        self.call(
            "Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **more
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)
        self.settle()

    def picture(self, path: Path, *, whole: bool = False) -> bytes:
        """A PNG of the window, or of the whole page, written to `path`."""
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))
        return path.read_bytes()

    def paper(self, path: Path) -> bytes:
        """The page printed to a PDF, written to `path`."""
        printed = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(printed["data"]))
        return path.read_bytes()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and wait for its answer; what else arrives is noted."""
        self._count += 1
        asked: dict[str, Any] = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            asked["sessionId"] = self._session
        os.write(self._out, json.dumps(asked).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE_S
        while True:
            heard = self._next(deadline, method)
            if heard.get("id") == self._count:
                assert "error" not in heard, f"{method}: {heard['error']}"
                answer: dict[str, Any] = heard["result"]
                return answer
            self._note(heard)

    def _next(self, deadline: float, method: str) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(deadline - time.monotonic(), 0))
            arrived = os.read(self._in, 1 << 20) if ready else b""
            assert arrived, f"no answer to {method}; Chromium said: {self._said()}"
            self._buffer += arrived
        text, _, self._buffer = self._buffer.partition(b"\0")
        heard: dict[str, Any] = json.loads(text)
        return heard

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-2_000:] if self._log.exists() else "nothing"

    def _note(self, heard: dict[str, Any]) -> None:
        params = heard.get("params", {})
        match heard.get("method"):
            case "Runtime.consoleAPICalled" if params["type"] in COMPLAINTS:
                self.complaints.append(str(params["args"]))
            case "Runtime.exceptionThrown":
                self.complaints.append(str(params["exceptionDetails"]))
            case "Log.entryAdded" if params["entry"]["level"] in COMPLAINTS:
                self.complaints.append(params["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
