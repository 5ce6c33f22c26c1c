"""Checks what a bridge or a link of a connector does with messages that it cannot deliver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.config.checks.message_vpns import clause_of
from vpnrouter.errors import TopicError
from vpnrouter.topics.grammar import parse_topic

if TYPE_CHECKING:
    from vpnrouter.config.problem import Path
    from vpnrouter.config.problem_list import ProblemList
    from vpnrouter.settings.failures import Failures


def check_failures(problems: ProblemList, path: Path, written: Failures, queue: str | None) -> None:
    """Check the list of dead message queues of the bridge or link at `path`, which takes messages from `queue` here,
    or from none. Its addresses are the connector's matter.
    """
    for index, entry in enumerate(written.dead_msg_queues):
        at = (*path, "dead_msg_queues", index)
        if entry.queue is not None and entry.queue == queue:
            problems.error((*at, "queue"), "is the queue that the link takes from")
        elif entry.queue is not None and not problems.is_configured(
            (*path[:2], "queues", entry.queue)
        ):
            problems.warning(
                (*at, "queue"), f"there is no queue {entry.queue}: the next entry has its turn"
            )
        if entry.topic is not None:
            try:
                parse_topic(entry.topic.encode())
            except TopicError as error:
                problems.error((*at, "topic"), f"{error}{clause_of(error)}")
    used = written.then in ("dead-letter", "park") or written.expired == "dead-letter"
    if written.dead_msg_queues and not used:
        problems.key_warning(
            (*path, "dead_msg_queues"), f"takes nothing that was refused: then is {written.then}"
        )
