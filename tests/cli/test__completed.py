"""Names that a shell is offered."""

from types import SimpleNamespace
from typing import Any

import pytest

from vpnrouter.cli import _completed as completed


def context(**given: Any) -> Any:
    """A command line of which these options are there."""
    return SimpleNamespace(params=given)


def test_names_of_the_router(served: Any) -> None:
    """Bridges, queues and message VPNs that begin so."""
    url = {"url": served.url}
    assert completed.bridge_names(context(**url), "to-") == ["to-a", "to-b"]
    assert completed.queue_names(context(**url), "o") == ["orders"]
    assert completed.vpn_names(context(**url), "") == ["a/b", "blue", "empty"]
    assert completed.names_to_show(context(what="bridges", url=[served.url]), "to-a") == ["to-a"]
    assert completed.names_to_show(context(what="events", **url), "") == []
    assert completed.names_to_show(context(**url), "") == []


def test_what_a_shell_would_evaluate(recorded: Any) -> None:
    """Clients name themselves: what is not harmless in every shell is not offered."""
    names = ["a$(touch x)", 'a";b', "a b", "a\\", "a`x`", "a-1/é", "a.ok-1"]
    rows = [{"clientName": name, "msgVpnName": "v"} for name in names]
    recorded.answers["/vpnrouter/v1/clients"] = rows
    assert completed.client_names(context(url=recorded.url), "a") == ["a.ok-1"]


@pytest.mark.parametrize(
    "given", [{"url": "http://127.0.0.1:1"}, {"url": "no url"}, {"user": "ann"}]
)
def test_silence(given: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Without an answer, and where a password would be asked for, nothing is offered and nothing said."""
    assert completed.bridge_names(context(**given), "") == []
    assert capsys.readouterr() == ("", "")
