"""The programs of docs/amqp.md, as they stand there, against the configuration that the page names.

Ports alone are others: 5672 is the router's, or, where a program names a stand-by at 5673, nobody's.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
PEERS = ROOT / ".peers"
PATIENCE_S = 120
PROGRAM = re.compile(r"^```\w+\n((?://|#) (\S+)\n.*?)^```$", re.MULTILINE | re.DOTALL)
"""A program of the page: its first line is a comment with the name of its file."""

PROGRAMS = {
    found[2]: found[1] for found in PROGRAM.finditer((ROOT / "docs/amqp.md").read_text("utf-8"))
}

LIBRARIES = {
    "Till.java": "jms/lib",
    "Billing.java": "jms/lib",
    "Prices.java": "jms/lib",
    "Answers.java": "jms/lib",
    "Orders.java": "spring/lib",
    "Route.java": "spring/lib",
    "orders.py": "proton",
    "orders.js": "rhea/node_modules",
    "orders.go": "go",
}
"""What each needs of what `.ci/peers` has installed."""


class Shop:
    """The router of configs/jms.yaml, and a folder for the programs."""

    def __init__(self, router: Any, nobody: int, folder: Path) -> None:
        self.router = router
        self.nobody = nobody
        self.folder = folder

    def place(self, name: str) -> Path:
        """Write a program of the page to a file."""
        text = PROGRAMS[name]
        own = str(self.router.port("amqp"))
        if "5673" in text:
            text = text.replace("5672", str(self.nobody)).replace("5673", own)
        else:
            text = text.replace("5672", own)
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def run(self, name: str, *words: str) -> list[str]:
        """Run a program to its end, which has to be a good one; the lines that it printed."""
        needs = PEERS / LIBRARIES[name]
        if not needs.exists():
            pytest.skip(f"{needs} is missing: run .ci/peers")
        done = self._ended(*self._command(self.place(name), needs), *words)
        return done.splitlines()

    def _command(self, path: Path, needs: Path) -> list[str]:
        if path.suffix == ".py":
            return [str(needs / "bin/python"), str(path)]
        if path.suffix == ".js":
            (self.folder / "node_modules").symlink_to(needs)
            return ["node", str(path)]
        if path.suffix == ".go":
            for file in ("go.mod", "go.sum"):
                shutil.copy(needs / file, self.folder)
            self._ended("go", "build", "-o", "orders", path.name)
            return [str(self.folder / "orders")]
        classes = f"{self.folder}:{needs}/*"
        self._ended("javac", "-cp", classes, "-d", str(self.folder), str(path))
        return ["java", "-cp", classes, path.stem]

    def _ended(self, *command: str) -> str:
        if shutil.which(command[0]) is None:
            pytest.skip(f"{command[0]} is missing, by which .ci/peers has made what is in {PEERS}")
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            cwd=self.folder,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr[-3_000:])
        return done.stdout

    def till(self, paho: Any) -> Any:
        """An MQTT client of a till."""
        return paho(self.router.port("mqtt"), "till 7", login=("till", "change-me"))

    def held(self, **counts: int) -> None:
        """Wait until queues hold so many messages."""
        for name, count in counts.items():
            self.router.holds("shop", name, count)


@pytest.fixture
def shop(router_process: Any, free_port: Any, tmp_path: Path) -> Iterator[Shop]:
    """The router of configs/jms.yaml, on ports that are free."""
    text = (ROOT / "configs/jms.yaml").read_text(encoding="utf-8")
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:0", text)
    path = tmp_path / "jms.yaml"
    path.write_text(text.replace("./data/jms", str(tmp_path / "data")), encoding="utf-8")
    folder = tmp_path / "programs"
    folder.mkdir()
    router = router_process(path)
    yield Shop(router, free_port(), folder)
    router.kill()


def properties(**given: Any) -> Properties:
    """Properties of a PUBLISH."""
    made = Properties(PacketTypes.PUBLISH)
    for name, value in given.items():
        setattr(made, name, value)
    return made


def test_every_program_is_run() -> None:
    """The page has no program that is not run here."""
    assert {*PROGRAMS} == {*LIBRARIES, "jndi.properties"}


def test_till_and_billing(shop: Shop) -> None:
    """JNDI, fail-over and a transaction."""
    shop.place("jndi.properties")
    assert shop.run("Till.java") == []
    shop.held(orders=1)
    assert shop.run("Billing.java") == ["billed two apples"]
    shop.held(orders=0, invoices=1)


def test_durable_subscription(shop: Shop, paho: Any) -> None:
    """What came while the client was away, of Till.java too, as far as its selector takes it, and none once it has
    unsubscribed.
    """
    assert shop.run("Prices.java") == []
    shop.place("jndi.properties")
    assert shop.run("Till.java") == []
    mqtt = shop.till(paho)
    for currency, price in (("EUR", "0.50"), ("CHF", "0.45")):
        said = properties(UserProperty=("currency", currency), PayloadFormatIndicator=1)
        mqtt.client.publish("prices/apples", price, 1, properties=said).wait_for_publish(PATIENCE_S)
    assert shop.run("Prices.java", "end") == ["prices/apples 0.40", "prices/apples 0.50"]
    held = shop.router.api().subscriptions("shop")
    assert [row for row in held if row["subscriptionTopic"] == "prices/>"] == []


def test_answers(shop: Shop, paho: Any) -> None:
    """A JMS service answers a request of MQTT 5 at its Response Topic."""
    mqtt = shop.till(paho)
    mqtt.subscribe("answers/7", 1)
    said = properties(ResponseTopic="answers/7", CorrelationData=b"c 1")
    mqtt.client.publish("orders/1", "two apples", 1, properties=said).wait_for_publish(PATIENCE_S)
    assert shop.run("Answers.java") == ["orders/1 answered to answers/7"]
    assert mqtt.next() == ("answers/7", b"accepted")


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("Orders.java", ["billed two apples"]),
        ("Route.java", ["invoice for two apples"]),
    ],
)
def test_containers(shop: Shop, name: str, lines: list[str]) -> None:
    """A listener of Spring and a route of Camel bill an order in one transaction."""
    assert shop.run(name) == lines
    shop.held(orders=0, invoices=1 if name == "Orders.java" else 0)


@pytest.mark.parametrize("name", ["orders.py", "orders.js", "orders.go"])
def test_clients_without_jms(shop: Shop, name: str) -> None:
    """Each sends an order and consumes it."""
    assert shop.run(name) == ["two apples"]
    shop.held(orders=0)
