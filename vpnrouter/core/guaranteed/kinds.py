"""Kinds of endpoints."""

from typing import Final

QUEUE: Final = 0
TOPIC_ENDPOINT: Final = 1
SESSION: Final = 2
"""The queue behind an MQTT session's subscriptions of QoS 1 and 2."""
PARKING: Final = 3
"""The parking lot of a bridge."""
REPLAY_LOG: Final = 4
"""What replays are made from."""

KIND_NAMES: Final = ("queue", "topic-endpoint", "session", "parking-lot", "replay-log")

AGAIN: Final = 1
"""Kind of an endpoint's timer after a delivery that raised, where no flow was to be closed. Other timers have 0."""
