from typing import Any

import pytest

from vpnrouter.cli import app


def test_queues_of_one_name(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Where two message VPNs have a queue of a name, somebody must say which."""
    served.still.queues.contents["a/b", "orders"] = {9: b"nine"}
    assert app.run(["queue", "browse", "orders"]) == 1
    said = "vpnrouter: message VPNs a/b, blue each have a queue orders; --msg-vpn says which\n"
    assert capsys.readouterr() == ("", said)
    assert app.run(["queue", "browse", "orders", "--msg-vpn", "a/b"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["9", "t/9"]


@pytest.mark.parametrize("verb", ["browse", "purge", "delete-msg", "copy", "move"])
def test_no_such_queue(served: Any, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command names the queues that there are."""
    more = {"delete-msg": ["1"], "copy": ["dead"], "move": ["dead"]}.get(verb, [])
    assert app.run(["queue", verb, "ord*", *more]) == 1
    said = "vpnrouter: there is no queue ord*; there are: x,y, dead, orders\n"
    assert capsys.readouterr().err == said
