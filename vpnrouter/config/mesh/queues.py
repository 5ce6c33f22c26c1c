"""Checks the queues that bridges take guaranteed messages from, seen from both sides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from vpnrouter.config.mesh.graph import Graph, queue_topics
from vpnrouter.config.mesh.remotes import ConfiguredRemote
from vpnrouter.config.mesh.topics import TopicSet, account_of, login
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.problem_list import MeshProblems
from vpnrouter.config.router import Loaded

_WITHOUT_CONSUMING: Final = ("no-access", "read-only")


def check_bound_queue(
    problems: MeshProblems, configured: ConfiguredRemote, peer: Loaded, vpn: MsgVpn, where: str
) -> None:
    """Report what keeps a bridge from the queue that it is to be bound to. `where` names `vpn`."""
    name = configured.remote.queue_binding
    if name is None:
        return
    vpn_path = ("msg_vpns", configured.remote.name)
    path = (*configured.path, "queue_binding")
    queue = vpn.queues.get(name)
    at = peer.positions.key_at((*vpn_path, "queues", name))
    username = login(configured).client_username
    if not peer.config.guaranteed_msging.enabled:
        there = peer.positions.key_at(("guaranteed_msging", "enabled"))
        message = f"router {peer.config.router.name} has no guaranteed messaging ({there})"
        problems.add("error", configured.loaded, path, message)
    elif queue is None:
        problems.add("error", configured.loaded, path, f"{where} has no queue {name} ({at})")
    elif queue.access_type != "exclusive":
        problems.add(
            "error", configured.loaded, path, f"queue {name} of {where} is not exclusive ({at})"
        )
    elif queue.permission in _WITHOUT_CONSUMING and queue.owner != username:
        message = f"queue {name} of {where} does not let the bridge consume ({at})"
        problems.add("error", configured.loaded, path, message)
    elif not queue.max_bind_count:
        message = f"queue {name} of {where} takes no consumer: its max_bind_count is 0 ({at})"
        problems.add("error", configured.loaded, path, message)
    else:
        if not queue.egress_enabled:
            message = f"queue {name} of {where} delivers nothing: egress_enabled is false ({at})"
            problems.add("warning", configured.loaded, path, message)
        _check_receiving(problems, configured, peer, vpn, where)


def _check_receiving(
    problems: MeshProblems, configured: ConfiguredRemote, peer: Loaded, vpn: MsgVpn, where: str
) -> None:
    """Report a client username whose profile keeps guaranteed messages from it."""
    username = login(configured).client_username
    account = None if username is None else account_of(vpn, username)
    profile = None if account is None else vpn.client_profiles.get(account.client_profile)
    if account is None or profile is None or profile.allow_guaranteed_msg_receive_enabled:
        return
    profiles = ("msg_vpns", configured.remote.name, "client_profiles", account.client_profile)
    problems.add(
        "error",
        configured.loaded,
        (*configured.path, "queue_binding"),
        f"client username {username} of {where} may not receive guaranteed messages: client profile"
        f" {account.client_profile} lacks allow_guaranteed_msg_receive_enabled: true"
        f" ({peer.positions.key_at(profiles)})",
    )


def check_shared_queues(
    problems: MeshProblems, fitting: Sequence[tuple[ConfiguredRemote, Loaded]]
) -> None:
    """Report two bridges that are bound to one queue: it is exclusive, so one of them gets nothing."""
    bound: dict[tuple[str, str, str], list[ConfiguredRemote]] = defaultdict(list)
    for place, peer in fitting:
        if place.remote.queue_binding is not None:
            key = (peer.config.router.name, place.remote.name, place.remote.queue_binding)
            bound[key].append(place)
    for (router, vpn, queue), places in bound.items():
        first = places[0]
        reported = {_bridge(first)}
        for place in places[1:]:
            # Two remotes of one bridge are alternatives: it is bound to one of them at a time.
            if _bridge(place) in reported:
                continue
            reported.add(_bridge(place))
            at = first.loaded.positions.value_at((*first.path, "queue_binding"))
            problems.add(
                "warning",
                place.loaded,
                (*place.path, "queue_binding"),
                f"bridge {first.bridge_name} into {first.loaded.config.router.name}/{first.msg_vpn}"
                f" is bound to queue {queue} of {router}/{vpn} too ({at}); the queue is exclusive, so"
                " the bridge that comes second gets nothing while the first is connected",
            )


def check_losing_queues(
    problems: MeshProblems, graph: Graph, fitting: Sequence[tuple[ConfiguredRemote, Loaded]]
) -> None:
    """Warn of queues that lose messages of a bridge when they are full, because no queue there rejects on discard."""
    reported: set[tuple[tuple[str, str, str], str]] = set()
    for place, peer in fitting:
        source = peer.config.msg_vpns[place.remote.name].queues.get(
            place.remote.queue_binding or ""
        )
        if source is None or place.bridge.topic_mapping:
            continue
        brought = queue_topics(graph.topics, source)
        vpn = place.loaded.config.msg_vpns[place.msg_vpn]
        safe = [
            topics
            for queue in vpn.queues.values()
            if queue.reject_msg_to_sender_on_discard_behavior != "never"
            for topics in queue_topics(graph.topics, queue)
        ]
        for name, queue in vpn.queues.items():
            key = (_bridge(place), name)
            if queue.reject_msg_to_sender_on_discard_behavior != "never" or key in reported:
                continue
            topic = _lost_topic(graph, brought, queue_topics(graph.topics, queue), safe)
            if topic is not None:
                reported.add(key)
                at = place.loaded.positions.value_at((*place.path, "queue_binding"))
                path = ("msg_vpns", place.msg_vpn, "queues", name)
                problems.add(
                    "warning",
                    place.loaded,
                    (*path, "reject_msg_to_sender_on_discard_behavior"),
                    f"bridge {place.bridge_name} brings guaranteed messages such as {topic} ({at}), and"
                    " the queue loses them while it is full: with never, and no queue beside it that rejects,"
                    " nothing holds them back at the remote",
                )


def _lost_topic(
    graph: Graph,
    brought: Sequence[TopicSet],
    taken: Sequence[TopicSet],
    safe: Sequence[TopicSet],
) -> str | None:
    """Return a topic that the bridge brings and the queue takes, and that no rejecting queue surely takes as well."""
    for one in brought:
        for other in taken:
            common = graph.topics.common(one, other)
            if common is not None and not any(
                graph.topics.holds_all(each, common) for each in safe
            ):
                return graph.topics.example(common)
    return None


def check_end_to_end(
    problems: MeshProblems,
    mesh: Sequence[Loaded],
    fitting: Sequence[tuple[ConfiguredRemote, Loaded]],
) -> None:
    """Report profiles whose `end_to_end_bridge` is no bridge that takes from there by a queue."""
    taking: dict[tuple[str, str, str], bool] = {}
    for place, peer in fitting:
        key = (peer.config.router.name, place.remote.name, place.bridge_name)
        taking[key] = taking.get(key, False) or place.remote.queue_binding is not None
    for loaded in mesh:
        router = loaded.config.router.name
        for vpn_name, vpn in loaded.config.msg_vpns.items():
            for name, profile in vpn.client_profiles.items():
                bridge_name = profile.end_to_end_bridge
                if bridge_name is None or taking.get((router, vpn_name, bridge_name)):
                    continue
                path = ("msg_vpns", vpn_name, "client_profiles", name, "end_to_end_bridge")
                known = (router, vpn_name, bridge_name) in taking
                why = (
                    f"bridge {bridge_name} has no queue_binding for {router}/{vpn_name}"
                    if known
                    else f"no given file describes a bridge {bridge_name} that takes from"
                    f" {router}/{vpn_name}"
                )
                if not known and bridge_name in vpn.bridges:
                    why += "; the one in this message VPN brings messages here"
                problems.add("error" if known else "warning", loaded, path, why)


def _bridge(configured: ConfiguredRemote) -> tuple[str, str, str]:
    return (configured.loaded.config.router.name, configured.msg_vpn, configured.bridge_name)
