"""Promise OWNER, protocol by form by act: what a client leaves behind is its client username's, and nobody else's.

Another client username that gives the same names is refused, or has something of its own; nothing of the owner's is
read, taken, settled, replaced or ended, whether its client is there, away, or the router was restarted meanwhile. The
owner can do it all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LIVE = "live"
STORED = "stored"
RESTARTED = "restarted"
ALL = (LIVE, STORED, RESTARTED)

SEPARATE = ""
"""Nothing is refused, and what that gives is another one."""

MQTT_DENIED = "0x87"
NOT_FOUND = "amqp:not-found"
LOCKED = "amqp:resource-locked"
DENIED = "amqp:unauthorized-access"
NO_TRANSACTION = "amqp:transaction:unknown-id"
MISMATCH = "amqp:not-allowed"

EVERYTHING = "everything"
REST = "what was not settled"
NOTHING = "nothing"


class Act(NamedTuple):
    """How an act ends for another client username, and for another client of the owner: `live` and `away`.

    These are why it is refused, "" where it is done, None where there is no such case. `left` is what the owner gets
    once it is done.
    """

    others: str
    live: str | None = ""
    away: str | None = ""
    left: str = EVERYTHING


class Row(NamedTuple):
    """One form of a protocol: the states in which it is there, and what can be done.

    It brings what is published to its topic, or else `brings`.
    """

    protocol: str
    form: str
    states: tuple[str, ...]
    acts: dict[str, Act]
    brings: tuple[bytes, ...] | None = None


SESSION = {
    "take": Act(MQTT_DENIED),
    "look_up": Act(MQTT_DENIED),
    "replace": Act(MQTT_DENIED, left=NOTHING),
    "delete": Act(MQTT_DENIED, left=NOTHING),
}
DURABLE = {
    "take": Act(SEPARATE),
    "look_up": Act(NOT_FOUND, live=LOCKED),
    "replace": Act(SEPARATE, live=MISMATCH, left=NOTHING),
    "delete": Act(NOT_FOUND, live=LOCKED, left=NOTHING),
    "settle": Act(SEPARATE, live=None, left=REST),
}
PASSING = {
    "take": Act(SEPARATE),
    "look_up": Act(NOT_FOUND, live=NOT_FOUND),
    "delete": Act(NOT_FOUND, live=NOT_FOUND),
}
QUEUE = {"take": Act(DENIED), "look_up": Act(DENIED), "fill": Act(DENIED)}

TABLE = [
    Row("mqtt", "session, QoS 1", ALL, SESSION),
    Row("mqtt", "session, QoS 2", ALL, SESSION),
    Row(
        "mqtt",
        "will",
        (LIVE,),
        {"take": Act(MQTT_DENIED), "delete": Act(MQTT_DENIED)},
        (b"ann",),
    ),
    Row("mqtt", "queue", ALL, {act: Act(MQTT_DENIED) for act in QUEUE}),
    Row("amqp", "queue", ALL, QUEUE),
    Row("amqp", "link", (LIVE,), PASSING),
    Row("amqp", "Direct link", (LIVE,), PASSING),
    Row("amqp", "shared", (LIVE,), PASSING),
    Row("amqp", "shared, global", (LIVE,), PASSING),
    Row("amqp", "durable", ALL, DURABLE),
    Row("amqp", "durable, global", ALL, DURABLE),
    Row("amqp", "shared, durable", ALL, DURABLE),
    Row("amqp", "shared, durable, global", ALL, DURABLE),
    Row("amqp", "unsettled deliveries", (STORED,), {"take": Act("unknown")}, ()),
    Row(
        "amqp",
        "transaction",
        (LIVE,),
        {
            # Not even another connection of its owner.
            "take": Act(NO_TRANSACTION, live=NO_TRANSACTION),
            "delete": Act(NO_TRANSACTION, live=NO_TRANSACTION),
            "fill": Act(NO_TRANSACTION, live=NO_TRANSACTION),
        },
        (b"1",),
    ),
    Row(
        "amqp",
        "temporary queue",
        (LIVE,),
        {
            # Only the connection that made it consumes from it.
            "take": Act(DENIED, live=DENIED),
            "look_up": Act(DENIED, live=DENIED),
            "delete": Act("still there", live="still there"),
            "take_by_mqtt": Act(MQTT_DENIED, live=MQTT_DENIED),
        },
        (b"1",),
    ),
]


class Cell(NamedTuple):
    """One case."""

    row: Row
    act: str
    state: str


def cells() -> Iterator[Any]:
    """All cases, with names."""
    for row in TABLE:
        for act in row.acts:
            for state in row.states:
                cell = Cell(row, act, state)
                yield pytest.param(cell, id=f"{row.protocol}: {row.form}: {act}: {state}")


CELLS = list(cells())


class Scene:
    """What ann has when the act begins; `published` has come to it."""

    def __init__(
        self, cell: Cell, stage: Callable[..., Any], user: Callable[..., Any], folder: Path
    ) -> None:
        row, self.act, state = cell
        self.row = row
        self.away = state != LIVE
        self.stage = stage(folder if state == RESTARTED else None)
        self._user = user
        self.published: list[bytes] = []
        self.owner = self.user("ann")
        assert self.owner.make() == ""
        self.publish(b"1")
        if self.act == "settle":
            self.owner.glance()
        if self.away:
            self.owner.leave()
            self.publish(b"2")
        if state == RESTARTED:
            self.stage.restart()

    def user(self, username: str) -> Any:
        """What a client of this client username may have."""
        return self._user(self.stage, self.row.protocol, self.row.form, username)

    def publish(self, body: bytes) -> None:
        """Publish to the topic of the form, if it has one."""
        if self.row.brings is None:
            self.stage.publish(body)
            self.published.append(body)

    def do(self, who: Any) -> str:
        """Do the act; why it was refused."""
        given = (self.owner.tags,) if self.act == "settle" else ()
        why: str = getattr(who, self.act)(*given)
        return why

    def brought(self) -> list[bytes]:
        """What the owner's one brings in all."""
        return self.published if self.row.brings is None else list(self.row.brings)


@pytest.mark.parametrize("cell", CELLS)
def test_another_client_username(cell: Cell, stage: Any, user: Any, tmp_path: Path) -> None:
    """It is refused or has another one: it gets nothing that was there, and the owner gets everything, once."""
    scene = Scene(cell, stage, user, tmp_path)
    other = scene.user("bob")
    assert scene.do(other) == cell.row.acts[cell.act].others
    scene.publish(b"3")
    separate = cell.act in ("take", "settle") and cell.row.acts[cell.act].others == SEPARATE
    assert other.took() == ([b"3"] if separate else [])
    owner = scene.owner
    if cell.act == "settle" and not scene.away:
        # What it had and did not settle comes again.
        owner.leave()
        assert owner.make() == ""
    elif scene.away and cell.row.brings is None:
        assert owner.make() == ""
    elif scene.away:
        assert owner.take() == ""
    assert sorted(owner.took()) == scene.brought()
    assert not owner.ended


@pytest.mark.parametrize("cell", CELLS)
def test_another_client_of_the_owner(cell: Cell, stage: Any, user: Any, tmp_path: Path) -> None:
    """What is refused to others its owner may do, over another connection too."""
    act = cell.row.acts[cell.act]
    expected = act.live if cell.state == LIVE else act.away
    if expected is None:
        return
    scene = Scene(cell, stage, user, tmp_path)
    mate = scene.user("ann")
    assert scene.do(mate) == expected
    scene.publish(b"3")
    left = act.left if expected == "" else EVERYTHING
    # What was on its way to a client before it was ended counts where that was to keep it.
    bodies = [] if scene.away or left == NOTHING else scene.owner.took()
    bodies += mate.took()
    if expected == "" and cell.row.brings is None and mate.peer_or_client() is not None:
        mate.leave()
    last = scene.user("ann")
    if cell.row.brings is None:
        assert last.make() == ""
        bodies += last.took()
    if left == NOTHING:
        assert not set(bodies) & {b"1", b"2"}
    elif left == REST:
        assert sorted(bodies) == scene.brought()[1:]
    else:
        assert set(bodies) >= set(scene.brought())
