"""Times the topic engine: `python -m bench.topics [--subscriptions N] [--json]`.

The subscriptions of a vehicle fleet: 40 % literal, 20 % with a one-level wildcard, 15 % with a
prefix, 25 % with everything below, and three monitors across the fleet. Published topics name a
random vehicle; `matches_per_topic` says how many subscriptions they match.

Times are medians of rounds, each over topics and keys made anew, so that no hash is known before.
They include the loop of this file, about 0.03 µs a step. `cached_us` is over 1,000 topics,
`cached_all_topics_us` over as many as the cache holds, in which memory is the most of it.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from bench.machine import notes
from vpnrouter.build_info import build_kind
from vpnrouter.limits import ROUTE_CACHE_ENTRIES
from vpnrouter.topics.cache import RouteCache
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter, parse_topic
from vpnrouter.topics.trie import SubscriptionTrie

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Item = TypeVar("Item")

MEASURES: Final = (
    "alarm",
    "battery",
    "brake",
    "cabin",
    "door",
    "fuel",
    "position",
    "route",
    "speed",
    "tyre",
)
REGIONS: Final = 64
MONITORS: Final = ("fleet/>", "fleet/*/*/alarm", "*/r07/>")
PUBLISHED: Final = 100_000
"""Topics in one round."""


def topic_of(draw: random.Random, vehicles: int) -> str:
    """A topic of a random vehicle; every fifth has a fifth level."""
    vehicle = draw.randrange(vehicles)
    topic = f"fleet/r{vehicle % REGIONS:02}/v{vehicle:07}/{draw.choice(MEASURES)}"
    return f"{topic}/{draw.randrange(4)}" if draw.randrange(5) == 0 else topic


def subscription_of(number: int, draw: random.Random, vehicles: int) -> tuple[str, int]:
    """Text and dialect of one subscription; `number` chooses its sort."""
    vehicle = draw.randrange(vehicles)
    name = f"v{vehicle:07}"
    base = f"fleet/r{vehicle % REGIONS:02}/{name}"
    measure = draw.choice(MEASURES)
    sort = number % 20
    if sort < 8:
        return f"{base}/{measure}", SMF
    if sort < 10:
        return f"{base}/+", MQTT
    if sort < 12:
        return f"fleet/*/{name}/{measure}", SMF
    if sort < 14:
        return f"{base}/{measure[:3]}*", SMF
    if sort < 15:
        return f"{base[:-1]}*/{measure}", SMF
    return (f"{base}/>", SMF) if sort < 18 else (f"{base}/#", MQTT)


def resident_bytes() -> int:
    """Resident memory of this process."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def microseconds(step: Callable[[Item], object], items: list[Item]) -> float:
    """Time of one `step`, over all items."""
    begin = time.perf_counter_ns()
    for item in items:
        step(item)
    return (time.perf_counter_ns() - begin) / len(items) / 1000


def median_of(rounds: int, timed: Callable[[], float]) -> float:
    """Median of several timings, rounded to what the clock is worth."""
    return round(statistics.median(timed() for _ in range(rounds)), 4)


def measure(subscriptions: int, rounds: int) -> dict[str, object]:
    """All figures: those that end in _us in microseconds, in _bytes per subscription."""
    draw = random.Random(2013)
    vehicles = max(1, subscriptions // 5)
    texts = [(text, SMF) for text in MONITORS]
    texts += [subscription_of(n, draw, vehicles) for n in range(subscriptions - len(texts))]
    draw.shuffle(texts)
    owners = [object() for _ in texts]
    gc.freeze()  # what is the bench's own does not burden the collector
    figures: dict[str, object] = {}

    before = resident_bytes()
    begin = time.perf_counter_ns()
    filters = [parse_filter(text, dialect) for text, dialect in texts]
    figures["parse_filter_us"] = per_item(begin, len(filters))
    parsed = resident_bytes()

    trie = SubscriptionTrie()
    begin = time.perf_counter_ns()
    for filter_, owner in zip(filters, owners, strict=True):
        trie.insert(filter_, owner)
    figures["insert_us"] = per_item(begin, len(filters))
    figures["filter_bytes"] = (parsed - before) // len(filters)
    figures["trie_bytes"] = (resident_bytes() - parsed) // len(filters)

    def topics() -> list[str]:
        return [topic_of(draw, vehicles) for _ in range(PUBLISHED)]

    sample = topics()
    figures["matches_per_topic"] = round(statistics.mean(len(trie.match(t)) for t in sample), 2)
    figures["match_us"] = median_of(rounds, lambda: microseconds(trie.match, topics()))
    figures["has_match_us"] = median_of(rounds, lambda: microseconds(trie.has_match, topics()))
    figures["parse_topic_us"] = median_of(
        rounds, lambda: microseconds(parse_topic, [t.encode() for t in topics()])
    )
    figures.update(cache_figures(trie, topics, rounds))

    pairs = list(zip(filters, owners, strict=True))
    draw.shuffle(pairs)
    begin = time.perf_counter_ns()
    for filter_, owner in pairs:
        trie.remove(filter_, owner)
    figures["remove_us"] = per_item(begin, len(pairs))
    return figures


def cache_figures(
    trie: SubscriptionTrie, topics: Callable[[], Iterable[str]], rounds: int
) -> dict[str, object]:
    """What the route cache takes, filled and beyond its capacity."""
    figures: dict[str, object] = {}
    cache = RouteCache(ROUTE_CACHE_ENTRIES)
    distinct = [(t.encode(), t) for _ in range(3) for t in topics()]
    matched = trie.match(distinct[0][1])
    before = resident_bytes()
    for key, text in distinct[:ROUTE_CACHE_ENTRIES]:
        cache.put(key, text, matched)
    figures["cache_bytes"] = (resident_bytes() - before) // len(cache)

    def keys(count: int) -> list[bytes]:
        return [bytes(bytearray(key)) for key in list(cache.entries)[:count]]

    get = cache.entries.get
    figures["cached_us"] = median_of(
        rounds, lambda: statistics.median(microseconds(get, keys(1000)) for _ in range(50))
    )
    figures["cached_all_topics_us"] = median_of(
        rounds, lambda: microseconds(get, keys(ROUTE_CACHE_ENTRIES))
    )
    begin = time.perf_counter_ns()
    for key, text in distinct:
        cache.put(key, text, matched)
    figures["put_us"] = per_item(begin, len(distinct))
    longest = 0
    for key, text in distinct:
        begin = time.perf_counter_ns()
        cache.put(key, text, matched)
        longest = max(longest, time.perf_counter_ns() - begin)
    figures["put_longest_us"] = round(longest / 1000, 1)
    literal = [parse_filter(key.decode(), SMF) for key in list(cache.entries)[:1000]]
    figures["invalidate_literal_us"] = round(microseconds(cache.invalidate, literal), 3)
    one = [parse_filter(f"{text.rpartition('/')[0]}/*", SMF) for _, text in distinct[:1000]]
    figures["invalidate_wildcard_us"] = round(microseconds(cache.invalidate, one), 3)
    wide = [parse_filter("fleet/*/*/absent", SMF)] * 5
    figures["invalidate_nothing_widest_us"] = round(microseconds(cache.invalidate, wide), 1)
    return figures


def per_item(begin_ns: int, count: int) -> float:
    """Microseconds of each of `count` items since `begin_ns`."""
    return round((time.perf_counter_ns() - begin_ns) / count / 1000, 3)


def main() -> None:
    """Run the bench, print the figures on stdout."""
    parser = argparse.ArgumentParser(prog="python -m bench.topics", description=__doc__)
    parser.add_argument("--subscriptions", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.subscriptions <= len(MONITORS) or options.rounds < 1:
        parser.error("too few subscriptions or rounds")
    about: dict[str, object] = {"build": build_kind(), "subscriptions": options.subscriptions}
    print(f"{options.subscriptions} subscriptions, {build_kind()} build", file=sys.stderr)
    figures = about | measure(options.subscriptions, options.rounds) | {"machine": notes()}
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name:30} {value}")


if __name__ == "__main__":
    main()
