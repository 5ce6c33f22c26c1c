import importlib.util
import itertools
from pathlib import Path

import pytest

from vpnrouter.bridges.bridge import (
    INBOUND,
    OUTBOUND,
    UP,
    Bridge,
    BridgeFacts,
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
ready-subscribing: subscribed=ready-in-sync subscriptions-changed=. stall=stalled pause=paused
  lost=not-ready-wait-cleanup reconnect=not-ready-wait-cleanup disable=disabled
ready-in-sync: subscriptions-changed=ready-subscribing stall=stalled pause=paused
  lost=not-ready-wait-cleanup reconnect=not-ready-wait-cleanup disable=disabled
stalled: subscriptions-changed=. subscribed=. release=ready-subscribing pause=paused
  lost=not-ready-wait-cleanup reconnect=not-ready-wait-cleanup disable=disabled
paused: subscriptions-changed=. subscribed=. resume=ready-subscribing
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
    """The fourteen inbound and two outbound names of the field's monitoring, in its order; `paused` is ours."""
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
        "paused",
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


# -- bridge ----------------------------------------------------------------------------------------


SECOND = 1_000_000_000
DIALLING = [Input.ENABLE, Input.DIAL, Input.RESOLVED, Input.CONNECTED]


def made(*inputs: Input) -> Bridge:
    """A bridge that was given `inputs`, one a second."""
    bridge = Bridge(BridgeFacts("core", "yellow", "from-edge"), 0)
    for second, given in enumerate(inputs, 1):
        bridge.handle(given, second * SECOND)
    return bridge


def test_the_way_up() -> None:
    """From enable to in sync, uptime counts from the login on."""
    bridge = made(*DIALLING)
    step = bridge.handle(Input.WELCOMED, 5 * SECOND)
    assert step.went_up
    step = bridge.handle(Input.SUBSCRIBED, 6 * SECOND)
    assert not step.went_up
    assert bridge.is_up
    assert bridge.inbound_state is Inbound.READY_IN_SYNC
    assert bridge.state_since_ns == 6 * SECOND
    assert bridge.uptime_s(15 * SECOND + 1) == 10


def test_a_failure_is_told_until_the_bridge_recovers() -> None:
    """The reason stays through the waiting and the next attempt, and is gone after the login."""
    bridge = made(*DIALLING)
    bridge.handle(Input.REFUSED, 5 * SECOND, "403 Message VPN Not Allowed")
    for given in (Input.CLEANED, Input.NEXT_REMOTE, Input.DIAL, Input.RESOLVED, Input.CONNECTED):
        bridge.handle(given, 6 * SECOND)
        assert bridge.inbound_failure_reason == "403 Message VPN Not Allowed"
    bridge.handle(Input.WELCOMED, 7 * SECOND)
    assert bridge.inbound_failure_reason == ""
    assert (bridge.failures, bridge.last_failure_ns) == (1, 5 * SECOND)


def test_a_lost_link_goes_down() -> None:
    """The loss is a transition out of up, with its reason, and the uptime is 0 again."""
    bridge = made(*DIALLING, Input.WELCOMED, Input.SUBSCRIBED)
    step = bridge.handle(Input.LOST, 9 * SECOND, "connection reset by peer")
    assert step.went_down
    assert (step.before, step.after) == (Inbound.READY_IN_SYNC, Inbound.NOT_READY_WAIT_CLEANUP)
    assert step.reason == bridge.inbound_failure_reason == "connection reset by peer"
    assert bridge.uptime_s(10 * SECOND) == 0


def test_paused_is_still_up() -> None:
    """A pause ends no uptime, and what was refused before is not told any more."""
    bridge = made(*DIALLING, Input.WELCOMED, Input.SUBSCRIBED)
    bridge.handle(Input.STALL, 8 * SECOND, "503 Spool Over Quota")
    bridge.handle(Input.PAUSE, 9 * SECOND)
    assert bridge.is_up
    assert bridge.inbound_failure_reason == ""
    bridge.handle(Input.RESUME, 10 * SECOND)
    assert bridge.inbound_state is Inbound.READY_SUBSCRIBING
    assert bridge.uptime_s(11 * SECOND) == 6


def test_stalled_is_still_up() -> None:
    """A refused guaranteed message names its reason and does not end the uptime."""
    bridge = made(*DIALLING, Input.WELCOMED, Input.SUBSCRIBED)
    bridge.handle(Input.STALL, 8 * SECOND, "503 Spool Over Quota")
    assert bridge.inbound_state is Inbound.STALLED
    assert bridge.is_up
    assert bridge.inbound_failure_reason == "503 Spool Over Quota"
    bridge.handle(Input.RELEASE, 9 * SECOND)
    assert bridge.inbound_failure_reason == ""
    assert bridge.uptime_s(10 * SECOND) == 5


def test_disable_clears_the_reason_and_late_news_does_not_bring_it_back() -> None:
    """A bridge that is switched off has no failure, also when its connection ends later."""
    bridge = made(*DIALLING, Input.WELCOMED)
    bridge.handle(Input.DISABLE, 6 * SECOND)
    bridge.handle(Input.LOST, 7 * SECOND, "closed")
    bridge.handle(Input.CLEANED, 7 * SECOND)
    assert bridge.inbound_state is Inbound.DISABLED
    assert (bridge.inbound_failure_reason, bridge.failures) == ("", 0)


def test_an_input_that_does_not_fit_changes_nothing() -> None:
    """A fault of the caller raises LookupError and leaves state, reason and times as they were."""
    bridge = made(*DIALLING)
    with pytest.raises(LookupError):
        bridge.handle(Input.SUBSCRIBED, 9 * SECOND, "nonsense")
    assert bridge.inbound_state is Inbound.NOT_READY_HANDSHAKING
    assert (bridge.inbound_failure_reason, bridge.state_since_ns) == ("", 4 * SECOND)


def test_the_outbound_half_follows_the_peer() -> None:
    """It is ready while the peer's bridge is logged in, whatever the inbound half does."""
    bridge = made(Input.ATTACH)
    assert bridge.inbound_state is Inbound.NOT_APPLICABLE
    assert bridge.handle_peer(Peer.LOGGED_IN) is Outbound.READY
    assert bridge.handle_peer(Peer.LOGGED_OUT, "Bridge Shutdown") is Outbound.NOT_APPLICABLE
    assert bridge.outbound_failure_reason == "Bridge Shutdown"
    with pytest.raises(LookupError):
        bridge.handle_peer(Peer.LOGGED_OUT)
