"""What Spark and its Java process raise becomes one line."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from vpnrouter.errors import OperationError

_MESSAGE_CHARACTERS: Final = 300
_BROKEN_FILE: Final = re.compile(
    r"while reading file (?:file:)?(?://)?((?:[A-Za-z][A-Za-z0-9+.-]+://)?/?\S+?)\.?(?=\s|$)"
)
"""How Spark names a file that it cannot read: by its URI, so that spaces are encoded."""

_WRAPPING: Final = "Exception thrown in awaitResult"
"""What Spark says where a cause of its own says more."""

_LOGGED_CAUSE: Final = re.compile(
    r"^(?:Error: |Exception in thread \"main\" (?:[\w.$]+: )?|\S+ \S+ ERROR \w+: )(.+)$",
    re.MULTILINE,
)
"""How Java's output says why it gave up: Spark's launcher, an exception, a line of the log."""


class DamagedTraceFile(OperationError):
    """Spark met a file whose footer is sound and whose contents are not; `path` names it."""

    def __init__(self, path: str) -> None:
        super().__init__(f"trace file {path} is damaged")
        self.path = path


class JavaEnded(OperationError):
    """Spark's Java process ended before it was told to."""

    def __init__(self, message: str = "Spark failed: its Java process ended unexpectedly") -> None:
        super().__init__(message)


@contextlib.contextmanager
def spark_errors() -> Iterator[None]:
    """Turn whatever Spark or its Java process raises in the block into an OperationError of one
    line.

    Raises:
        DamagedTraceFile: Spark could not read an input file.
        JavaEnded: its Java process is gone.
        OperationError: any other failure.
    """
    try:
        yield
    except Py4JNetworkError:
        raise JavaEnded from None
    except (PySparkException, Py4JError) as error:
        text = text_of(error)
        broken = _BROKEN_FILE.search(text)
        if broken is not None:
            raise DamagedTraceFile(unquote(broken.group(1))) from None
        raise OperationError(f"Spark failed: {first_line(text)}") from None
    except (ConnectionError, EOFError):
        raise JavaEnded from None


def text_of(error: Exception) -> str:
    """Return what an exception of Spark says, with the messages of its causes in Java, one a line."""
    if isinstance(error, Py4JJavaError):
        with contextlib.suppress(Py4JError, OSError, EOFError):
            return _chain(error.java_exception)
        return str(error.errmsg)
    if isinstance(error, Py4JNetworkError):
        return "its Java process ended unexpectedly"
    text = str(error)
    origin = getattr(error, "_origin", None)
    if origin is not None:
        with contextlib.suppress(Py4JError, OSError, EOFError):
            text += "\n" + _chain(origin)
    return text


def _chain(throwable: JavaObject | None) -> str:
    """Return the messages of a Java exception and its causes, one a line; causes are few, but a loop is
    possible.
    """
    messages = []
    for _ in range(8):
        if throwable is None:
            break
        messages.append(str(throwable.getMessage() or throwable.getClass().getSimpleName()))
        throwable = throwable.getCause()
    return "\n".join(messages)


def first_line(text: str) -> str:
    """Return the line of a text that says most, cut where it is long."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no reason given"]
    line = next((line for line in lines if not line.startswith(_WRAPPING)), lines[0])
    return line if len(line) <= _MESSAGE_CHARACTERS else line[:_MESSAGE_CHARACTERS] + " …"


def logged_cause(log: Path | None) -> str | None:
    """Return the first error in Java's output, None when there is none."""
    if log is None:
        return None
    match = _LOGGED_CAUSE.search(log.read_text(errors="replace"))
    return first_line(match.group(1)) if match else None
