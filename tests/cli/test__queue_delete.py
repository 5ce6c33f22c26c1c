import json
from typing import Any

import pytest
import typer

from vpnrouter import limits
from vpnrouter.cli import app
from vpnrouter.errors import SpoolError


def held(served: Any) -> dict[int, bytes]:
    """What is in the queue orders."""
    found: dict[int, bytes] = served.still.queues.contents["blue", "orders"]
    return found


def test_purge(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """All of it goes when nobody has to be asked."""
    assert app.run(["queue", "purge", "orders", "--yes"]) == 0
    assert capsys.readouterr().out == "deleted 25 messages\n"
    assert held(served) == {}


def test_purge_asks(
    served: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At a terminal somebody is asked; where nobody is, --yes is needed."""
    assert app.run(["queue", "purge", "orders"]) == 2
    assert "nobody is there to be asked" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    answers = iter([False, True])

    def confirm(text: str, *, abort: bool, err: bool) -> bool:
        assert text == "Delete all messages of queue orders in message VPN blue?"
        assert abort
        assert err
        if not next(answers):
            raise typer.Abort
        return True

    monkeypatch.setattr(typer, "confirm", confirm)
    assert app.run(["queue", "purge", "orders"]) == 1
    assert len(held(served)) == 25
    assert app.run(["queue", "purge", "orders"]) == 0
    assert held(served) == {}


def test_delete_msg(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Messages by their ids; one that is not there is exit code 1."""
    assert app.run(["queue", "delete-msg", "orders", "3", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"msgCount": 2}
    assert app.run(["queue", "delete-msg", "orders", "4", "5"]) == 1
    assert capsys.readouterr().out == "deleted 1 messages\n"
    assert held(served).keys() == set(range(1, 26)) - {3, 4, 5}


def test_more_ids_than_a_request_takes(served: Any) -> None:
    """They are asked for in parts."""
    ids = range(1, 2 * limits.MANAGEMENT_MSG_IDS + 2)
    served.still.queues.contents["blue", "orders"] = dict.fromkeys(ids, b"")
    assert app.run(["queue", "delete-msg", "orders", *map(str, ids)]) == 0
    assert held(served) == {}


def test_a_store_that_fails(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 and what the store says."""
    served.still.queues.failure = SpoolError("no space left", "full")
    assert app.run(["queue", "purge", "orders", "--yes"]) == 1
    assert capsys.readouterr().err.endswith(": no space left\n")
