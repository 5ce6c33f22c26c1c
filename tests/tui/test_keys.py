import re
from pathlib import Path

from vpnrouter.tui.app import SCREENS
from vpnrouter.tui.format import Line
from vpnrouter.tui.keys import EVERYWHERE, MOVING, Key, bindings_of, foot, key_names
from vpnrouter.tui.screens.bridges import Bridge
from vpnrouter.tui.screens.clients import Client
from vpnrouter.tui.screens.connectors import Connector
from vpnrouter.tui.screens.overview import MsgVpn, Overview
from vpnrouter.tui.screens.queues import Queue, QueuedMessage
from vpnrouter.tui.screens.view import View

PAGE = Path(__file__).parents[2] / "docs" / "tui.md"

VIEWS: dict[str, type[View]] = {
    "overview": Overview,
    "message VPN": MsgVpn,
    **{name: kind for name, kind in SCREENS.items() if name != "overview"},
    "bridge": Bridge,
    "connector": Connector,
    "queue": Queue,
    "message": QueuedMessage,
    "client": Client,
}


def rows_of(title: str) -> list[tuple[str, str]]:
    """The table of keys under a title of docs/tui.md."""
    section = re.search(
        rf"^### {re.escape(title)}\n(.*?)(?=^##|\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert section, f"docs/tui.md has no section {title}"
    rows = re.findall(r"^\| `(.+?)` \| (.+?) \|$", section[1], re.MULTILINE)
    return [(keys.replace("` `", " "), said) for keys, said in rows]


def test_the_page_has_the_keys_of_every_screen() -> None:
    """docs/tui.md tells the keys that are bound, in their order."""
    for title, view in VIEWS.items():
        assert rows_of(title) == [(key_names(key), key.help) for key in view.KEYS], title
    assert rows_of("everywhere") == [(key_names(key), key.help) for key in EVERYWHERE]
    assert rows_of("moving") == list(MOVING)


def test_no_key_does_two_things() -> None:
    """Neither on a screen nor on a screen and everywhere."""
    for title, view in VIEWS.items():
        names = [name for key in (*view.KEYS, *EVERYWHERE) for name in key.key.split(",")]
        assert len(names) == len(set(names)), title


def test_each_key_is_bound_to_something_that_is_there() -> None:
    """A key of the table has a binding, and its action exists."""
    for title, view in VIEWS.items():
        bound = view._merge_bindings().key_to_bindings
        for key in view.KEYS:
            if key.key in {"enter", "tab"}:
                continue
            action = key.action.partition("(")[0]
            assert hasattr(view, f"action_{action}"), f"{title}: {action}"
            for name in key.key.split(","):
                assert bound[name][0].action == key.action, f"{title}: {name}"


def text_of(line: Line) -> str:
    """A line without styles."""
    return "".join(piece for piece, _ in line)


def test_every_foot_fits() -> None:
    """All that is shown below a screen stands in 80 columns."""
    for title, view in VIEWS.items():
        assert len(text_of(foot(view.KEYS, may_change=True)).rstrip()) <= 80, title


def test_what_is_not_allowed_is_grey() -> None:
    """Keys of actions, for whoever may look only."""
    keys = (Key("d", "delete", "delete", "", changes=True), Key("f", "find", "find", ""))
    may, may_not = (foot(keys, may_change=each) for each in (True, False))
    assert text_of(may) == text_of(may_not)
    assert [style for _, style in may_not[:4]] == ["dim", "dim", "key", ""]
    assert [style for _, style in may[:2]] == ["key", ""]


def test_several_keys_are_one_action() -> None:
    """`n,right` are two keys, and written as people know them."""
    key = Key("n,right", "turn(1)", "", "")
    assert key_names(key) == "n →"
    assert len(bindings_of([key])) == 1
