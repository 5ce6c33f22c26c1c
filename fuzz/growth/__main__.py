"""Looks for growth: random legal sessions at their extremes, and the memory of the router beside the bytes sent.

    python -m fuzz.growth --protocol mqtt|amqp|link|http|websocket [--seconds 60] [--seed N] [--replay FILE] [--all]

A whole router runs in its own process. A plan is a list of steps for one connection or for several, drawn before it
runs, so that a seed repeats it. measured.py says what counts as growth. A plan that fails is made shorter and printed;
`--replay` runs one that was printed (`-` is standard input). A client of another message VPN is served beside it; its
worst time is told. Exits 1 after a finding, at once or with `--all` in the end.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fuzz.growth import amqp, http, link, mqtt, websocket
from fuzz.growth.measured import Bench, Verdict
from fuzz.growth.plans import USERNAMES, Plan, Talker, Vocabulary, draw_plan, read, shortened
from fuzz.whole_router import Finding, WholeRouter

if TYPE_CHECKING:
    from collections.abc import Callable

    from fuzz.growth.talking import Talk

TRIES: Final = 40
SHORTENED_S: Final = 120.0
"""How often a plan that fails is run again, and for how many seconds, to make it shorter."""

PROTOCOLS: Final[dict[str, tuple[type[Talk], Vocabulary, str]]] = {
    "amqp": (amqp.AmqpTalk, amqp.WORDS, "amqp"),
    "http": (http.HttpTalk, http.WORDS, "http"),
    "link": (link.LinkTalk, link.WORDS, "link"),
    "mqtt": (mqtt.MqttTalk, mqtt.WORDS, "mqtt"),
    "websocket": (websocket.WebSocketTalk, websocket.WORDS, "ws"),
}
"""How a client talks, what it does, and the listener that it talks to."""


def talker(
    plan: Plan,
    bench: Bench,
    router: WholeRouter,
    number: int,
    name: str,
    watch: Callable[[int], None],
) -> Talker:
    """One client of a plan."""
    talk, _, listener = PROTOCOLS[plan.protocol]
    made = talk(router.ports[listener][0], f"u{number % USERNAMES}", name, watch)
    if isinstance(made, link.LinkTalk):
        made.doors = bench.doors
    return made


def tell(plan: Plan, found: Verdict, bench: Bench) -> None:
    """Print a plan that failed, made shorter."""
    print(f"replay: {plan.text()}", file=sys.stderr, flush=True)
    ends = time.monotonic() + SHORTENED_S

    def fails(other: Plan) -> bool:
        return time.monotonic() < ends and bench.judge(other).kind == found.kind

    short = shortened(plan, fails, TRIES)
    again = bench.judge(short)
    print(f"finding: {again.text() if again.kind else found.text()}", file=sys.stderr)
    print(f"    {short.lines()}\nreplay: {short.text()}", file=sys.stderr, flush=True)


def fuzz(protocol: str, seed: int, seconds: float, bench: Bench, *, goes_on: bool) -> int:
    """Run plans for so long; how many failed. Raises Finding where the router does worse than grow."""
    _, words, _ = PROTOCOLS[protocol]
    ends = time.monotonic() + seconds
    number = failed = 0
    while time.monotonic() < ends:
        plan = draw_plan(random.Random(f"{seed}/{number}"), protocol, words)
        try:
            found = bench.judge(plan)
        except Finding:
            print(f"plan {number}: {plan.lines()}\nreplay: {plan.text()}", file=sys.stderr)
            raise
        print(f"plan {number}: {found.text()}", flush=True)
        if found.kind:
            failed += 1
            tell(plan, found, bench)
            if not goes_on:
                break
        number += 1
    return failed


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--protocol", choices=sorted(PROTOCOLS), default="mqtt")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--replay", metavar="FILE")
    parser.add_argument("--all", action="store_true", help="go on after a finding")
    options = parser.parse_args()
    seed = random.SystemRandom().getrandbits(32) if options.seed is None else options.seed
    failed = 0
    with tempfile.TemporaryDirectory() as folder, Bench(Path(folder), talker) as bench:
        try:
            if options.replay:
                text = (
                    sys.stdin.read()
                    if options.replay == "-"
                    else Path(options.replay).read_text("utf-8")
                )
                found = bench.judge(read(text.removeprefix("replay: ")))
                print(found.text())
                failed = bool(found.kind)
            else:
                print(f"{options.protocol}, seed {seed}", flush=True)
                failed = fuzz(options.protocol, seed, options.seconds, bench, goes_on=options.all)
        except Finding as finding:
            print(f"finding with seed {seed}: {finding}", file=sys.stderr)
            return 1
        print(
            f"{bench.sent >> 20} MiB sent, {failed} findings; the worst of the other client was {bench.worst:.3f} s"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
