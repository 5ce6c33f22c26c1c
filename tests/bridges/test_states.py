import importlib.util
import itertools
from pathlib import Path

import pytest

from vpnrouter.bridges.bridge import (
    INBOUND,
    OUTBOUND,
    UP,
    Inbound,
    Input,
    Outbound,
    Peer,
    next_inbound,
    next_outbound,
)

DOCS = Path(__file__).parents[2] / "docs"

# Written a second time on purpose: state, then input=state for each input it takes; "." stays.
EXPECTED = """
init: enable=prepare-wait-to-connect disable=disabled attach=not-applicable
disabled: enable=prepare-wait-to-connect lost=. cleaned=.
prepare-wait-to-connect: dial=prepare-fetching-dns reuse=not-ready-wait-reuse disable=disabled
prepare-fetching-dns: resolved=not-ready-connecting failed=not-ready-wait-next disable=disabled
not-ready-connecting: connected=not-ready-handshaking failed=not-ready-wait-next disable=disabled
not-ready-handshaking: welcomed=ready-subscribing refused=not-ready-wait-cleanup
  lost=not-ready-wait-cleanup version-mismatch=not-ready-wait-bridge-version-mismatch
  reuse=not-ready-wait-reuse disable=disabled
not-ready-wait-next: next-remote=prepare-wait-to-connect reuse=not-ready-wait-reuse disable=disabled
not-ready-wait-reuse: reused=not-ready-handshaking lost=not-ready-wait-next
  failed=not-ready-wait-next disable=disabled
not-ready-wait-bridge-version-mismatch: next-remote=prepare-wait-to-connect disable=disabled
not-ready-wait-cleanup: cleaned=not-ready-wait-next lost=. disable=disabled
ready-subscribing: subscribed=ready-in-sync subscriptions-changed=. stall=stalled
  lost=not-ready-wait-cleanup reconnect=not-ready-wait-cleanup disable=disabled
ready-in-sync: subscriptions-changed=ready-subscribing stall=stalled lost=not-ready-wait-cleanup
  reconnect=not-ready-wait-cleanup disable=disabled
stalled: subscriptions-changed=. subscribed=. release=ready-subscribing
  lost=not-ready-wait-cleanup reconnect=not-ready-wait-cleanup disable=disabled
not-applicable: enable=prepare-wait-to-connect detach=init
"""


def expected() -> dict[tuple[str, str], str]:
    """The table above as a dict."""
    table: dict[tuple[str, str], str] = {}
    state = ""
    for word in EXPECTED.split():
        if word.endswith(":"):
            state = word[:-1]
        else:
            given, after = word.split("=")
            table[(state, given)] = state if after == "." else after
    return table


@pytest.mark.parametrize(("state", "given"), list(itertools.product(Inbound, Input)))
def test_every_input_in_every_state(state: Inbound, given: Input) -> None:
    """The whole product of states and inputs: moved where it should, or refused."""
    wanted = expected().get((state.value, given.value))
    if wanted is None:
        with pytest.raises(LookupError, match=f"{state} does not take {given}"):
            next_inbound(state, given)
    else:
        assert next_inbound(state, given) == wanted


@pytest.mark.parametrize(("state", "given"), list(itertools.product(Outbound, Peer)))
def test_every_peer_input_in_every_state(state: Outbound, given: Peer) -> None:
    """The outbound half: logging out needs a login, a login may take over."""
    if (state, given) == (Outbound.NOT_APPLICABLE, Peer.LOGGED_OUT):
        with pytest.raises(LookupError):
            next_outbound(state, given)
    else:
        wanted = Outbound.READY if given is Peer.LOGGED_IN else Outbound.NOT_APPLICABLE
        assert next_outbound(state, given) is wanted
    assert len(OUTBOUND) == 3


def test_names_are_the_field_s() -> None:
    """The fourteen inbound and two outbound names of the field's monitoring, in its order."""
    assert [state.value for state in Inbound] == [
        "init",
        "disabled",
        "prepare-wait-to-connect",
        "prepare-fetching-dns",
        "not-ready-connecting",
        "not-ready-handshaking",
        "not-ready-wait-next",
        "not-ready-wait-reuse",
        "not-ready-wait-bridge-version-mismatch",
        "not-ready-wait-cleanup",
        "ready-subscribing",
        "ready-in-sync",
        "stalled",
        "not-applicable",
    ]
    assert {state.value for state in Outbound} == {"ready", "not-applicable"}


def test_every_state_is_reached_and_left() -> None:
    """From init every state can be reached, and from every state the link can come up again."""
    edges: dict[Inbound, set[Inbound]] = {}
    for (state, _), after in INBOUND.items():
        edges.setdefault(state, set()).add(after)

    def reach(start: Inbound) -> set[Inbound]:
        seen = {start}
        todo = [start]
        while todo:
            for after in edges[todo.pop()] - seen:
                seen.add(after)
                todo.append(after)
        return seen

    assert reach(Inbound.INIT) == set(Inbound)
    for state in Inbound:
        assert reach(state) >= UP | {Inbound.DISABLED}


def test_a_link_that_was_up_is_cleaned_up_before_the_next() -> None:
    """No input leads from an up state to a new attempt without not-ready-wait-cleanup between."""
    allowed = UP | {Inbound.NOT_READY_WAIT_CLEANUP, Inbound.DISABLED}
    assert {after for (state, _), after in INBOUND.items() if state in UP} <= allowed


def test_the_page_is_up_to_date() -> None:
    """docs/bridge-states.md is what docs/make_bridge_states.py makes of the tables."""
    spec = importlib.util.spec_from_file_location("make", DOCS / "make_bridge_states.py")
    assert spec is not None
    assert spec.loader is not None
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    assert (DOCS / "bridge-states.md").read_text(encoding="utf-8") == make.page()
    assert all(make.meanings(Inbound).values())
    assert set(make.meanings(Input)) == {given.value for given in Input}
