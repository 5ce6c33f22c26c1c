"""Raises an exception in a function of the pure build, before it has done anything or when it has done everything."""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any, Final


class Planted(RuntimeError):
    """What nobody expects."""


ENTRY: Final = "call"
RETURN: Final = "return"

Place = tuple[CodeType, str]
"""A function, and whether it raises before it has done anything or when it has done everything."""


class Planter:
    """Raises once in a function, in the thread that it was made in."""

    def __init__(self) -> None:
        self.fired = False
        self._code: CodeType | None = None
        self._phase = ENTRY

    def plant(self, place: Place) -> None:
        """Raise at the next passing of a place."""
        self._code, self._phase = place
        self.fired = False
        sys.settrace(self._call)

    def stop(self) -> None:
        """Raise no more."""
        self._code = None
        sys.settrace(None)

    def _call(self, frame: FrameType, what: str, _: object) -> Any:  # noqa: ANN401 - what a trace function returns
        if frame.f_code is not self._code:
            return None
        if self._phase == ENTRY:
            self._raise(frame)
        frame.f_trace_lines = False
        return self._step

    def _step(self, frame: FrameType, what: str, value: object) -> Any:  # noqa: ANN401 - what a trace function returns
        # None is also what a function returns that raises.
        if what == RETURN and frame.f_code is self._code:
            self._raise(frame)
        return self._step

    def _raise(self, frame: FrameType) -> None:
        self.fired = True
        self._code = None
        raise Planted(f"{frame.f_code.co_qualname} ({self._phase})")
