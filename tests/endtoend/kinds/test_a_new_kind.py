"""A kind of objects that a module declares is in all that goes over kinds, without a line elsewhere."""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

HERE = Path(__file__).parent

COMMAND = "import toys; from vpnrouter.cli.app import main; main()"
"""The command line of a router that has the kinds of this test."""


def environment() -> dict[str, str]:
    """Variables by which Python finds the kinds of this test beside what it finds by itself."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)])}


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `vpnrouter ARGUMENTS` to its end."""
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments],
        check=False,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )


def document(path: Path, **more: Any) -> Path:
    """A configuration with a toy and a game."""
    blue = {
        "toys": {"car": {"password": "wind", **more}},
        "games": {"chess": {"motto": "win"}, "go": None},
    }
    path.write_text(
        yaml.safe_dump(
            {
                "router": {"name": "shop", "data_dir": str(path.parent / "data")},
                "listeners": [{"protocol": "http", "bind": "127.0.0.1:0"}],
                "msg_vpns": {"blue": blue, "red": None},
            }
        ),
        encoding="utf-8",
    )
    return path


class Shop:
    """A running router."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "run", str(path)],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        found = re.search(r"http=(\S+)", self.process.stdout.readline())
        assert found is not None
        self.url = f"http://{found[1]}"

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        """What the API answers."""
        answer = httpx.request(method, self.url + path, json=body, trust_env=False, timeout=60)
        return answer.text if path == "/metrics" else answer.json()

    def until(self, text: str) -> None:
        """Wait for a line of the log."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if text in line:
                return
        raise AssertionError(text)


def opened(path: Path) -> Iterator[Shop]:
    """A router with a toy and two games, until the end."""
    made = Shop(document(path / "shop.yaml"))
    yield made
    made.process.terminate()
    made.process.communicate(timeout=30)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A router that all tests leave as it is."""
    yield from opened(tmp_path_factory.mktemp("shop"))


@pytest.fixture
def other_shop(tmp_path: Path) -> Iterator[Shop]:
    """A router of one test."""
    yield from opened(tmp_path)


def test_reference() -> None:
    """The reference has them, and is itself a configuration."""
    code = "import toys; from vpnrouter.config.reference import reference; print(reference())"
    found = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    loaded = yaml.safe_load(found.stdout)
    vpn = loaded["msg_vpns"]["blue"]
    assert vpn["toys"] == {"car": {"colour": "red", "engine": {"power": 3}}}
    assert vpn["games"] == {"chess": {"fair": True, "players": 2, "motto": "win"}}
    assert "# Toys by name." in found.stdout


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"engine": {"power": 10}}, "msg_vpns.blue.toys.car.engine.power: "),
        ({"color": "red"}, "did you mean colour?"),
        ({"colour": "green"}, "red, blue"),
    ],
)
def test_check(tmp_path: Path, more: Any, text: str) -> None:
    """What is wrong is told with its place."""
    found = command("check", str(document(tmp_path / "shop.yaml", **more)))
    assert found.returncode == 2
    assert text in found.stdout + found.stderr
    assert "wind" not in found.stdout + found.stderr


def test_check_of_what_is_right(tmp_path: Path) -> None:
    """A configuration with them is accepted."""
    found = command("check", str(document(tmp_path / "shop.yaml")))
    assert found.returncode == 0, found.stderr


def test_check_between_objects(tmp_path: Path) -> None:
    """A check of the kind itself is made, and its problem has a place."""
    path = document(tmp_path / "shop.yaml")
    text = path.read_text(encoding="utf-8").replace("toys:\n", "toys:\n      ball: {colour: red}\n")
    path.write_text(text, encoding="utf-8")
    found = command("check", str(path))
    assert found.returncode == 2
    assert "msg_vpns.blue.toys.car.colour: toy ball is red as well" in found.stderr


def test_monitoring(shop: Shop) -> None:
    """The API lists them, and gives one of them; of what does not run it shows what is configured."""
    rows = shop("GET", "/SEMP/v2/monitor/msgVpns/blue/toys")["data"]
    car = {"msgVpnName": "blue", "toyName": "car", "colour": "red", "power": 3, "changedCount": 0}
    assert rows == [car]
    assert shop("GET", "/SEMP/v2/monitor/msgVpns/blue/toys/car")["data"] == car
    assert shop("GET", "/SEMP/v2/monitor/msgVpns/red/toys")["data"] == []
    assert shop("GET", "/vpnrouter/v1/toys?where=toyName==c*")["data"] == [car]
    error = shop("GET", "/SEMP/v2/monitor/msgVpns/blue/toys/x")["meta"]["error"]
    assert error["description"] == "Could not find match for toy x in msgVpn blue"
    assert shop("GET", "/SEMP/v2/monitor/msgVpns/blue/games?select=gameName,motto,players") == {
        **shop("GET", "/SEMP/v2/monitor/msgVpns/blue/games?select=gameName,motto,players"),
        "data": [
            {"gameName": "chess", "motto": "win", "players": 2},
            {"gameName": "go", "motto": "", "players": 2},
        ],
    }
    described = shop("GET", "/SEMP/v2/openapi.json")["paths"]
    assert "/SEMP/v2/monitor/msgVpns/{msgVpnName}/toys/{toyName}" in described


def test_metrics(shop: Shop) -> None:
    """The page of metrics has what the status class declares."""
    text = shop("GET", "/metrics")
    assert "# HELP vpnrouter_toy_watts Its power.\n# TYPE vpnrouter_toy_watts gauge\n" in text
    assert 'vpnrouter_toy_watts{router="shop",msg_vpn="blue",toy="car"} 3\n' in text
    assert 'vpnrouter_metrics_left_out{router="shop",kind="toy"} 0\n' in text
    assert "game" not in text


def test_configuring(shop: Shop) -> None:
    """The API makes them, changes them and deletes them; secrets are never shown."""
    toys = "/SEMP/v2/config/msgVpns/blue/toys"
    made = shop(
        "POST", toys, {"toyName": "ball", "enginePower": 5, "colour": "blue", "password": "secret"}
    )
    assert made["data"] == {
        "msgVpnName": "blue",
        "toyName": "ball",
        "colour": "blue",
        "enginePower": 5,
    }
    changed = shop("PATCH", f"{toys}/ball", {"enginePower": 6})
    assert changed["data"]["enginePower"] == 6
    (ball,) = shop("GET", "/SEMP/v2/monitor/msgVpns/blue/toys?where=toyName==ball")["data"]
    assert (ball["colour"], ball["power"], ball["changedCount"]) == ("blue", 6, 1)
    wrong = shop("PATCH", f"{toys}/ball", {"enginePower": 10})
    assert wrong["meta"]["responseCode"] == 400
    assert "enginePower" in wrong["meta"]["error"]["description"]
    assert shop("DELETE", f"{toys}/ball")["meta"]["responseCode"] == 200
    assert len(shop("GET", toys)["data"]) == 1


def test_reload(other_shop: Shop) -> None:
    """A change of the file is told with its effect, and reaches what runs."""
    document(other_shop.path, engine={"power": 4})
    other_shop.process.send_signal(signal.SIGHUP)
    other_shop.until("msg_vpns.blue.toys.car.engine.power: 3 -> 4 (at once)")
    (car,) = other_shop("GET", "/vpnrouter/v1/toys")["data"]
    assert (car["power"], car["changedCount"]) == (4, 1)


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (("toys",), ["Toy  Msg vpn  Colour  Power  Changed count", "car  blue     red         3"]),
        (("games", "go"), ["Game  Msg vpn  Fair  Players  Motto", "go    blue     yes         2"]),
        (("toys", "--detail"), ["toy car in message VPN blue", "changed count  0"]),
    ],
)
def test_show(shop: Shop, arguments: tuple[str, ...], lines: list[str]) -> None:
    """`show` prints them, and completes their names."""
    found = command("show", *arguments, "--url", shop.url)
    assert found.returncode == 0, found.stderr
    printed = [" ".join(line.split()) for line in found.stdout.splitlines()]
    for line in lines:
        wanted = " ".join(line.split())
        assert any(each.startswith(wanted) for each in printed), found.stdout


def test_show_json(shop: Shop) -> None:
    """With --json it prints all attributes."""
    found = command("show", "toys", "--json", "--url", shop.url)
    assert '"toyName": "car"' in found.stdout
    missing = command("show", "toys", "boat", "--url", shop.url)
    assert missing.returncode == 1
    assert "there is no toy boat; there are: car" in missing.stderr


def test_screen(shop: Shop, tmp_path: Path) -> None:
    """The screens have a key for them, and show them."""
    program = shutil.which("tmux")
    if program is None:
        pytest.skip("tmux is not installed: apt-get install tmux")
    place = HERE.parents[1] / "tui" / "terminal.py"
    spec = importlib.util.spec_from_file_location("kinds_terminal", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.Terminal(program, tmp_path, environment()) as terminal:
        terminal.run(sys.executable, "-c", COMMAND, "tui", "--url", shop.url)
        terminal.shows("shop")
        terminal.press("o")
        terminal.shows("1 toy", "2 games", "Changed count", "car", "chess", "win")
        terminal.press("q")
