"""vpnrouter.report.page.curves: names that do not lie on each other."""

from vpnrouter.report.page.curves import LABEL_SIZE, seen_until


def test_of_two_names_on_one_spot_the_weightier_is_seen() -> None:
    """The other one is seen once zoomed in far enough; one that stands alone always."""
    names = [(0.0, 100.0, "first"), (40.0, 100.0, "second"), (5_000.0, 100.0, "alone")]
    until = seen_until(names, [1.0, 2.0, 0.0], unit=10.0)
    assert until[1] > 10.0
    assert until[2] > 10.0
    assert 1.0 <= until[0] < 10.0


def test_names_seen_together_do_not_overlap() -> None:
    """At every zoom the names that are seen have room."""
    names = [(float(n * 37 % 997), float(n * 91 % 499), f"router-{n}") for n in range(120)]
    until = seen_until(names, [float(n) for n in range(120)], unit=6.0)
    for unit in (6.0, 4.0, 2.7):
        seen = [name for name, most in zip(names, until, strict=True) if most >= unit]
        assert seen
        for at, (x, y, text) in enumerate(seen):
            for other_x, other_y, other in seen[at + 1 :]:
                apart_x = max(x, other_x) - min(
                    x + len(text) * LABEL_SIZE * 0.6 * unit
                    if x < other_x
                    else other_x + len(other) * LABEL_SIZE * 0.6 * unit,
                    1e9,
                )
                assert apart_x > 0 or abs(y - other_y) > LABEL_SIZE * unit * 0.9


def test_a_small_drawing_shows_all() -> None:
    """Where nothing is scaled down every name is seen."""
    assert seen_until([(0.0, 0.0, "a"), (1.0, 0.0, "b")], [1.0, 1.0], unit=1.0) == [1.0, 1.0]
