"""A transform that tells what each of its steps does to a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter.errors import TransformError
from vpnrouter.text import printable
from vpnrouter.transforms.draft import Draft
from vpnrouter.transforms.transform import Transform

if TYPE_CHECKING:
    from vpnrouter.core.message import Message

SHOWN: Final = 120
"""Characters of a value that are shown."""


@final
class ToldTransform(Transform):
    """Has the steps of `transform`. `lines` say what they did to the message that was changed last."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform.steps, transform.on_error)
        self.lines: list[str] = []

    @override
    def change(self, message: Message, now_ns: int) -> str:
        self.lines = _told(self, message.copy(), now_ns)
        return super().change(message, now_ns)


def _told(transform: Transform, message: Message, now_ns: int) -> list[str]:
    draft = Draft(message, now_ns)
    lines: list[str] = []
    for number, step in enumerate(transform.steps, 1):
        who = f"step {number} ({step.shown})"
        before = _said(message, now_ns)
        try:
            if not step.concerns(draft):
                when = "" if step.when is None else step.when.text
                lines.append(f"{who} leaves it as it is: {when} is not true of it")
                continue
            step.change(draft)
        except TransformError as error:
            lines.append(f"{who} cannot change it: {error}")
            break
        after = _said(message, now_ns)
        changes = [
            f"{name} {_shown(before.get(name))} becomes {_shown(after.get(name))}"
            for name in {**before, **after}
            if before.get(name) != after.get(name)
        ]
        lines.append(f"{who}: {', '.join(changes) or 'it is so already'}")
    return lines


def _said(message: Message, now_ns: int) -> dict[str, str]:
    """Return what steps may change of a message, by name."""
    said = {
        f"property {name}": str(value)
        for name, value in message.properties().items()
        if not name.startswith("JMS") and name != "priority"
    }
    said["topic"] = message.topic.decode(errors="replace")
    said["priority"] = str(message.priority)
    if message.expires_ns:
        said["life time"] = f"{(message.expires_ns - now_ns) / 1e9:g} s"
    said["payload"] = message.mqtt().payload.decode(errors="replace")
    return said


def _shown(value: str | None) -> str:
    return "nothing" if value is None else printable(value, SHOWN) or "nothing"
