"""A router in memory whose spool is a real store where it has to be there after a restart, and clients of it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import pytest

from vpnrouter.spool.rocks_store import RocksStore
from vpnrouter.testing.modules import load_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.core.owners.forms import Form, Stage

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def forms() -> ModuleType:
    """The module forms.py."""
    found = load_module("core_owners_forms", HERE / "forms.py")
    found.spooled = load_module("core_owners_spooled", HERE.parent / "mqtt" / "spooled.py")
    found.amqp = load_module("core_owners_amqp", HERE.parent / "amqp" / "amqp_peer.py")
    return found


@pytest.fixture
def stage(forms: ModuleType) -> Iterator[Callable[..., Stage]]:
    """Makes the router of a test; with a folder its spool is in that."""
    made: list[Stage] = []

    def make(folder: Path | None = None) -> Stage:
        store = None if folder is None else RocksStore(folder / "spool")
        made.append(cast("Stage", forms.Stage(store)))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def user(forms: ModuleType) -> Callable[..., Form]:
    """Makes what a client username has of a form of a protocol."""

    def make(stage: Stage, protocol: str, form: str, username: str) -> Form:
        given: Any = forms.FORMS[protocol, form]
        return cast("Form", given[0](stage, username, **given[1]))

    return make
