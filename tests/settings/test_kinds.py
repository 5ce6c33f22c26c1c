"""The registry of kinds: what each names exists, and nothing above it has a list of its own."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.management.kind_pages import pages_of, status_of
from vpnrouter.settings.kinds import KINDS, Form, Kind, api_kinds, children_of, loaded
from vpnrouter.settings.shown import metrics_of

PACKAGE = Path(__file__).resolve().parents[2] / "vpnrouter"

NAMES = ("check", "running", "status", "pages", "tables", "screen")
"""Attributes of a kind that name what stands in a layer above."""

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(kind.pattern))

OF_THEIR_KINDS = {
    "config/checks/bridges.py": "what stands in a bridge",
    "config/checks/router.py": "what needs a spool",
    "config/error_messages.py": "other words that people write for keys",
    "demo/routers.py": "a configuration",
    "management/bridges.py": "what stands in a bridge",
    "management/profiles.py": "the pages of three kinds",
    "plan/risks.py": "what holds messages",
    "settings/message_vpn.py": "what has defaults in a message VPN",
    "simulation/configs.py": "a configuration",
    "tui/keys.py": "keys",
    "tui/screens/overview.py": "keys",
}
"""Modules with a list of some kinds, which has its reason."""


@each_kind
@pytest.mark.parametrize("name", NAMES)
def test_what_is_named_exists(kind: Kind, name: str) -> None:
    """A name leads to an object."""
    named = getattr(kind, name)
    assert not named or loaded(named) is not None


@each_kind
def test_each_stands_behind_what_it_stands_in(kind: Kind) -> None:
    """Whoever goes over all of them meets a parent first."""
    assert kind.parent is None or KINDS.index(kind.parent) < KINDS.index(kind)


@each_kind
def test_what_a_declaration_demands(kind: Kind) -> None:
    """Objects by name say how they are named and what the reference says of them; a list what tells them apart."""
    if kind.form is Form.NAMED:
        assert kind.settings is not None
        assert kind.named is not None
        assert kind.doc or not kind.configured_by_api
        assert kind.example or not kind.configured_by_api
    if kind.form is Form.RECORDS:
        assert kind.list_keys
    if kind.form is Form.TEXTS:
        assert kind.settings is None
    assert not kind.configured_by_api or kind.identity


@each_kind
def test_what_monitoring_shows(kind: Kind) -> None:
    """Who is in the metrics has labels, and a page of the API."""
    if not kind.status:
        return
    section = metrics_of(status_of(kind))
    assert section.labels or not section.families
    assert pages_of(kind) or pages_of(kind.chain[-2])


def test_the_api_has_all_that_it_configures() -> None:
    """Each kind once, and in another order those of the reference."""
    found = list(api_kinds())
    assert set(found) == {kind for kind in KINDS if kind.configured_by_api}
    assert len(found) == len(set(found))


def test_words_are_different() -> None:
    """No two kinds of one parent have a key or a word in common."""
    for parent in (None, *KINDS):
        below = children_of(parent)
        assert len({kind.key for kind in below}) == len(below)
    words = [kind.section for kind in KINDS if kind.status]
    assert len(words) == len(set(words))


BELOW = [
    {
        name: kind.key
        for kind in children_of(parent)
        for name in (kind.key, kind.collection, kind.word)
    }
    for parent in (None, *KINDS)
]
"""For each parent: the names of the kinds below it, with their keys."""


def siblings(node: ast.expr) -> Iterator[set[str]]:
    """The keys of kinds with one parent that are in a tuple, list, set or dict, also in tuples inside it."""
    parts: list[Any] = []
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        parts = node.elts
    if isinstance(node, ast.Dict):
        parts = node.keys
    words = {
        each.value
        for part in parts
        if part is not None
        for each in ast.walk(part)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }
    for names in BELOW if words else ():
        yield {names[word] for word in words & names.keys()}


def test_nothing_lists_kinds() -> None:
    """A list of kinds above the registry would have to be changed for each new one."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.expr) and any(len(each) > 1 for each in siblings(node)):
                found.add(str(path.relative_to(PACKAGE)))
    assert found - {"settings/kinds.py"} == set(OF_THEIR_KINDS)
