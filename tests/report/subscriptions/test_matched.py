"""Which subscriptions matched anything."""

from typing import Any

from vpnrouter.report.subscriptions.held import held, unmet


def test_looks_at_the_whole_message_vpn(mesh: Any) -> None:
    """A topic that went to others, or to nobody, was there all the same."""
    for filter_ in ("a/b", "a/+", "+/b", "b", "b/+", "+/c", "a", "#", "$share/g/a/+"):
        mesh.sub("r/v", "one", filter_)
        mesh.sub("r/w", "two", filter_)
    mesh.sub("r/w", "two", "+/SYS")
    mesh.use("r/v", "discard", "a/b", 9)
    mesh.use("r/w", "ingress", "$x/SYS", 9)
    digests = mesh.digests()
    rows = unmet(held(digests["states"], mesh.span), digests["uses"]).collect()
    found = {(row["vpn"], row["filter"]) for row in rows}
    everything = {"a/b", "a/+", "+/b", "b", "b/+", "+/c", "a", "#", "$share/g/a/+"}
    assert {filter_ for vpn, filter_ in found if vpn == "w"} == {*everything, "+/SYS"}
    assert {filter_ for vpn, filter_ in found if vpn == "v"} == {"b", "b/+", "+/c", "a"}
