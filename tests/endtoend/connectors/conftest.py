"""A router with a connector, and the broker that it leads to: another router, seen as a foreign MQTT broker."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

OPEN = {"authentication": {"basic": {"enabled": False}}, "max_msg_spool_usage": 100}


class Sites:
    """`here` has the connector `there`, which leads to the router `there`."""

    def __init__(self, start: Any, port: int, patiently: Any, path: Path) -> None:
        self._start = start
        self._patiently = patiently
        self.port = port
        self.path = path
        self.here: Any = None
        self.there: Any = None

    def provide(self, scheme: str = "mqtt", **more: Any) -> Any:
        """Start the broker, on the port that the connector knows; it speaks MQTT too."""
        others = [] if scheme == "mqtt" else [("mqtt", 0)]
        document = {
            "listeners": [
                *(
                    {"protocol": protocol, "bind": f"127.0.0.1:{port}", "msg_vpn": "red"}
                    for protocol, port in [(scheme, self.port), *others]
                ),
                {"protocol": "http", "bind": "127.0.0.1:0"},
            ],
            "msg_vpns": {"red": {**OPEN, **more}},
        }
        self.there = self._start(yaml.safe_dump(document), "there")
        return self.there

    def connect(
        self, links: dict[str, Any], wait: bool = True, queues: Any = None, **provider: Any
    ) -> Any:
        """Start the router with the connector; with `wait` it is up."""
        self.here = self._start(self.text(links, queues, **provider), "here")
        if wait:
            self.state("up")
        return self.here

    def text(
        self,
        links: dict[str, Any],
        queues: Any = None,
        name: str = "there",
        vpn: Any = None,
        **provider: Any,
    ) -> str:
        """The configuration of the router with the connector, without its name; `vpn` is more of its message VPN."""
        url = f"mqtt://127.0.0.1:{self.port}"
        connector = {
            "provider": {"url": url, "connect": {"retry_delay": 0}, "keepalive": 5, **provider},
            "links": links,
        }
        blue = {**OPEN, "queues": queues or {}, "connectors": {name: connector}, **(vpn or {})}
        document = {
            "listeners": [
                {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "blue"},
                {"protocol": "http", "bind": "127.0.0.1:0"},
            ],
            "msg_vpns": {"blue": blue},
        }
        return yaml.safe_dump(document)

    def change(self, links: dict[str, Any], **more: Any) -> None:
        """Let the router with the connector read another configuration."""
        head = self.path.read_text(encoding="utf-8").splitlines()[0]
        self.path.write_text(f"{head}\n{self.text(links, **more)}", encoding="utf-8")
        self.here.process.send_signal(1)

    def row(self) -> dict[str, Any]:
        """The connector as the API shows it."""
        (row,) = self.here.api().connectors("blue")
        return dict(row)

    @staticmethod
    def refusal(address: str) -> str:
        """What is told of a link whose QoS 2 is granted as QoS 1."""
        return f"the provider grants QoS 1 for {address}, less than its quality of service needs"

    def until_link(self, name: str, **attributes: Any) -> None:
        """Wait until a link has these attributes."""

        def is_so() -> bool:
            found = {row["linkName"]: row for row in self.row()["links"]}
            return name in found and all(found[name][key] == attributes[key] for key in attributes)

        self._patiently(is_so, f"link {name} with {attributes}")

    def until_links(self, *names: str) -> None:
        """Wait until the connector has these links."""

        def is_so() -> bool:
            return [row["linkName"] for row in self.row()["links"]] == list(names)

        self._patiently(is_so, f"links {names}")

    def until_failure(self, text: str) -> None:
        """Wait until the connector has failed for this reason."""
        self._patiently(lambda: text in self.row()["failure"], text)

    def state(self, state: str, **attributes: Any) -> dict[str, Any]:
        """Wait until the connector is in a state, and return it."""
        wanted = {"state": state, **attributes}

        def is_so() -> bool:
            row = self.row()
            return all(row[key] == value for key, value in wanted.items())

        self._patiently(is_so, f"connector with {wanted}")
        return self.row()


@pytest.fixture
def sites(start: Any, free_port: Callable[[], int], patiently: Any, tmp_path: Path) -> Sites:
    """A router to connect, and a broker, neither of which is started."""
    return Sites(start, free_port(), patiently, tmp_path / "here.yaml")
