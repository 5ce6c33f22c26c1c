"""Bridges of a changed configuration: which come, go, and go on under other terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.config.change import Effect, Item
from vpnrouter.server.standby import leave

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from vpnrouter.config.change import Change
    from vpnrouter.config.router import RouterConfig
    from vpnrouter.server.bridge_runner import BridgeRunner

Place = tuple[str, str]
"""A bridge: its message VPN and its name."""

_REMOTE_AT: Final = 5
"""Where the path of a change to a remote message VPN of a bridge says which one."""


def change_bridges(
    runners: list[BridgeRunner],
    before: RouterConfig,
    after: RouterConfig,
    found: Iterable[Change],
    begin: Callable[[str, str], BridgeRunner],
) -> None:
    """Bring `runners` from one configuration to another that differs by `found`.

    `begin` makes and starts the runner of one more bridge of `after`. Runners whose bridges did not change
    are not touched.
    """
    running = {place_of(runner): runner for runner in runners}
    there = places(after)
    stay: dict[Place, BridgeRunner] = {}
    for place, runner in running.items():
        if place in there:
            stay[place] = runner
        else:
            _end(runner)
    moved = reconnects(stay, found)
    for place in stay:
        if before.msg_vpns[place[0]].enabled != after.msg_vpns[place[0]].enabled:
            moved.setdefault(place, False)
    # Two bridges may have changed roles: what each renames is forgotten before any is told anew.
    for place in moved:
        stay[place].approach.forget()
    for (vpn_name, name), reconnect in moved.items():
        vpn = after.msg_vpns[vpn_name]
        runner = stay[vpn_name, name]
        # A copy, so that an attempt to connect that is under way does not take it for the same.
        written = vpn.bridges[name].model_copy()
        runner.change(written, vpn.bridging.tls_server_cert, reconnect=reconnect)
        _tell_who_asks(runner)
    runners[:] = [stay[place] if place in stay else begin(*place) for place in there]


def _end(runner: BridgeRunner) -> None:
    """Log a bridge out for good, at once; its task ends when it comes to run."""
    approach = runner.approach
    # Without remotes, so that an attempt under way comes to nothing, and nothing is left to forget that
    # another bridge may have taken over by then.
    nothing = approach.written.model_copy(update={"remote_msg_vpns": ()})
    runner.change(nothing, approach.server_cert, reconnect=False)
    runner.remove()
    if runner.standby is not None:
        runner.standby.leave()
    if runner.half is not None:
        leave(runner.half)
    if runner.flow is not None:
        runner.flow.remove()


def _tell_who_asks(runner: BridgeRunner) -> None:
    """A half that waits for the answer to its login asks for what is written now when it has it."""
    half, approach = runner.half, runner.approach
    used, asked = approach.remotes.current, runner.record.remote
    if half is None or half.welcomed or half.over or used is None or asked is None:
        return
    if used.names_the_same_as(asked):
        half.terms = approach.terms(approach.current)


def place_of(runner: BridgeRunner) -> Place:
    """The bridge of a runner."""
    return runner.approach.vpn.name, runner.approach.name


def places(config: RouterConfig) -> list[Place]:
    """All bridges of a configuration, in its order."""
    return [(vpn_name, name) for vpn_name, vpn in config.msg_vpns.items() for name in vpn.bridges]


def reconnects(stay: dict[Place, BridgeRunner], found: Iterable[Change]) -> dict[Place, bool]:
    """The bridges among `stay` that `found` changes, and whether each has to reconnect."""
    moved: dict[Place, bool] = {}
    for change in found:
        if change.path[0] != "msg_vpns" or len(change.path) < 3:
            continue
        for place, runner in stay.items():
            if place[0] != change.path[1]:
                continue
            if change.path[2] == "bridging":
                moved[place] = moved.get(place, False) or _is_encrypted(runner)
            elif change.path[2] == "bridges" and place[1] == change.path[3]:
                moved[place] = moved.get(place, False) or _is_hit(runner, change)
    return moved


def _is_encrypted(runner: BridgeRunner) -> bool:
    return runner.half is not None and runner.half.link.tls


def _is_hit(runner: BridgeRunner, change: Change) -> bool:
    if change.kind is not Effect.RECONNECT_IF_USED:
        return change.kind is Effect.RECONNECT
    used = runner.approach.remotes.current
    remote = change.path[_REMOTE_AT]
    return (
        used is not None
        and isinstance(remote, Item)
        and remote.identity == (used.msg_vpn, used.location)
    )
