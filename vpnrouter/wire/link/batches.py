"""Many filters in few SUBSCRIBE or UNSUBSCRIBE frames (LINK-26)."""

from typing import Final

from vpnrouter import limits
from vpnrouter.wire.link import frames

_FRAME_HEAD: Final = 1 + 4 + 4
"""Type, longest length, request id."""

_FILTER_HEAD: Final = 1 + 2
"""Flags and length of one filter."""


def subscribe_frames(
    first_request_id: int,
    filters: list[tuple[int, str]],
    max_frame: int,
    selectors: dict[str, str] | None = None,
) -> list[frames.Subscribe]:
    """SUBSCRIBE frames for all `filters`, in order, none above `max_frame` bytes.

    Request ids count up from `first_request_id`. Raises ValueError for a filter that no frame can
    hold.
    """
    out: list[frames.Subscribe] = []
    known: dict[str, str] = {} if selectors is None else selectors
    batch: list[tuple[int, str]] = []
    size = _FRAME_HEAD
    for item in filters:
        need = _need(item[1], known.get(item[1], ""), max_frame)
        if batch and (size + need > max_frame or len(batch) == limits.LINK_SUBSCRIBE_FILTERS):
            out.append(_subscribe(first_request_id + len(out), batch, known))
            batch = []
            size = _FRAME_HEAD
        batch.append(item)
        size += need
    if batch:
        out.append(_subscribe(first_request_id + len(out), batch, known))
    return out


def _subscribe(
    request_id: int, batch: list[tuple[int, str]], selectors: dict[str, str]
) -> frames.Subscribe:
    mine = {text: selectors[text] for _, text in batch if text in selectors}
    return frames.Subscribe(request_id, batch, mine)


def unsubscribe_frames(
    first_request_id: int, filters: list[str], max_frame: int
) -> list[frames.Unsubscribe]:
    """UNSUBSCRIBE frames for all `filters`; see subscribe_frames."""
    pairs = [(0, text) for text in filters]
    return [
        frames.Unsubscribe(frame.request_id, [text for _, text in frame.filters])
        for frame in subscribe_frames(first_request_id, pairs, max_frame)
    ]


def _need(text: str, selector: str, max_frame: int) -> int:
    need = _FILTER_HEAD + len(text.encode("utf-8"))
    if selector:
        need += 2 + len(selector.encode("utf-8"))
    if _FRAME_HEAD + need > max_frame:
        raise ValueError(f"a filter of {need - _FILTER_HEAD} bytes in frames of {max_frame}")
    return need
