"""Switches of bridges, connectors and links: what each sets, over a restart; for whom, and of which there are."""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from management_routers import routers

from vpnrouter.config.load import load
from vpnrouter.settings.kinds import BRIDGE, CONNECTOR, CONNECTOR_LINK, SWITCHES, Kind

DOCUMENT: Final = {
    "msg_vpns": {
        "blue": {
            "bridges": {
                "from-red": {
                    "remote_authentication": {"basic": {"client_username": "b"}},
                    "remote_msg_vpns": [{"name": "red", "location": "127.0.0.1:55556"}],
                }
            },
            "connectors": {
                "there": {
                    "provider": {"url": "mqtt://h"},
                    "links": {"in": {"source": {"address": "in/#"}}},
                }
            },
        },
        "green": {},
    },
}
USERS: Final = {
    "rob": {"password": "right"},
    "ann": {"password": "right", "role": "admin", "msg_vpns": ["blue"]},
    "eve": {"password": "right", "role": "admin", "msg_vpns": ["green"]},
}
BLUE: Final = "/vpnrouter/v1/msgVpns/blue"

OBJECTS: Final[dict[str, tuple[Kind, tuple[str, ...], str]]] = {
    "/bridges/from-red,auto": (BRIDGE, ("bridges", "from-red"), "bridge from-red"),
    "/connectors/there": (CONNECTOR, ("connectors", "there"), "connector there"),
    "/connectors/there/links/in": (
        CONNECTOR_LINK,
        ("connectors", "there", "links", "in"),
        "connector link there/in",
    ),
}
"""By path: its kind, its keys in the document, and what the audit calls it."""


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    """A router whose configuration can be changed."""
    (made,) = routers(tmp_path, here=yaml.safe_dump(DOCUMENT))
    made.edited()
    return made


def written(desk: Any, keys: tuple[str, ...]) -> Any:
    """What the configuration has of an object."""
    found = desk.config.msg_vpns["blue"]
    for key in keys:
        found = found[key] if isinstance(found, dict) else getattr(found, key)
    return found


@pytest.mark.parametrize("path", OBJECTS)
@pytest.mark.parametrize("action", SWITCHES, ids=lambda action: action.name)
async def test_what_is_set(desk: Any, path: str, action: Any) -> None:
    """It is in force, and there after a restart; again is no error and no change; each time it is told."""
    kind, keys, named = OBJECTS[path]
    assert action in kind.actions
    attribute, value = action.sets
    other = next(one for one in SWITCHES if one.sets == (attribute, not value))
    async with desk.api(USERS, auth=("ann", "right")) as client:
        assert (await client.put(f"{BLUE}{path}/{other.name}")).status_code == 200
        assert getattr(written(desk, keys), attribute) is not value
        for _ in range(2):
            answer = await client.put(f"{BLUE}{path}/{action.name}")
            assert (answer.status_code, answer.json()["data"]) == (200, {})
            assert getattr(written(desk, keys), attribute) is value
            digest = desk.context.editor.digest()
    assert desk.context.editor.digest() == digest
    again = load(Path(desk.context.editor.files()[0])).config
    desk.config = again
    assert getattr(written(desk, keys), attribute) is value
    told = [one.text for one in desk.log.after(0, 100) if one.kind.name.endswith("ACTION")]
    assert told[-1] == f"user ann: {action.past} {named}"
    assert len(told) == 3


@pytest.mark.parametrize(
    ("path", "missing"),
    [
        ("/bridges/none,auto", "bridge none,auto in msgVpn blue"),
        ("/bridges/from-red,primary", "bridge from-red,primary in msgVpn blue"),
        ("/connectors/none", "connector none in msgVpn blue"),
        ("/connectors/none/links/in", "connector none in msgVpn blue"),
        ("/connectors/there/links/none", "link none in connector there in msgVpn blue"),
    ],
)
async def test_what_is_not_there(desk: Any, path: str, missing: str) -> None:
    """It is named, and nothing changes."""
    digest = desk.context.editor.digest()
    # The field has another action for bridges that are to reconnect.
    actions = ("pause", "enable", *(() if "bridges" in path else ("reconnect",)))
    async with desk.api() as client:
        for action in actions:
            answer = await client.put(f"{BLUE}{path}/{action}")
            error = answer.json()["meta"]["error"]
            assert (answer.status_code, error["status"]) == (400, "NOT_FOUND")
            assert missing in error["description"]
    assert desk.context.editor.digest() == digest


@pytest.mark.parametrize("path", OBJECTS)
async def test_for_whom(desk: Any, path: str) -> None:
    """Not for who may only look, nor for whom the message VPN is hidden: it is then as if it were not there."""
    digest = desk.context.editor.digest()
    for user, status, word in (("rob", 403, "UNAUTHORIZED"), ("eve", 400, "NOT_FOUND")):
        async with desk.api(USERS, auth=(user, "right")) as client:
            answer = await client.put(f"{BLUE}{path}/pause")
        error = answer.json()["meta"]["error"]
        assert (answer.status_code, error["status"]) == (status, word)
    assert error["description"].endswith("msgVpn blue")
    assert desk.context.editor.digest() == digest


async def test_without_a_file(desk: Any) -> None:
    """A router that was not started from a file cannot keep it."""
    desk.context.editor = None
    async with desk.api() as client:
        answer = await client.put(f"{BLUE}/connectors/there/pause")
    assert (answer.status_code, answer.json()["meta"]["error"]["status"]) == (400, "NOT_ALLOWED")
