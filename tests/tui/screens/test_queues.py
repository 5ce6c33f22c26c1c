"""The screens of all queues, of one, and of a message."""

from typing import Any


def test_depth_readers_and_rates(looking: Any, mesh: Any) -> None:
    """A line a queue; rates from what went in and out between two looks."""
    router = mesh.edge

    async def test(seen: Any) -> None:
        await seen.press("3")
        router.publish("sensor-01", "orders/2", *[b"x"] * 120)
        for number in router.ids("blue", "orders")[:20]:
            router.router.vpns["blue"].queue("orders").delete_message(number)
        screen = await seen.look(2.0)
        row = next(line for line in screen.splitlines() if line.startswith("orders"))
        assert row.split()[:9] == ["orders", "blue", "350", "19kB", "2%", "0", "60", "10", "-"]
        assert "rows 1 to 3 of 3" in screen

    looking(test, router)


def test_usual_filters_are_the_routers_work(looking: Any, mesh: Any) -> None:
    """`f` goes through them; what does not meet one is not sent."""

    async def test(seen: Any) -> None:
        await seen.press("3")
        screen = await seen.press("f")
        assert "dead" not in screen.splitlines()[2]
        assert "rows 1 to 2 of 2  filter: with messages" in screen
        screen = await seen.press("f")
        assert "rows 1 to 1 of 1  filter: messages and no reader" in screen

    looking(test, mesh.edge)


def test_open(looking: Any, mesh: Any) -> None:
    """Enter opens the queue."""

    async def test(seen: Any) -> None:
        await seen.press("3")
        assert "queue blue/orders" in await seen.press("j", "enter")

    looking(test, mesh.edge)


async def opened(seen: Any, *keys: str) -> str:
    """The queue under the cursor, once the keys are pressed."""
    await seen.press("3")
    return await seen.press(*keys, "enter")


async def done(seen: Any) -> str:
    """The screen when the action is done."""
    await seen.app.workers.wait_for_complete()
    return await seen.look()


def test_depth_flows_and_messages(looking: Any, mesh: Any) -> None:
    """What an operator needs of a queue."""

    async def test(seen: Any) -> None:
        screen = await opened(seen, "j")
        assert "250 messages, 19kB of 1 MB (2%), oldest 5s" in screen
        assert "rows 1 to 100 of 250" in screen
        assert "orders/1 " in screen
        await seen.press("escape")
        await seen.press("j")
        screen = await seen.press("enter")
        assert "2 consumers" in screen
        assert "active-consumer 1 of 10,000 unacknowledged" in screen

    looking(test, mesh.edge)


def test_messages_page_by_page(looking: Any, mesh: Any) -> None:
    """The cursor goes on in the next page, and back."""

    async def test(seen: Any) -> None:
        await opened(seen, "j")
        assert "rows 101 to 200 of 250" in await seen.press("G", "j")
        assert "rows 201 to 250 of 250" in await seen.press("n")
        assert "rows 101 to 200" in await seen.press("p")
        assert "rows 1 to 100" in await seen.press("g", "k")
        assert seen.app.screen.query_one("#body").key == "100"

    looking(test, mesh.edge)


def test_delete_one(looking: Any, mesh: Any) -> None:
    """The message under the cursor, after a yes."""
    router = mesh.edge

    async def test(seen: Any) -> None:
        await opened(seen, "j")
        assert "Delete message 2 of queue orders?" in await seen.press("j", "d")
        await seen.press("y")
        assert "1 message deleted" in await done(seen)
        assert router.ids("blue", "orders") == [1, *range(3, 251)]

    looking(test, router)


def test_purge(looking: Any, mesh: Any) -> None:
    """How many there are stands in the question."""
    router = mesh.edge

    async def test(seen: Any) -> None:
        await opened(seen, "j")
        assert "Delete all 250 messages of queue orders" in await seen.press("P")
        await seen.press("escape")
        assert len(router.ids("blue", "orders")) == 250
        await seen.press("P", "y")
        assert "250 messages deleted" in await done(seen)
        assert "no messages" in await seen.screen()

    looking(test, router)


def test_move(looking: Any, mesh: Any) -> None:
    """To a queue that is asked for, one message or all."""
    router = mesh.edge

    async def test(seen: Any) -> None:
        await opened(seen, "j")
        await seen.press("m")
        assert "Move message 1 of queue orders to queue dead?" in await seen.write("dead")
        await seen.press("y")
        assert "1 message moved to queue dead" in await done(seen)
        await seen.press("M")
        await seen.write("dead")
        await seen.press("y")
        assert "249 messages moved to queue dead" in await done(seen)
        assert len(router.ids("blue", "dead")) == 250

    looking(test, router)


def test_move_that_is_refused(looking: Any, mesh: Any) -> None:
    """The router's words, in one line."""

    async def test(seen: Any) -> None:
        await opened(seen, "j")
        await seen.press("m")
        await seen.write("nowhere")
        await seen.press("y")
        await seen.app.workers.wait_for_complete()
        assert "queue nowhere in msgVpn blue" in (await seen.screen()).splitlines()[-2]

    looking(test, mesh.edge)


def test_gone(looking: Any, mesh: Any) -> None:
    """A queue that is removed meanwhile: the router's words, and what was known stays."""
    router = mesh.edge

    async def test(seen: Any) -> None:
        await opened(seen, "j")
        router.remove_queue("blue", "orders")
        screen = await seen.look()
        assert "queue orders in msgVpn blue" in screen.splitlines()[-2]
        assert "250 messages" in screen

    looking(test, router)


async def opened_message(seen: Any, queue: str) -> str:
    """The first message of a queue."""
    await seen.press("3")
    await seen.press("slash")
    await seen.write(queue)
    await seen.press("enter")
    return await seen.press("enter")


def test_payload_as_json_text_and_hex(looking: Any, mesh: Any) -> None:
    """JSON is shown as such at once; the other views are a key away."""

    async def test(seen: Any) -> None:
        screen = await opened_message(seen, "orders")
        assert '  "city": "Köln",' in screen
        assert "as json" in screen
        assert '{"order": 1, "city": "Köln"' in await seen.press("t")
        assert "00000000  7b 22 6f 72 64 65 72" in await seen.press("x")
        assert '  "order": 1,' in await seen.press("o")

    looking(test, mesh.edge)


def test_bytes_are_shown_as_bytes(looking: Any, mesh: Any) -> None:
    """And the attributes of the message above them."""

    async def test(seen: Any) -> None:
        screen = await opened_message(seen, "raw")
        assert "raw" in screen
        assert "00000020  20 21 22" in screen
        assert "payload of 48 bytes as hex" in screen
        await seen.press("escape")
        await seen.press("j")
        screen = await seen.press("enter")
        assert r"\x1b[2Jplain text" in screen, "what a publisher wrote commands no terminal"

    looking(test, mesh.edge)


def test_payload_is_asked_for_once(looking: Any, mesh: Any) -> None:
    """It does not change, however long one looks at it; nor does it go when the message does."""
    router = mesh.edge

    async def test(seen: Any) -> None:
        await opened_message(seen, "orders")
        router.remove_queue("blue", "orders")
        assert '"city": "Köln"' in await seen.look()

    looking(test, router)
