"""Listener containers of Spring and a route of Camel, while the router is killed and comes again on its data folder.

Nothing that was acknowledged to a producer is lost, and what comes again says so. The short form runs always;
`VPNROUTER_LONG=1` kills 20 times for each kind.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.peers]

LONG: Final = bool(os.environ.get("VPNROUTER_LONG"))

KILLS: Final = 20 if LONG else 3
PASSED: Final = 200
"""Messages that come between two kills, at least."""

KINDS: Final = ("transacted", "client", "auto", "alone", "camel")
"""Kinds of containers, and a route of Camel."""

PEERS = Path(__file__).resolve().parents[3] / ".peers" / "spring"
ACCOUNT = re.compile(r"account (\d+) lost (\d+) silent (\d+) marked (\d+) (.*)")

CONFIG = """
router: {{name: edge, data_dir: data}}
listeners:
  - {{protocol: amqp, bind: "127.0.0.1:{port}", msg_vpn: blue}}
  - {{protocol: http, bind: "127.0.0.1:0"}}
msg_vpns:
  blue:
    authentication: {{basic: {{enabled: false}}}}
    queues:
      work: {{access_type: non-exclusive}}
      done: {{access_type: non-exclusive}}
      "#DEAD_MSG_QUEUE": {{}}
"""


class Soak:
    """The program Soak against the router at `port`; `acknowledged` and `came` are what it said last."""

    def __init__(self, port: int, kind: str, errors: Path) -> None:
        if not (PEERS / "done").exists():
            pytest.skip(f"{PEERS} is missing: run .ci/peers")
        self.acknowledged = self.came = 0
        self.last = ""
        self._errors = errors
        classes = f"{PEERS}:{PEERS}/lib/*"
        with errors.open("w", encoding="utf-8") as file:
            self.process = subprocess.Popen(
                ["java", "-cp", classes, "Soak", f"amqp://127.0.0.1:{port}", kind],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            words = line.split()
            if words[0] == "at":
                self.acknowledged, self.came = int(words[1]), int(words[2])
            self.last = line

    def finish(self, patiently: Any) -> str:
        """Stop the producers, and wait until all has come; the account."""
        assert self.process.stdin is not None
        self.process.stdin.write("stop\n")
        self.process.stdin.close()
        patiently(lambda: self.process.poll() is not None, f"the end of {self.last}")
        code = self.process.returncode
        self._thread.join(60)
        assert code == 0, self._errors.read_text(encoding="utf-8")[-3_000:]
        return self.last

    def end(self) -> None:
        """End it whatever it does."""
        self.process.kill()
        self._thread.join(60)
        with self.process:
            """Its pipes are closed."""


@pytest.fixture
def soak(request: pytest.FixtureRequest, port: int, tmp_path: Path) -> Iterator[Soak]:
    """The program, of the kind that the test names."""
    made = Soak(port, request.param, tmp_path / "errors")
    yield made
    made.end()


@pytest.fixture
def port(free_port: Any) -> int:
    """The port of the router in all its lives."""
    return int(free_port())


@pytest.mark.parametrize("soak", KINDS, indirect=True)
def test_kills(soak: Soak, port: int, router_process: Any, patiently: Any, tmp_path: Path) -> None:
    """Each kind of container, with producers that send one by one and in transactions."""
    path = tmp_path / "edge.yaml"
    path.write_text(CONFIG.format(port=port), encoding="utf-8")
    router = router_process(path)
    try:
        for _ in range(KILLS):
            acknowledged, came = soak.acknowledged + PASSED, soak.came + PASSED
            patiently(
                lambda: soak.acknowledged > acknowledged and soak.came > came,  # noqa: B023
                "messages pass",
            )
            # Moments are drawn, not the seed's: where the router is at them is not known anyway.
            time.sleep(random.uniform(0.0, 0.2))
            router.kill()
            router = router_process(path)
        account = soak.finish(patiently)
        found = ACCOUNT.match(account)
        assert found, account
        assert found.group(2, 3) == ("0", "0"), account
        assert int(found[1]) > KILLS * PASSED
        # Some did come again, so that there was something to be marked.
        assert int(found[4]) > 0, account
        for name in ("work", "done", "#DEAD_MSG_QUEUE"):
            assert router.queue("blue", name)["msgCount"] == 0
    finally:
        router.kill()
