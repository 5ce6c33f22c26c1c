"""All findings about subscriptions together, on a mesh where all is well and on an empty one."""

from typing import Any


def test_sound_mesh(mesh: Any) -> None:
    """What is subscribed is published, what crosses is received: nothing but remarks."""
    nodes = [f"r{number}/v" for number in range(6)]
    for at, node in enumerate(nodes):
        mesh.sub(node, f"c{at}", "orders/+/new")
        mesh.sub(node, f"c{at}", f"orders/{at}/new")
        mesh.sub(node, f"c{at}", "$share/g/orders/#")
        mesh.publish(node, f"orders/{at}/new", 200)
        mesh.deliver(node, f"c{at}", f"orders/{at}/new", 200)
        # A ring in both directions; what comes is received and goes no farther.
        for other in (nodes[at - 1], nodes[(at + 1) % len(nodes)]):
            mesh.bridge(node, other, "orders/>")
            mesh.cross(node, other, f"orders/{at}/new", 200)
            mesh.deliver(other, f"c{nodes.index(other)}", f"orders/{at}/new", 200)
    found = mesh.find()
    assert {one.kind for one in found} == {"covered"}
    assert len(found) == 6


def test_broad_bridge(mesh: Any) -> None:
    """A subscription that brings too much is one finding, on the edge where the waste begins."""
    mesh.bridge("a/v", "b/v", ">")
    mesh.bridge("b/v", "c/v", ">")
    for number in range(10):
        topic = f"orders/{number}/new"
        mesh.publish("a/v", topic, 20)
        mesh.cross("a/v", "b/v", topic, 20)
        mesh.deliver("b/v", "one", topic, 20)
    mesh.publish("a/v", "logs/x", 300)
    mesh.cross("a/v", "b/v", "logs/x", 300)
    mesh.cross("b/v", "c/v", "logs/x", 300)
    mesh.cross("b/v", "c/v", "orders/1/new", 20)
    mesh.deliver("c/v", "two", "orders/1/new", 20)
    (one,) = mesh.find()
    assert (one.kind, one.router, one.peer_router, one.topic) == ("over_broad", "b", "a", ">")
    assert (one.detail, one.value) == ("orders/*/new", 0.6)


def test_nothing_at_all(mesh: Any) -> None:
    """No rows, no findings."""
    assert mesh.find() == []
