"""Schemathesis against the description of the whole application: whatever is sent, no answer is a fault.

Each run draws a seed and prints it with what fails; VPNROUTER_SEED repeats one.
"""

import contextlib
import os
import random
import time
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from management_routers import serving

SEED = int(os.environ.get("VPNROUTER_SEED", "0")) or random.SystemRandom().randrange(1 << 32)

LONG = bool(os.environ.get("VPNROUTER_LONG"))

QUICK_S = 12.0
"""Seconds of the short run; what is left of the operations then is left to the long one."""

NO_JSON = ("/metrics",)
"""Paths whose answers are no JSON."""


POSITIVE = schemathesis.GenerationMode.POSITIVE

KNOWN = {
    "msgVpnName": "blue",
    "queueName": "orders",
    "bridgeName": "from-red",
    "bridgeVirtualRouter": "auto",
    "bridgeKey": "from-red,auto",
    "remoteMsgVpnName": "red",
    "remoteMsgVpnLocation": "127.0.0.1:55556",
    "clientUsername": "alice",
    "clientProfileName": "bridging",
    "aclProfileName": "default",
}
"""Names of what is there: a name that is drawn leads nowhere."""


def operations(url: str) -> list[Any]:
    """All operations of a served application, in an order that the seed draws."""
    # On a busy machine the document takes longer than schemathesis waits.
    document = requests.get(f"{url}/SEMP/v2/openapi.json", timeout=120).json()
    schema: Any = schemathesis.openapi.from_dict(document)
    found = [each.ok() for each in schema.get_all_operations()]
    random.Random(SEED).shuffle(found)
    return found


def examine(operation: Any, url: str, mode: Any, examples: int, *, known: bool) -> int:
    """Send requests made for one operation, to what is there or to anything; returns how many."""
    names = {
        each.name: KNOWN[each.name]
        for each in operation.path_parameters
        if known and each.name in KNOWN
    }
    sent = 0
    session = requests.Session()
    session.trust_env = False

    @seed(SEED)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode, path_parameters=names or None))
    def send(case: Any) -> None:
        nonlocal sent
        sent += 1
        answer = case.call(base_url=url, session=session, timeout=20)
        told = f"seed {SEED}: {case.as_curl_command()} -> {answer.status_code} {answer.text[:500]}"
        assert answer.status_code < 500, told
        if answer.status_code >= 400 and not case.path.startswith(NO_JSON):
            error = answer.json()["meta"]["error"]
            assert error["description"], told
            assert answer.status_code in {400, 403, 404, 405}, told

    # What takes anything cannot be asked wrongly.
    with session, contextlib.suppress(Unsatisfiable):
        send()
    return sent


def modes_of(operation: Any) -> list[Any]:
    """How requests are made: names in a path cannot be wrong, and it takes long to find that out."""
    wrong = operation.body or any(each.name == "count" for each in operation.query)
    return list(schemathesis.GenerationMode)[: 2 if wrong else 1]


def run(url: str, examples: int, seconds: float) -> tuple[int, int]:
    """Examine operations until the time is over; returns how many of them, and how many requests."""
    sent = looked = 0
    wanted = operations(url)
    until = time.monotonic() + seconds
    for operation in wanted:
        if time.monotonic() > until:
            break
        looked += 1
        for mode in modes_of(operation):
            sent += examine(operation, url, mode, examples, known=True)
        sent += examine(operation, url, POSITIVE, examples, known=False)
    return looked, sent


@pytest.fixture
def url(desk: Any) -> Any:
    """Where an application with all its parts is served."""
    with serving(desk.application()) as place:
        yield place


def test_no_request_is_answered_by_a_fault(url: str, editor: Any) -> None:
    """A few requests to as many operations as the time allows; with VPNROUTER_LONG many, to all of them."""
    digest = editor.digest()
    examples, seconds = (40, 240.0) if LONG else (2, QUICK_S)
    looked, sent = run(url, examples, seconds)
    print(f"seed {SEED}: {looked} operations, {sent} requests")
    assert looked
    assert sent
    assert editor.digest() != digest or not LONG
    assert requests.get(f"{url}/health/live", timeout=20).status_code == 200
