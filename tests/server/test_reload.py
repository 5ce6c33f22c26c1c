"""Reloads as a whole: what is told, what is refused, and files read again on SIGHUP."""

from typing import Any

import httpx
import pytest
import trio
import trio.testing

from vpnrouter.config.effects import TABLE
from vpnrouter.errors import OperationError
from vpnrouter.server.apply.reload import FIXED
from vpnrouter.server.run import SighupHandler
from vpnrouter.settings.schema import Effect

PLAIN = """
listeners: [{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}]
msg_vpns: {blue: {authentication: {basic: {enabled: false}}}}
"""


def test_what_is_fixed() -> None:
    """The keys that are kept are those below which everything needs a restart, and all of them."""
    for pattern, row in TABLE.items():
        fixed = pattern[0] in FIXED or pattern == ("guaranteed_msging", "enabled")
        assert (row.effect is Effect.RESTART) == fixed, pattern


async def test_nothing_changed(running: Any, configured: Any, client_of: Any) -> None:
    """A reload of the same configuration tells nothing and does nothing."""
    async with running(PLAIN) as node:
        client = await client_of(node)
        await client.connect()
        addresses = node.addresses
        assert node.reload(configured(PLAIN)) == []
        assert node.addresses == addresses
        await client.subscribe("#")


async def test_what_needs_a_restart(running: Any, configured: Any) -> None:
    """What needs a restart is told at each reload and not taken over; the rest is."""
    more = "trace: {directory: ./traces, sample: 0.5}\nguaranteed_msging: {enabled: false}\n"
    changed = PLAIN.replace("enabled: false}", "enabled: false}}, max_topic_levels: 9", 1)
    changed = changed.replace("9}}}", "9}}")
    async with running(PLAIN) as node:
        before = node.config
        told = [
            "needs restart: trace: none -> {…}",
            "needs restart: guaranteed_msging.enabled: true -> false",
        ]
        lines = node.reload(configured(changed + more))
        assert lines[0] == "msg_vpns.blue.max_topic_levels: 128 -> 9 (at once)"
        assert sorted(lines[1:]) == sorted(told)
        assert node.config.trace is before.trace
        assert node.config.guaranteed_msging.enabled
        assert sorted(node.reload(configured(changed + more))) == sorted(told)
        assert node.reload(configured(changed)) == []


async def test_nothing_is_touched_by_a_reload_that_fails(running: Any, configured: Any) -> None:
    """When an address cannot be bound, the rest of the new configuration is not in force either."""
    async with running(PLAIN) as node:
        before, addresses = node.config, node.addresses
        bad = PLAIN.replace("listeners: [", 'listeners: [{protocol: link, bind: "192.0.2.1:5"}, ')
        with pytest.raises(OperationError, match=r"cannot listen on 192\.0\.2\.1:5"):
            node.reload(configured(bad + "  \n").model_copy(update={"msg_vpns": {}}))
        assert node.config is before
        assert node.addresses == addresses
        assert list(node.router.vpns) == ["blue"]


async def test_a_file(edited: Any, capfd: Any) -> None:
    """Each difference is one line on stderr, and a last one counts them; so is each problem."""
    async with edited(PLAIN) as one:
        node, path, reread = one.node, one.path, one.editor.reread
        capfd.readouterr()
        await reread()
        assert capfd.readouterr().err == f"vpnrouter: SIGHUP: reloaded {path}: 0 changes\n"
        text = path.read_text()
        path.write_text(text.replace("blue: {", "blue: {max_subscription_count: 7, ", 1))
        await reread()
        lines = capfd.readouterr().err.splitlines()
        assert lines[0].startswith("vpnrouter: SIGHUP: msg_vpns.blue.max_subscription_count: ")
        assert lines[1:] == [f"vpnrouter: SIGHUP: reloaded {path}: 1 change"]
        path.write_text(text.replace("blue: {", "blue: {max_ttl: 7, no_such: 1, ", 1))
        await reread()
        lines = capfd.readouterr().err.splitlines()
        assert len(lines) == 3
        assert all(line.startswith(f"vpnrouter: SIGHUP: {path}:4:") for line in lines[:2])
        assert lines[2] == f"vpnrouter: SIGHUP: {path} is refused; everything stays as it was"
        assert node.router.vpns["blue"].limits.max_subscription_count == 7
        path.unlink()
        await reread()
        assert "cannot read: No such file or directory" in capfd.readouterr().err
        path.write_text(text.replace("127.0.0.1:0", "192.0.2.1:5"))
        await reread()
        (line,) = capfd.readouterr().err.splitlines()
        assert line.startswith("vpnrouter: SIGHUP: cannot listen on 192.0.2.1:5: ")
        assert line.endswith("; everything stays as it was")


async def test_users_of_the_management_api(running: Any, configured: Any) -> None:
    """They come, change and go at once, without a login anew."""
    text = PLAIN.replace("}]", '}, {protocol: http, bind: "127.0.0.1:0"}]', 1)
    users = "management: {users: {ann: {password: %s, role: %s}}}\n"

    async def asked(node: Any, *login: str) -> int:
        address = dict(node.addresses)["http"]
        async with httpx.AsyncClient(trust_env=False, auth=login or None) as client:
            return int((await client.get(f"http://{address}/SEMP/v2/monitor/msgVpns")).status_code)

    async with running(text) as node:
        assert await asked(node) == 200
        lines = node.reload(configured(text + users % ("one", "admin")))
        assert lines == ["management.users.ann: added"]
        assert [await asked(node), await asked(node, "ann", "one")] == [401, 200]
        lines = node.reload(configured(text + users % ("two", "admin")))
        assert lines == ["management.users.ann.password: *** -> *** (at once)"]
        assert [await asked(node, "ann", "one"), await asked(node, "ann", "two")] == [401, 200]
        node.reload(configured(text))
        assert await asked(node) == 200


async def test_hangups_in_a_row(edited: Any, until: Any) -> None:
    """Whatever number of SIGHUPs comes, the file as it is after the last one is in force in the end."""
    async with edited(PLAIN) as one, trio.open_nursery() as tasks:
        node, path = one.node, one.path
        hangups = SighupHandler(one.editor)
        tasks.start_soon(hangups.answer)
        text = path.read_text()
        for number in range(1, 30):
            path.write_text(text.replace("blue: {", f"blue: {{max_subscription_count: {number}, "))
            hangups.note()
            hangups.note()
            await trio.lowlevel.checkpoint()
        await until(lambda: node.router.vpns["blue"].limits.max_subscription_count == 29)
        tasks.cancel_scope.cancel()


async def test_no_file(capfd: Any) -> None:
    """A router that was not started from a file says so."""
    async with trio.open_nursery() as tasks:
        hangups = SighupHandler(None)
        tasks.start_soon(hangups.answer)
        hangups.note()
        await trio.testing.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert "was not started from a file" in capfd.readouterr().err
