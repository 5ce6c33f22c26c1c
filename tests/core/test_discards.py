"""vpnrouter.core.losses: messages discarded, by reason."""

from vpnrouter.core.discards import MSG_TOO_BIG, NO_SUBSCRIPTION_MATCH, REASONS, Discards


def test_reasons_are_distinct() -> None:
    """Each reason has a name of its own, in the field's spelling."""
    assert len(set(REASONS)) == len(REASONS)
    assert all(reason == reason.lower() and " " not in reason for reason in REASONS)


def test_counting() -> None:
    """Counts add up by reason, and so do two sets of them."""
    one, two = Discards(), Discards()
    one.add(MSG_TOO_BIG)
    one.add(MSG_TOO_BIG, 2)
    two.add(MSG_TOO_BIG, 4)
    two.add(NO_SUBSCRIPTION_MATCH)
    one.merge(two)
    assert one.counts == {MSG_TOO_BIG: 7, NO_SUBSCRIPTION_MATCH: 1}
    assert (one.total(), two.total()) == (8, 5)
