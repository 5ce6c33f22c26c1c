"""`GET /metrics` over HTTP."""

import gzip
from typing import Any

import pytest
import trio

from vpnrouter import limits
from vpnrouter.management.metrics import scrape

READER = {"rob": {"password": "right", "msg_vpns": ["blue"]}}


async def test_scrape(here: Any) -> None:
    """The format that scrapers know by its content type."""
    async with here.api() as client:
        answer = await client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert 'vpnrouter_ready{router="here"} 1\n' in answer.text


async def test_openmetrics(here: Any) -> None:
    """Who asks for OpenMetrics gets it."""
    accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3"
    async with here.api() as client:
        answer = await client.get("/metrics", headers={"accept": accept})
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert answer.text.endswith("# EOF\n")


async def test_user_of_one_message_vpn(here: Any) -> None:
    """Without a login there is nothing, with one what the user sees."""
    async with here.api(READER) as client:
        assert (await client.get("/metrics")).status_code == 401
        text = (await client.get("/metrics", auth=("rob", "right"))).text
    assert 'msg_vpn="blue"' in text
    assert 'msg_vpn="a' not in text
    assert "process_" not in text


@pytest.mark.parametrize(
    ("peer", "accepted", "packed"),
    [("192.0.2.1", "gzip", True), ("192.0.2.1", "identity", False), ("127.0.0.1", "gzip", False)],
)
async def test_gzip(here: Any, peer: str, accepted: str, packed: bool) -> None:
    """Large pages are compressed for whoever takes that and is far away."""
    users = {"rob": {"password": "right", "role": "read-only"}}
    headers = {"accept-encoding": accepted}
    async with (
        here.api(users, peer, auth=("rob", "right")) as client,
        client.stream("GET", "/metrics", headers=headers) as answer,
    ):
        body = b"".join([chunk async for chunk in answer.aiter_raw()])
    assert (answer.headers.get("content-encoding") == "gzip") == packed
    text = (gzip.decompress(body) if packed else body).decode()
    assert 'queue="orders"} 25\n' in text
    assert len(text) > scrape.GZIP_BYTES


async def test_small_pages_are_sent_as_they_are(here: Any) -> None:
    """Packing them would cost more than it saves."""
    users = {"rob": {"password": "right", "msg_vpns": []}}
    async with here.api(users, "192.0.2.1", auth=("rob", "right")) as client:
        answer = await client.get("/metrics")
    assert "content-encoding" not in answer.headers
    assert len(answer.content) < scrape.GZIP_BYTES


async def test_too_many_at_once(here: Any) -> None:
    """Scrapes take turns; who would be the fifth in the queue is sent away."""
    codes: list[int] = []

    async def one(client: Any) -> None:
        codes.append((await client.get("/metrics")).status_code)

    async with (
        here.api() as client,
        trio.open_nursery() as nursery,
        here.context.exposition.making,
    ):
        for _ in range(limits.METRICS_WAITING + 2):
            nursery.start_soon(one, client)
        with trio.fail_after(20):
            while len(codes) < 2:
                await trio.lowlevel.checkpoint()
    assert sorted(codes) == [200] * limits.METRICS_WAITING + [503] * 2


async def test_no_parameters(here: Any) -> None:
    """A misspelt parameter is an error."""
    async with here.api() as client:
        answer = await client.get("/metrics?x=1")
    assert answer.status_code == 400
