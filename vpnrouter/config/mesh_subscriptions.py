"""Remote subscriptions and bound queues that can attract nothing, seen from the remote message VPN."""

from vpnrouter.config.filters import DIALECTS
from vpnrouter.config.load import Loaded
from vpnrouter.config.mesh_access import ALL_OF_IT, NOTHING, account_of, login, may_subscribe
from vpnrouter.config.mesh_finding import MeshFindings
from vpnrouter.config.mesh_graph import Graph, queue_topics
from vpnrouter.config.mesh_remotes import Place
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.problem import Path
from vpnrouter.errors import TopicError
from vpnrouter.topics.algebra import covers
from vpnrouter.topics.grammar import Filter, parse_filter


def check_filters_alone(found: MeshFindings, graph: Graph, place: Place) -> None:
    """Tell the filters of a bridge that no topic matches, and those that its exceptions empty."""
    parsed = _filters(place)
    exceptions = [filter_ for _, filter_ in parsed if filter_.exception]
    for path, filter_ in parsed:
        if filter_.exception:
            continue
        if graph.topics.of(filter_) is None:
            message = f"no topic that a client can publish matches {filter_.original}"
            found.tell("warning", place.loaded, path, message)
        elif graph.topics.of(filter_, exceptions) is None and not any(
            covers(each, filter_)
            for each in exceptions  # told where the file is checked by itself
        ):
            found.tell(
                "warning",
                place.loaded,
                path,
                f"attracts nothing: the exceptions of the bridge together leave nothing of"
                f" {filter_.original}",
            )


def check_filters_there(found: MeshFindings, place: Place, peer: Loaded) -> None:
    """Tell the filters of a bridge that the remote message VPN refuses."""
    vpn = peer.config.msg_vpns.get(place.remote.name)
    if vpn is None:
        return
    router = peer.config.router.name
    where = f"message VPN {place.remote.name} of router {router}"
    username = login(place).client_username
    name = f"#bridge/{place.loaded.config.router.name}/{place.msg_vpn}/{place.bridge_name}"
    for path, filter_ in _filters(place):
        refusal = _too_large(filter_, vpn)
        if refusal:
            at = peer.positions.key_at(("msg_vpns", place.remote.name))
            found.tell("warning", place.loaded, path, f"{where} refuses it: {refusal} ({at})")
        elif username is not None and not filter_.exception:
            granted = may_subscribe(vpn, username, name, filter_)
            if granted == ALL_OF_IT:
                continue
            account = account_of(vpn, username)
            profile = account.acl_profile if account is not None else "default"
            acl = ("msg_vpns", place.remote.name, "acl_profiles", profile, "subscribe_topic")
            found.tell(
                "warning",
                place.loaded,
                path,
                f"{where} {'refuses it' if granted == NOTHING else 'sends only a part of it'}: ACL profile {profile}"
                f" of client username {username} forbids to subscribe to {filter_.original}"
                f"{'' if granted == NOTHING else ' as a whole'} ({peer.positions.key_at(acl)})",
            )


def check_queue(found: MeshFindings, graph: Graph, place: Place, peer: Loaded) -> None:
    """Tell a bound queue that no topic leads into."""
    name = place.remote.queue_binding
    vpn = peer.config.msg_vpns.get(place.remote.name)
    queue = vpn.queues.get(name) if vpn is not None and name is not None else None
    if queue is None or queue_topics(graph.topics, queue):
        return
    at = peer.positions.key_at(("msg_vpns", place.remote.name, "queues", str(name)))
    why = "all its subscriptions are empty" if queue.subscriptions else "it has no subscriptions"
    found.tell(
        "warning",
        place.loaded,
        (*place.path, "queue_binding"),
        f"queue {name} of {peer.config.router.name}/{place.remote.name} attracts nothing: {why} ({at});"
        f" only what is published to $queue/{name} itself crosses",
    )


def _filters(place: Place) -> list[tuple[Path, Filter]]:
    found: list[tuple[Path, Filter]] = []
    for index, subscription in enumerate(place.bridge.remote_subscriptions):
        path: Path = (*place.bridge_path, "remote_subscriptions", index)
        if place.loaded.positions.has((*path, "topic")):
            path = (*path, "topic")
        try:
            dialect = DIALECTS[place.bridge.topic_syntax]
            found.append((path, parse_filter(subscription.topic, dialect, exceptions=True)))
        except TopicError:
            continue  # told where the file is checked by itself
    return found


def _too_large(filter_: Filter, vpn: MsgVpn) -> str:
    levels, size = len(filter_.levels), len(filter_.original.encode())
    if levels > vpn.max_topic_levels:
        return f"{filter_.original} has {levels} levels, max_topic_levels is {vpn.max_topic_levels}"
    if size > vpn.max_topic_bytes:
        return f"it has {size} bytes, max_topic_bytes is {vpn.max_topic_bytes}"
    return ""
