"""What a mesh file would change at its routers."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from vpnrouter.config.diff import changes
from vpnrouter.config.effects import describe
from vpnrouter.config.load import combine
from vpnrouter.config.parse import parse
from vpnrouter.config.problem import Problem
from vpnrouter.config.router import RouterConfig
from vpnrouter.errors import OperationError
from vpnrouter.plan.compare import RouterPlan, compare_all
from vpnrouter.plan.mesh_file import read_mesh
from vpnrouter.plan.risks import effect_name

EDGE = """
router: {name: edge}
listeners: [{protocol: link, bind: "127.0.0.1:55555"}]
msg_vpns:
  blue:
    queues: {old: {max_msg_spool_usage: 7}}
    client_usernames: {ann: {password: pw}}
  other: {}
"""


class Fake:
    """A router that compares documents as routers do, and stands still."""

    def __init__(self, text: str) -> None:
        self.document: Any = yaml.safe_load(text)
        self.name = "edge"
        self.rows: dict[str, list[Any]] = {
            "msg_vpns": [],
            "bridges": [],
            "queues": [],
            "connectors": [],
        }
        self.examined: list[Any] = []

    def config(self) -> Any:
        return {"routerName": self.name, "digest": "d", "document": deepcopy(self.document)}

    def examine(self, document: Any) -> Any:
        self.examined.append(deepcopy(document))
        problems: list[Problem] = []
        after = self._config(document, problems)
        before = self._config(self.document, [])
        assert before is not None
        found = [] if after is None else changes(before, after)
        return {
            "problems": [
                {
                    "severity": problem.severity,
                    "file": problem.position.file,
                    "line": problem.position.line,
                    "column": problem.position.column,
                    "message": problem.message,
                }
                for problem in problems
            ],
            "changes": [
                {
                    "path": [str(step) for step in change.path],
                    "text": describe(change),
                    "effect": effect_name(change.kind),
                }
                for change in found
            ],
            "digest": "d",
        }

    @staticmethod
    def _config(document: Any, problems: list[Problem]) -> RouterConfig | None:
        parsed = parse(yaml.safe_dump(document).encode(), "live", problems)
        assert parsed is not None
        loaded = combine(parsed, None, {}, problems)
        return None if loaded is None else loaded.config

    def replace_config(self, document: Any, expected: str) -> Any:
        raise AssertionError((document, expected))

    def return_config(self, digest: str) -> Any:
        raise AssertionError(digest)

    def msg_vpns(self) -> list[Any]:
        return self.rows["msg_vpns"]

    def connectors(self) -> list[Any]:
        return self.rows["connectors"]

    def bridges(self) -> list[Any]:
        return self.rows["bridges"]

    def queues(self) -> list[Any]:
        return self.rows["queues"]


@pytest.fixture
def router() -> Fake:
    """The router "edge"."""
    return Fake(EDGE)


def plan(tmp_path: Path, router: Fake, config: str, *, prune: bool = False) -> RouterPlan:
    """The plan for a router of this configuration."""
    (tmp_path / "edge.yaml").write_text(config)
    mesh = tmp_path / "mesh.yaml"
    mesh.write_text("routers: {edge: {url: 'http://h:1', config: edge.yaml}}\n")
    read = read_mesh(str(mesh))
    assert read.errors == []
    (found,) = compare_all(read.routers, {"edge": router}, prune=prune)
    return found


def texts(found: RouterPlan) -> list[str]:
    """What changes."""
    return [row["text"] for row in found.changes]


def test_a_router_that_is_as_the_file_says(tmp_path: Path, router: Fake) -> None:
    """Nothing to do."""
    found = plan(tmp_path, router, EDGE)
    assert found.is_same
    assert found.steps == ()


def test_what_differs(tmp_path: Path, router: Fake) -> None:
    """Changes in words, what they cost, and the steps there."""
    router.rows["queues"] = [{"msgVpnName": "blue", "queueName": "old", "msgCount": 5}]
    found = plan(tmp_path, router, EDGE.replace("old:", "new:"))
    assert texts(found) == [
        "msg_vpns.blue.queues.old: removed",
        "msg_vpns.blue.queues.new: added",
    ]
    assert [risk.text for risk in found.risks] == ["5 messages in blue/old"]
    assert [step.name for step in found.steps] == ["grow", "trim"]
    assert set(found.steps[0].document["msg_vpns"]["blue"]["queues"]) == {"old", "new"}
    assert set(found.steps[-1].document["msg_vpns"]["blue"]["queues"]) == {"new"}
    assert found.as_dict()["risks"] == [{"kind": "loses", "text": "5 messages in blue/old"}]


def test_what_the_file_does_not_name_stays(tmp_path: Path, router: Fake) -> None:
    """Other blocks always, other message VPNs unless they are to go."""
    asked = "msg_vpns: {blue: {queues: {old: {max_msg_spool_usage: 7}}, client_usernames: {ann: {password: pw}}}}"
    found = plan(tmp_path, router, asked)
    assert found.is_same
    assert found.unnamed == ("other",)
    found = plan(tmp_path, router, asked, prune=True)
    assert texts(found) == ["msg_vpns.other: removed"]


def test_what_needs_a_restart_is_told_and_left(tmp_path: Path, router: Fake) -> None:
    """The rest of the file is still applied."""
    found = plan(
        tmp_path,
        router,
        EDGE.replace("{name: edge}", "{name: edge, data_dir: /elsewhere}").replace("7}", "8}"),
    )
    assert len(found.restart) == 1
    assert "data_dir" in found.restart[0]
    assert not found.is_same
    assert len(texts(found)) == 1
    assert found.steps[-1].document["router"] == {"name": "edge"}


def test_another_router_is_not_planned_for(tmp_path: Path, router: Fake) -> None:
    """A mistaken address must not change somebody else."""
    router.name = "core"
    with pytest.raises(OperationError, match="is router core"):
        plan(tmp_path, router, EDGE)


def test_a_step_that_would_be_refused_is_told_before_it_is_made(
    tmp_path: Path, router: Fake
) -> None:
    """Each document on the way is examined."""
    plan(tmp_path, router, EDGE.replace("old:", "new:"))
    assert [set(each["msg_vpns"]["blue"]["queues"]) for each in router.examined] == [
        {"new"},
        {"old", "new"},
    ]


def test_what_the_router_refuses(tmp_path: Path, router: Fake) -> None:
    """Its own problems are told, and there is no way there."""

    def refuse(document: Any) -> Any:
        return {
            "problems": [
                {"severity": "error", "file": "f", "line": 1, "column": 2, "message": "no"}
            ],
            "changes": [],
            "digest": "d",
        }

    router.examine = refuse  # type: ignore[method-assign]
    found = plan(tmp_path, router, EDGE.replace("7}", "8}"))
    assert found.problems == ("f:1:2: no",)
    assert found.steps == ()


BRIDGED = """
router: {name: edge}
msg_vpns:
  blue:
    bridges:
      up: &bridge
        remote_msg_vpns: [{name: red, location: "192.0.2.1:1"}]
        remote_authentication: {basic: {client_username: u, password: p}}
        remote_subscriptions: [{topic: a, deliver_always_enabled: true}]
      down: *bridge
      new: *bridge
      away: {<<: *bridge, enabled: false}
"""


def test_bridges_that_have_to_be_up_afterwards(tmp_path: Path, router: Fake) -> None:
    """Those that are up and those that are new; not one that is down already."""
    router.rows["bridges"] = [
        {"msgVpnName": "blue", "bridgeName": name, "health": name} for name in ("up", "down")
    ]
    found = plan(tmp_path, router, BRIDGED)
    assert found.bridges == (("blue", "up"), ("blue", "new"))


CONNECTORS = """
    connectors:
      up: {provider: {url: "mqtt://h"}, links: {l: {source: {address: a}}}}
      down: {provider: {url: "mqtt://h"}, links: {l: {source: {address: b}}}}
      new: {provider: {url: "mqtt://h"}, links: {l: {source: {address: c}}}}
      away: {enabled: false, provider: {url: "mqtt://h"}, links: {l: {source: {address: d}}}}
"""


def test_connectors_that_have_to_be_up_afterwards(tmp_path: Path, router: Fake) -> None:
    """Those that are up or new, if they are enabled."""
    router.rows["connectors"] = [
        {"msgVpnName": "blue", "connectorName": name, "state": state, "links": []}
        for name, state in (("up", "up"), ("down", "waiting"))
    ]
    found = plan(tmp_path, router, BRIDGED.partition("    bridges")[0] + CONNECTORS.lstrip("\n"))
    assert found.connectors == (("blue", "up"), ("blue", "new"))
