"""Throw bytes at the topic grammar: garbage, and good topics and filters with something changed.

    python fuzz/topics.py --seconds 60 --seed 1

Whatever comes gives a value or a TopicError that names a clause; anything else ends the run with
the input in hexadecimal, exit 1. A filter that is accepted is held against the oracle: by itself,
in the trie, in the cache, and through its forms in the other dialect.
"""

import argparse
import random
import sys
import time
from typing import Final

from vpnrouter.errors import TopicError
from vpnrouter.topics.algebra import covers, matches, witness
from vpnrouter.topics.cache import RouteCache
from vpnrouter.topics.grammar import MQTT, SMF, Filter, parse_filter, parse_topic, to_mqtt, to_smf
from vpnrouter.topics.oracle import oracle_matches
from vpnrouter.topics.trie import SubscriptionTrie

CORPUS: Final = (
    b"a/b/c",
    b"/a//b/",
    b"a/*/b*/>",
    b"*/>",
    b"a/+/#",
    b"#share/g/a/>",
    b"$share/g/+/a",
    b"#noexport/#share/g/a/b*",
    b"!a/*",
    b"$SYS/a",
    b"#P2P/QUE/q",
    "flüge/日本/🚀*".encode(),
    b"a/" * 127 + b"a",
)
SPICE: Final = (
    b"/",
    b"*",
    b">",
    b"+",
    b"#",
    b"!",
    b"$",
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b"#share/",
)


def change(raw: bytes, draw: random.Random) -> bytes:
    """Put in, cut out, double or overwrite a few bytes."""
    data = bytearray(raw)
    for _ in range(draw.randint(0, 4)):
        at = draw.randrange(len(data) + 1)
        match draw.randrange(4):
            case 0:
                data[at:at] = draw.choice(SPICE)
            case 1:
                del data[at : at + draw.randint(1, 6)]
            case 2:
                data[at:at] = data[at : at + draw.randint(1, 12)]
            case _:
                data[at : at + 1] = bytes((draw.randrange(256),))
    return bytes(data)


class Found(Exception):
    """Two answers that should agree do not."""


def check_filter(filter_: Filter, topic: str) -> None:
    """Hold one accepted filter against the oracle, on one accepted topic.

    Raises Found when an answer is wrong.
    """
    expected = oracle_matches(filter_.text, filter_.dialect, topic)
    trie = SubscriptionTrie()
    trie.insert(filter_, 1)
    cache = RouteCache()
    cache.put(topic.encode(), topic, 1)
    cached = bool(cache.entries)
    smf = [parse_filter(t, SMF, exceptions=filter_.exception) for t in to_smf(filter_)]
    mqtt = to_mqtt(filter_)
    shared = witness(filter_, filter_)
    answers = {
        "matches": matches(filter_, topic) == expected,
        "trie": trie.match(topic) == [1] * expected,
        "has_match": trie.has_match(topic) == expected,
        "cache": cache.invalidate(filter_) == (expected and cached),
        "remove": trie.remove(filter_, 1) and not trie.has_match(topic),
        "to_smf": not smf or any(matches(f, topic) for f in smf) == expected,
        "to_mqtt": mqtt is None
        or matches(parse_filter(mqtt, MQTT, exceptions=filter_.exception), topic) == expected,
        "covers": covers(filter_, filter_),
        "witness": matches(filter_, shared) if shared is not None else not expected,
    }
    wrong = [name for name, right in answers.items() if not right]
    if wrong:
        raise Found(f"{', '.join(wrong)} of {filter_!r} on {topic!r}")


def check(data: bytes, topic: str, draw: random.Random) -> tuple[int, str]:
    """Parse `data` in every way; returns how many ways were accepted, and the last good topic."""
    accepted = 0
    for mqtt in (True, False):
        try:
            topic = parse_topic(data, mqtt=mqtt)
            accepted += 1
        except TopicError as error:
            require_clause(error)
    text = data.decode("utf-8", "surrogateescape")
    for dialect in (SMF, MQTT):
        try:
            filter_ = parse_filter(text, dialect, exceptions=draw.random() < 0.5)
        except TopicError as error:
            require_clause(error)
            continue
        accepted += 1
        check_filter(filter_, topic)
    return accepted, topic


def require_clause(error: TopicError) -> None:
    """A refusal names its clause.

    Raises Found when it does not.
    """
    if not error.clause.startswith("TOPIC-"):
        raise Found(f"no clause: {error}")


def main() -> int:
    """Run until the time is over; 0 when nothing was found."""
    parser = argparse.ArgumentParser(description="Fuzz the topic grammar.")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    good = list(CORPUS)
    topic = "a/b/c"
    runs = accepted = 0
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        for _ in range(100):
            garbage = draw.random() < 0.1
            data = (
                draw.randbytes(draw.randint(0, 30)) if garbage else change(draw.choice(good), draw)
            )
            runs += 1
            try:
                count, topic = check(data, topic, draw)
            except Exception as error:  # noqa: BLE001 - finding these is the purpose
                print(f"{type(error).__name__}: {error}: {data.hex()}", file=sys.stderr)
                return 1
            accepted += count
            # What is accepted breeds, up to a bound, so that runs go deeper than one change.
            if count and len(data) < 600:
                if len(good) < 400:
                    good.append(data)
                else:
                    good[draw.randrange(len(CORPUS), len(good))] = data
    print(f"topics: {runs} inputs, {accepted} accepted, seed {options.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
