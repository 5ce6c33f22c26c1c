"""All steps of a link in turn, and what becomes of a message that one of them cannot change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from vpnrouter.core.conversion import MEASURE
from vpnrouter.errors import TransformError
from vpnrouter.transforms.draft import Content, Draft

if TYPE_CHECKING:
    from vpnrouter.core.message import Message
    from vpnrouter.transforms.steps import Step

STEP_VALUES: Final = 8
"""A step costs what so many values of AMQP do."""

DEAD_LETTER: Final = 0
PASS: Final = 1
STOP: Final = 2
"""What is done with a message that cannot be changed: it is given up, goes on as it was, or stays and ends the link."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Transform:
    """The `steps` of a link, and what is done `on_error`."""

    __slots__ = ("on_error", "steps")

    def __init__(self, steps: list[Step], on_error: int) -> None:
        self.steps = steps
        self.on_error = on_error

    def change(self, message: Message, now_ns: int) -> str:
        """Change a message that belongs to the caller alone, and count in MEASURE what that costs.

        Return why it could not be done, "" where it was. A message that could not be changed is as it was before.
        """
        MEASURE.add(len(self.steps) * STEP_VALUES)
        before = Content(message)
        draft = Draft(message, now_ns)
        for number, step in enumerate(self.steps, 1):
            try:
                if step.concerns(draft):
                    step.change(draft)
            except TransformError as error:
                before.give_back(message)
                return f"step {number} ({step.shown}): {error}"
        return ""
