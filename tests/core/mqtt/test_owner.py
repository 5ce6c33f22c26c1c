"""Promise OWNER: what a client leaves behind belongs to its client username."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.credentials import ClientUsername, Credentials
from vpnrouter.spool import keys
from vpnrouter.wire.mqtt.packets import Connack
from vpnrouter.wire.mqtt.session_packets import Connect

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledClient, SpooledWorld


def knock(router: SpooledWorld, client_id: str, level: int = 5, **connect: object) -> Connack:
    """The answer to a CONNECT that is refused."""
    client = router.open("blue", level)
    client.send(Connect(client_id, protocol_level=level, **connect))  # type: ignore[arg-type]
    (answer,) = client.got()
    assert isinstance(answer, Connack)
    assert answer.reason_code != 0
    assert client.closed
    return answer


def boss(router: SpooledWorld) -> SpooledClient:
    """A client of client username boss whose session lasts and attracts secret/#."""
    client = router.lasting("victim", username="boss")
    assert client.sub("secret/#") == 1
    return client


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("connected", [False, True])
def test_a_session_of_another_username_is_refused(
    router: SpooledWorld, level: int, clean: bool, connected: bool
) -> None:
    """CONNECT with the client id of another client username's session: 0x87, and the session notices nothing."""
    owner = boss(router)
    if not connected:
        owner.lose()
    answer = knock(router, "victim", level, username="low", clean_start=clean)
    # A return code of 3.1.1 is read as the reason code that stands for it.
    assert answer.reason_code == 0x87
    router.join("sender", username="low").pub("secret/1", b"for boss")
    if connected:
        assert not owner.closed
    else:
        owner = router.lasting("victim", username="boss")
        assert owner.connack.session_present
    packets = owner.rest if not connected else owner.messages()
    assert [message.payload for message in packets] == [b"for boss"]  # type: ignore[union-attr]


def test_the_owner_of_a_stored_session_outlives_the_router(router: SpooledWorld) -> None:
    """After a restart the session is still its owner's and nobody else's, with or without an endpoint."""
    boss(router).lose()
    router.lasting("light", username="boss").sub("a", 0)
    router.settle()
    again = router.restart()
    assert knock(again, "victim", username="low").reason_code == 0x87
    assert knock(again, "light", username="low").reason_code == 0x87
    assert again.lasting("victim", username="boss").connack.session_present


def test_rows_of_earlier_versions(router: SpooledWorld) -> None:
    """A session stored without an owner is that of who made its endpoint; without one, of who resumes it first."""
    boss(router).lose()
    router.lasting("light", username="boss").sub("a", 0)
    router.settle()
    for client_id, creator in (("victim", "boss"), ("light", "")):
        row = router.session_row(client_id)
        assert row is not None
        del row["owner"]
        batch = router.spool.ledger
        batch.put(keys.session("blue", client_id), json.dumps({**row, "creator": creator}).encode())
    router.settle()
    again = router.restart()
    assert again.vpn().endpoints_of == {"boss": 1}
    assert knock(again, "victim", username="low").reason_code == 0x87
    assert again.lasting("light", username="low").connack.session_present
    again.settle()
    assert knock(again.restart(), "light", username="boss").reason_code == 0x87


def test_an_unknown_password_learns_nothing_of_sessions(router: SpooledWorld) -> None:
    """Who cannot log in gets the same answer whether a session of that client id exists or not."""
    names = (ClientUsername("boss", "b"), ClientUsername("low", "l"))
    router.add_vpn("blue", usernames=names, basic=True)
    client = router.open()
    client.send(Connect("victim", username="boss", password=b"b"))
    router.verify()
    assert client.received()
    answers = []
    for client_id in ("victim", "nobody"):
        stranger = router.open()
        stranger.send(Connect(client_id, username="low", password=b"wrong"))
        router.verify()
        (answer,) = stranger.received()
        assert isinstance(answer, Connack)
        answers.append((answer.reason_code, answer.properties.reason_string))
    assert answers == [(0x86, "403 Forbidden")] * 2
    low = router.open()
    low.send(Connect("victim", username="low", password=b"l"))
    router.verify()
    (answer,) = low.received()
    assert isinstance(answer, Connack)
    assert answer.reason_code == 0x87
    assert not client.closed


def test_assigned_client_ids_cannot_be_guessed(router: SpooledWorld) -> None:
    """An assigned client id follows from the router's secret and a number, and shows neither."""
    first, second = [
        router.join("").connack.properties.assigned_client_identifier or "" for _ in range(2)
    ]
    assert first != second
    assert {len(name.removeprefix("auto-")) for name in (first, second)} == {32}
    one, other = (Credentials(False, (), secret) for secret in (b"one", b"other"))
    assert one.assigned_client_id(1) == one.assigned_client_id(1)
    assert (
        len({one.assigned_client_id(1), one.assigned_client_id(2), other.assigned_client_id(1)})
        == 3
    )
