"""Names that a shell is offered."""

from types import SimpleNamespace
from typing import Any

import pytest

from vpnrouter.cli import _completion as completed
from vpnrouter.cli._show_rows import What


def context(**given: Any) -> Any:
    """A command line of which these options are there."""
    return SimpleNamespace(params=given)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine may be busy."""
    monkeypatch.setattr(completed, "PATIENCE_S", 120.0)


"""A busy machine may take its time: these tests are not about how long anybody waits."""


def test_names_of_the_router(served: Any) -> None:
    """Bridges, queues and message VPNs that begin so."""

    def names(what: What, incomplete: str, url: Any = served.url) -> list[str]:
        return completed.names(what, {"url": url}, incomplete)

    assert names(What.BRIDGES, "to-") == ["to-a", "to-b"]
    assert names(What.QUEUES, "o") == ["orders"]
    assert names(What.VPNS, "") == ["a/b", "blue", "empty"]
    assert names(What.BRIDGES, "to-a", [served.url]) == ["to-a"]
    assert names(What.EVENTS, "") == []


def test_each_option_asks_for_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an option is completed with is of its kind; `show` asks for what it is to show."""
    asked: list[Any] = []
    monkeypatch.setattr(completed, "names", lambda *given: asked.append(given) or [])
    for ask in (completed.bridge_names, completed.client_names, completed.queue_names):
        ask(context(url="u"), "x")
    completed.vpn_names(context(url="u"), "x")
    completed.names_to_show(context(what="bridges"), "x")
    assert completed.names_to_show(context(url="u"), "") == []
    assert [given[0] for given in asked] == [
        *(What.BRIDGES, What.CLIENTS, What.QUEUES, What.VPNS),
        What.BRIDGES,
    ]
    assert {given[2] for given in asked} == {"x"}


def test_what_a_shell_would_evaluate(recorded: Any) -> None:
    """Clients name themselves: what is not harmless in every shell is not offered."""
    names = ["a$(touch x)", 'a";b', "a b", "a\\", "a`x`", "a-1/é", "a.ok-1"]
    rows = [{"clientName": name, "msgVpnName": "v"} for name in names]
    recorded.answers["/vpnrouter/v1/clients"] = rows
    found = completed.names(What.CLIENTS, {"url": recorded.url}, "a")
    assert found == ["a.ok-1"]


@pytest.mark.parametrize(
    "given", [{"url": "http://127.0.0.1:1"}, {"url": "no url"}, {"user": "ann"}]
)
def test_silence(given: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Without an answer, and where a password would be asked for, nothing is offered and nothing said."""
    assert completed.bridge_names(context(**given), "") == []
    assert capsys.readouterr() == ("", "")
