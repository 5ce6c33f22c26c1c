"""Reasons in words."""

from vpnrouter.core.discard_reasons import REASONS
from vpnrouter.core.guaranteed.refusals import DISCARD_NAMES
from vpnrouter.explain.mesh_index import WORDS, counted, in_words


def test_every_reason_of_a_loss_has_words() -> None:
    """Those of Direct messages, but for bytes that are no packet, and of endpoints, as both are named."""
    assert set(REASONS) - set(WORDS) == {"parse-error"}
    assert {*DISCARD_NAMES, *DISCARD_NAMES.values()} - set(WORDS) == set()
    assert in_words("msg-too-big") == "it is too big (msg-too-big)"
    assert in_words("something") == "something"
    assert (counted(1, "queue"), counted(2_000, "queue")) == ("1 queue", "2,000 queues")
