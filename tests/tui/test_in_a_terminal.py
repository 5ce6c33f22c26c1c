"""The terminal interface as a person has it: a process in a terminal, on a real router."""

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vpnrouter

CONFIG = """\
router: {{name: edge, data_dir: {folder}/data}}
listeners:
  - {{protocol: http, bind: "127.0.0.1:{port}"}}
  - {{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}}
msg_vpns:
  blue: {{}}
  green: {{}}
"""


@pytest.fixture(scope="module")
def terminals() -> Any:
    """The module terminal.py."""
    place = Path(__file__).with_name("terminal.py")
    spec = importlib.util.spec_from_file_location("tui_terminal", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if module.tmux() is None:
        pytest.skip("tmux is not installed: apt-get install tmux")
    return module


def command() -> list[str]:
    """How to call `vpnrouter` from this interpreter."""
    return [sys.executable, "-c", "from vpnrouter.cli.app import main; main()"]


def environment() -> dict[str, str]:
    """The very build that these tests import."""
    return dict(os.environ) | {"PYTHONPATH": str(Path(vpnrouter.__file__).parents[1])}


def started(folder: Path, port: int) -> tuple[Any, int]:
    """A router as a process of its own, and its port."""
    config = folder / "edge.yaml"
    config.write_text(CONFIG.format(folder=folder, port=port), encoding="utf-8")
    process = subprocess.Popen(
        [*command(), "run", str(config)], stdout=subprocess.PIPE, text=True, env=environment()
    )
    assert process.stdout is not None
    ready = process.stdout.readline()
    assert ready.startswith("ready "), ready
    (place,) = [word for word in ready.split() if word.startswith("http=")]
    return process, int(place.rpartition(":")[2])


@pytest.fixture
def router(tmp_path: Path) -> Iterator[list[Any]]:
    """A running router: its process, which a test may replace, and its port."""
    running = list(started(tmp_path, 0))
    yield running
    running[0].kill()
    running[0].wait(30)
    running[0].stdout.close()


def test_on_a_real_router(terminals: Any, router: list[Any], tmp_path: Path) -> None:
    """Message VPNs, keys, a router that goes and comes back, and a clean terminal at the end."""
    process, port = router
    with terminals.Terminal(terminals.tmux(), tmp_path, environment()) as terminal:
        terminal.press("echo before", "Enter")
        terminal.shows("before")
        terminal.run(*command(), "tui", "--url", f"http://127.0.0.1:{port}")
        screen = terminal.shows("blue", "green", "no trouble: all is up", " edge  ")
        assert len(screen.splitlines()) == 24
        assert terminal.fact("alternate_on") == "1"
        terminal.press("3")
        terminal.shows("overview › queues", "no queues")
        terminal.press("0")
        terminal.shows("overview › connectors", "no connectors")
        terminal.press("3")
        terminal.press("?")
        terminal.shows("the next of the usual filters")
        terminal.press("Escape")
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        terminal.shows("LOST since", "next try in")
        process.stdout.close()
        router[0], _ = started(tmp_path, port)
        terminal.press("1", "r")
        terminal.shows("no trouble: all is up", "blue", without="LOST")
        terminal.press("q")
        terminal.shows("before", without="overview")
        terminal.press("echo after", "Enter")
        terminal.shows("after")
        terminal.shows("before", "after")
        assert terminal.fact("alternate_on") == "0"
        assert terminal.fact("cursor_flag") == "1"
