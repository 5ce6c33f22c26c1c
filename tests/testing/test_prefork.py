"""Forks of a process that has loaded everything are processes like others: arguments, environment, streams, end."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import vpnrouter
from vpnrouter.testing.prefork import ForkedRouter, Prefork


@pytest.fixture(scope="module")
def prefork() -> Iterator[Prefork]:
    """One for all tests of this file."""
    with Prefork({**os.environ, "PYTHONPATH": str(Path(vpnrouter.__file__).parents[1])}) as made:
        yield made


def told(process: ForkedRouter) -> tuple[str, str]:
    """What it said in its life."""
    with process.stdout as out, process.stderr as err:
        return out.read(), err.read()


def test_arguments(prefork: Prefork) -> None:
    """It is `vpnrouter` with these arguments, and ends with its exit code."""
    process = prefork.popen(["--version"], env=os.environ)
    out, err = told(process)
    assert vpnrouter.__version__ in out
    assert (process.wait(20), err) == (0, "")
    assert process.poll() == 0


def test_directory_and_environment(prefork: Prefork, tmp_path: Path) -> None:
    """Each has its own, and leaves that of the next one alone."""
    (tmp_path / "edge.yaml").write_text("nonsense: 1\n", encoding="utf-8")
    process = prefork.popen(["check", "edge.yaml"], env=os.environ, cwd=tmp_path)
    out, err = told(process)
    assert "nonsense" in out + err
    assert process.wait(20) == 2
    text = "router: {name: edge}\nmsg_vpns: {blue: {}}\n"
    (tmp_path / "edge.yaml").write_text(text, encoding="utf-8")
    env = {**os.environ, "VPNROUTER_FAULT": "nowhere"}
    process = prefork.popen(["run", "edge.yaml"], env=env, cwd=tmp_path)
    assert "points are" in told(process)[1]
    assert process.wait(20) == 1


def test_signals(prefork: Prefork, tmp_path: Path) -> None:
    """A killed one is a killed one; the others go on."""
    text = "router: {name: NAME, data_dir: NAME}\nmsg_vpns: {blue: {}}\n"
    routers = []
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(text.replace("NAME", name), encoding="utf-8")
        routers.append(prefork.popen(["run", f"{name}.yaml"], env=os.environ, cwd=tmp_path))
    one, two = routers
    assert [each.stdout.readline() for each in routers] == [
        "ready router=one\n",
        "ready router=two\n",
    ]
    with pytest.raises(subprocess.TimeoutExpired):
        two.wait(0)
    one.kill()
    assert one.wait(20) == -signal.SIGKILL
    one.kill()
    assert two.poll() is None
    two.send_signal(signal.SIGTERM)
    assert two.wait(20) == 0
    for each in routers:
        told(each)
