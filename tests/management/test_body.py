from typing import Any

import httpx
import pytest

from vpnrouter import limits

PATH = "/SEMP/v2/action/msgVpns/blue/queues/orders/deleteMsgs"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"[]", "the body is no JSON object"),
        (b"{", "the body is no JSON object"),
        (b"[" * 50_000, "the body is no JSON object"),
        (b"\xff", "the body is no JSON object"),
        (b'{"ids": []}', "there is no attribute ids"),
        (b'{"msgIds": 3}', "msgIds: 3 is of the wrong kind"),
        (b'{"msgIds": true}', "msgIds: True is of the wrong kind"),
    ],
    ids=lambda value: value[:20] if isinstance(value, bytes) else "",
)
async def test_what_is_refused(still: Any, opened: Any, body: bytes, said: str) -> None:
    """Nothing is done for a body that is not understood."""
    async with opened(still) as client:
        answer = await client.put(PATH, content=body)
    assert answer.status_code == 400
    assert answer.json()["meta"]["error"]["description"] == said
    assert len(still.queues.contents["blue", "orders"]) == 25


@pytest.mark.parametrize("body", [b"", b"{}", b" {}" + b" " * (limits.MANAGEMENT_BODY_BYTES - 3)])
async def test_what_is_taken(still: Any, opened: Any, body: bytes) -> None:
    """No body says the same as an empty object; it may be as long as the bound."""
    async with opened(still) as client:
        assert (await client.put(PATH, content=body)).status_code == 200
    assert still.queues.contents["blue", "orders"] == {}


@pytest.mark.parametrize("more", [1, 10_000_000])
def test_a_body_that_is_too_long(standing: Any, still: Any, more: int) -> None:
    """It is refused as soon as the bound is passed, however long it goes on."""
    with standing.serving(still) as address, httpx.Client(trust_env=False) as client:
        body = b" " * (limits.MANAGEMENT_BODY_BYTES + more)
        answer = client.put(f"http://{address}{PATH}", content=body)
    said = "the body has more than 65,536 bytes"
    assert answer.json()["meta"]["error"]["description"] == said
    assert len(still.queues.contents["blue", "orders"]) == 25
