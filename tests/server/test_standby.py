"""A half that stands by: when it counts as healthy, and what is left of it."""

from typing import Any

import trio

ONE = {"name": "blue", "location": "one", "connect_order": 1}
TWO = {"name": "blue", "location": "two", "connect_order": 2}


async def crossing(sea: Any, **connection: Any) -> Any:
    """A bridge that is up to its second best remote; the best one has just come back."""
    core = sea.island("core", "yellow")
    sea.island("one", "blue")
    sea.island("two", "blue")
    sea.down.add("one")
    core.bridge({"remote_msg_vpns": [ONE, TWO], "remote_connection": connection})
    await sea.until(lambda: core.runner.record.is_up)
    sea.down.clear()
    return core


def test_it_stands_without_subscriptions(voyage: Any) -> None:
    """While it stands by it attracts nothing, and no state or counter of the bridge shows it."""

    async def tell(sea: Any) -> None:
        core = await crossing(sea, failback_delay=20, retry_delay=1)
        runner = core.runner
        await sea.until(
            lambda: runner.machine.standby is not None and runner.machine.standby.welcomed
        )
        standby = runner.machine.standby
        assert runner.halves[standby.number].wanted == {}
        await trio.sleep(5)
        assert sea.islands["one"].vpn.subscription_count == 1
        assert runner.record.remote_address.startswith("two")
        assert runner.half.link.peer.startswith("two")

    voyage(tell)


def test_nothing_is_left_of_it(voyage: Any) -> None:
    """A bridge that is switched off or removed logs out where it stands by as well."""

    async def tell(sea: Any) -> None:
        core = await crossing(sea, failback_delay=20, retry_delay=1)
        await sea.until(lambda: core.runner.machine.standby is not None)
        core.change(enabled=False)
        await trio.sleep(2)
        assert sea.standing() == []
        core.change(enabled=True)
        await sea.until(lambda: core.runner.record.is_up)
        core.runner.remove()
        await trio.sleep(2)
        assert sea.standing() == []
        assert core.book.out_mappings == {}

    voyage(tell)
