from vpnrouter.simulation.templates import Templates, Topics


def test_rows_know_their_parents() -> None:
    """Distances to parent and entry row are kept, not the rows, so that templates can be stamped anywhere."""
    templates = Templates()
    first = templates.begin()
    top = templates.add(3, {"event": "ingress", "vpn": "v"})
    middle = templates.add(3, {"event": "enqueue"}, parent=top, entry=top, base_ns=5.0)
    low = templates.add(3, {"event": "deliver"}, parent=middle, entry=top, spread_ns=2.0)
    second = templates.begin()
    alone = templates.add(4, {"event": "link_up"})
    assert (templates.first, templates.length) == ([0, 3], [3, 1])
    assert (first, second) == (0, 1)
    assert [top, middle, low, alone] == [0, 1, 2, 3]
    assert templates.up == [0, 1, 1, 0]
    assert templates.entry == [0, 1, 2, 0]
    assert templates.depth == [0, 1, 2, 0]
    assert templates.router == [3, 3, 3, 4]
    assert templates.columns["event"] == ["ingress", "enqueue", "deliver", "link_up"]
    assert templates.columns["vpn"] == ["v", None, None, None]


def test_a_topic_has_one_number() -> None:
    """Numbers count from 0 in the order of first use."""
    topics = Topics()
    assert [topics.number(name) for name in ("a", "b", "a", "c")] == [0, 1, 0, 2]
    assert topics.names == ["a", "b", "c"]
