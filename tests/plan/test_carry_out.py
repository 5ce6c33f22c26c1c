"""Steps are made in order at all routers, or taken back at all of them."""

from typing import Any

import pytest

from vpnrouter.errors import OperationError
from vpnrouter.plan.compare import RouterPlan
from vpnrouter.plan.documents import Step
from vpnrouter.plan.execute import Outcome, PlanExecution


class Fake:
    """A router whose document is its digest's name; `log` is shared by all."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log
        self.digest = "start"
        self.fails_at = ""
        self.loses_answer_at = ""
        self.cannot_return = False
        self.health = ["up"]
        self.connector = [("up", "up")]
        self.interrupted_at = ""

    def config(self) -> Any:
        return {"digest": self.digest}

    def examine(self, document: Any) -> Any:
        raise AssertionError(document)

    def replace_config(self, document: Any, expected: str) -> Any:
        assert expected == self.digest, "somebody else changed it"
        if self.interrupted_at == document:
            raise KeyboardInterrupt
        if self.fails_at == document:
            raise OperationError(f"{self.name} refuses {document}")
        self.digest = document
        self.log.append(f"{self.name} {document}")
        if self.loses_answer_at == document:
            raise OperationError("no answer")
        return {"digest": document, "lines": []}

    def return_config(self, digest: str) -> Any:
        if self.cannot_return:
            raise OperationError("it is away")
        self.digest = digest
        self.log.append(f"{self.name} back to {digest}")
        return {"digest": digest, "lines": []}

    def msg_vpns(self) -> list[Any]:
        return []

    def queues(self) -> list[Any]:
        return []

    def bridges(self) -> list[Any]:
        health = self.health[0] if len(self.health) == 1 else self.health.pop(0)
        return [
            {
                "msgVpnName": "v",
                "bridgeName": "b",
                "health": health.removesuffix("-by-former"),
                "reconnecting": health.endswith("-by-former"),
                "inboundState": "not-ready-connecting",
                "inboundFailureReason": "refused",
            }
        ]

    def connectors(self) -> list[Any]:
        state, link = self.connector[0] if len(self.connector) == 1 else self.connector.pop(0)
        links = [{"linkName": "l", "state": link, "stateReason": "not authorized"}]
        return [
            {
                "msgVpnName": "v",
                "connectorName": "c",
                "state": state,
                "failure": "" if state == "up" else "refused",
                "links": links,
            }
        ]


def _plan(
    name: str,
    *steps: str,
    bridges: tuple[tuple[str, str], ...] = (),
    connectors: tuple[tuple[str, str], ...] = (),
) -> RouterPlan:
    return RouterPlan(
        name=name,
        digest="start",
        changes=(),
        restart=(),
        risks=(),
        problems=(),
        unnamed=(),
        steps=tuple(Step(step, step) for step in steps),
        bridges=bridges,
        connectors=connectors,
    )


class Time:
    """A clock that runs while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def log() -> list[str]:
    """What was done, in order."""
    return []


@pytest.fixture
def routers(log: list[str]) -> dict[str, Fake]:
    """Two routers."""
    return {name: Fake(name, log) for name in ("edge", "core")}


def _carry_out(routers: dict[str, Fake], *plans: RouterPlan, settle_s: float = 5.0) -> Outcome:
    time = Time()
    carry_out = PlanExecution(routers, lambda _: None, lambda: time.now, time.sleep, settle_s)
    return carry_out(plans)


BOTH = (_plan("edge", "grow", "bridge", "trim"), _plan("core", "grow", "bridge"))


def test_each_step_is_made_everywhere_before_the_next(
    routers: dict[str, Fake], log: list[str]
) -> None:
    """First what is new, then bridges, then what goes."""
    outcome = _carry_out(routers, *BOTH)
    assert not outcome.failure
    assert log == ["edge grow", "core grow", "edge bridge", "core bridge", "edge trim"]
    assert outcome.as_dict()["applied"]


def test_a_step_that_fails_takes_all_back(routers: dict[str, Fake], log: list[str]) -> None:
    """Routers that were changed return, the last one first; those that were not are left alone."""
    routers["core"].fails_at = "bridge"
    outcome = _carry_out(routers, *BOTH)
    assert outcome.failure == "core refuses bridge"
    assert log[3:] == ["core back to start", "edge back to start"]
    assert outcome.returned == ["core", "edge"]
    assert {router.digest for router in routers.values()} == {"start"}


def test_the_first_step_fails(routers: dict[str, Fake], log: list[str]) -> None:
    """Then nothing has to be taken back."""
    routers["edge"].fails_at = "grow"
    outcome = _carry_out(routers, *BOTH)
    assert outcome.failure
    assert log == []
    assert outcome.stuck == {}


def test_a_lost_answer_is_taken_back_too(routers: dict[str, Fake], log: list[str]) -> None:
    """What was put into force without anybody hearing of it."""
    routers["core"].loses_answer_at = "grow"
    outcome = _carry_out(routers, *BOTH)
    assert outcome.failure == "no answer"
    assert "core back to start" in log
    assert routers["core"].digest == "start"


def test_an_interrupt_is_a_failure(routers: dict[str, Fake]) -> None:
    """Whoever changes their mind gets the routers back as they were."""
    routers["core"].interrupted_at = "bridge"
    outcome = _carry_out(routers, *BOTH)
    assert outcome.failure == "interrupted"
    assert {router.digest for router in routers.values()} == {"start"}


def test_a_router_that_cannot_return_is_named(routers: dict[str, Fake]) -> None:
    """The others return all the same."""
    routers["core"].fails_at = "bridge"
    routers["core"].cannot_return = True
    outcome = _carry_out(routers, *BOTH)
    assert outcome.stuck == {"core": "it is away"}
    assert outcome.returned == ["edge"]


def test_bridges_have_to_come_up(routers: dict[str, Fake], log: list[str]) -> None:
    """One that does not within its time is a failure, with its reason."""
    routers["edge"].health = ["down"]
    plan = _plan("edge", "bridge", "trim", bridges=(("v", "b"),))
    outcome = _carry_out(routers, plan)
    assert outcome.failure == "not up after 5 s: bridge edge v/b: refused"
    assert log == ["edge bridge", "edge back to start"]


def test_a_former_connection_does_not_count(routers: dict[str, Fake], log: list[str]) -> None:
    """A bridge that is to reconnect is up over its former connection until the new one stands or fails."""
    routers["edge"].health = ["up-by-former", "up-by-former", "down"]
    plan = _plan("edge", "bridge", "trim", bridges=(("v", "b"),))
    outcome = _carry_out(routers, plan)
    assert outcome.failure == "not up after 5 s: bridge edge v/b: refused"
    assert log == ["edge bridge", "edge back to start"]


def test_a_bridge_may_take_its_time(routers: dict[str, Fake], log: list[str]) -> None:
    """As long as it comes up."""
    routers["edge"].health = ["down", "down", "up"]
    plan = _plan("edge", "bridge", "trim", bridges=(("v", "b"),))
    assert not _carry_out(routers, plan).failure
    assert log == ["edge bridge", "edge trim"]


def test_nobody_waits_where_nobody_asked(routers: dict[str, Fake]) -> None:
    """`settle_s` 0."""
    routers["edge"].health = ["down"]
    plan = _plan("edge", "bridge", bridges=(("v", "b"),))
    assert not _carry_out(routers, plan, settle_s=0).failure


@pytest.mark.parametrize(
    ("states", "failure"),
    [
        ([("up", "up")], ""),
        ([("connecting", "down"), ("up", "opening"), ("up", "held")], ""),
        ([("up", "disabled")], ""),
        ([("waiting", "down")], "connector edge v/c: refused"),
        ([("up", "refused")], "connector edge v/c: link l: not authorized"),
        ([("up", "stopped")], "connector edge v/c: link l: not authorized"),
    ],
)
def test_connectors_have_to_come_up(
    routers: dict[str, Fake], log: list[str], states: list[tuple[str, str]], failure: str
) -> None:
    """With all their links; one that does not is a failure, with its reason, and all is taken back."""
    routers["edge"].connector = states
    outcome = _carry_out(routers, _plan("edge", "bridge", "trim", connectors=(("v", "c"),)))
    assert failure in outcome.failure
    assert bool(outcome.failure) == bool(failure)
    assert ("edge trim" in log) == (not failure)


def test_a_connector_that_is_not_there(routers: dict[str, Fake]) -> None:
    """It is told as one that does not come up."""
    outcome = _carry_out(routers, _plan("edge", "bridge", connectors=(("v", "other"),)))
    assert "connector edge v/other: it is not there" in outcome.failure
