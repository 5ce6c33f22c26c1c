"""Bridges between message VPNs: theory of operation of a link and its two halves.

docs/bridges.md is the operator's view, docs/link-protocol.md the wire: LINK-n names its clauses. docs/bridge-states.md
draws the states of a bridge. Decision 6 says why one connection carries two halves.

The parts
---------
    Bridge       bridge.py         the record of one bridge: states, counters, why it is not up
    Machine      machine.py        what a bridge does next, without I/O: dial, reuse a link, move, wait
    Link         link.py           one connection: frames, handshake, heartbeats; at most one half of each kind
      OwnHalf    own_half.py       our bridge: logs in at the peer, subscribes, receives
      PeerHalf   peer_half.py      the peer's bridge: is a client here (link_client.py), and is sent what it attracts
    LinkRegistry link_registry.py  all links of a router, and the records of the peers' bridges
    BridgeLook   look.py           a bridge at one moment, which its status and its metrics (status.py) are read from

A half begins with a HELLO, in either direction, and ends with its link, by DETACH, or because another connection takes
its place. A link lives as long as one of its halves. Each side may begin its half over a connection that the other side
dialled, once both have proved who they are (LINK-39).

Both halves share one client in the message VPN. It is the subscriber of what the peer's bridge attracts and the
publisher of what our bridge brings; so nothing goes back where it came from (promise NOLOCAL).

Direct messages
---------------
The own half asks for filters (`want`): the difference to what is subscribed goes out as SUBSCRIBE and UNSUBSCRIBE, new
ones first. What arrives has to match a filter that is, or was until the peer's answer, subscribed
(`SubscribedFilters`); the hop limit, the path of visited message VPNs and the ids of copies decide whether it enters
(receive.py). Frames that need none of this cross in batches: a DIRECT frame is an MQTT 5 PUBLISH.

The peer's half judges each filter by the rights of the login (peer_subscriptions.py), subscribes the client, and
answers with a code for each. Retained messages are sent in slices, and SNAPSHOT_END says that they were all. The own
half then clears what the remote retains no more (snapshot.py).

Guaranteed messages
-------------------
Each flow takes from one queue of the remote message VPN.

    remote                                        here
    FlowSender (flow_sender.py)                   FlowReceiver (flow_receiver.py)
    is a consumer of the queue  ── GUARANTEED ──▶ publishes in the message VPN, in one unit with the position
    settles, when synced:       ◀── ACK ───────── after that unit is synced
    says that it has            ── FORGET ──────▶ the position need not be known any more

A position is the id of the message in the remote's spool. The receiver keeps the positions that it has accepted and the
sender may not know of (received_positions.py); they are in the store, so that a message that comes again after any
crash, at either end, is known (promise ONCE). Positions belong to a store and a queue: a bridge may fail over to
another remote and come back.

A message that is refused here is not acknowledged. It is tried again, and `on_reject` says what waits behind it
(parking_lot.py): everything, its lane, or nothing. Two messages of one lane never change their order.

How many messages may be on the way is the receiver's to say (BIND, ACK). By default there is no fixed number, only the
bound of the queue and 16 MiB, so that distance costs latency and not throughput. FLOW_STATUS tells how often a message
had to wait for the window.

A half that moves
-----------------
Fail-back, a new connection after a change, and the merge of two connections are one procedure. The new half logs in
with `resume` and has the old one's subscriptions from its first moment; the old link says that it is over (`part`), and
the new one is read only then. So each message comes once and in order (LINK-20). The receiver of a flow outlives its
halves.

Ends
----
Halves and links give back what they hold by named steps (core/fault_barrier.py), and then know each other no more: what
a peer had asked for may be much, and is not left to the garbage collector. Counters are taken from the link when it is
lost: for each bridge received = delivered + discarded + in flight, at each instant (promise BALANCE, counters.py).
"""
