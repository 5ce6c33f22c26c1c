from vpnrouter.config.problem import Position, Problem, show_path


def test_text() -> None:
    """A problem reads FILE:LINE:COLUMN: message; a warning says that it is one."""
    place = Position("edge.yaml", 3, 7)
    assert str(Problem(place, "error", "no")) == "edge.yaml:3:7: no"
    assert str(Problem(place, "warning", "hm")) == "edge.yaml:3:7: warning: hm"


def test_path() -> None:
    """A path reads as people write it."""
    assert show_path(("msg_vpns", "blue", "bridges", "b", "remote_msg_vpns", 0, "name")) == (
        "msg_vpns.blue.bridges.b.remote_msg_vpns[0].name"
    )
    assert show_path(()) == ""
