"""Guaranteed messages: theory of operation.

docs/spool.md is the operator's view; docs/architecture.md lists the files that a message passes. This text says who
holds what, and which rules keep the promises COMMIT, ALLORNONE and BALANCE.

Who holds what
--------------
The `Spool` (spool.py) is one for a router. It decides what becomes of a message, and has the messages themselves by
their ids, those of the last time in memory (`MessageCache`), all in the store. An id rises with each message that is
kept, so that the order of ids is the order of arrival.

An `Endpoint` (endpoint.py) is a queue, a topic endpoint, the queue of an MQTT session, a subscription of an AMQP client
or a replay log. It holds ids and no messages. At each instant an id that it counts is in exactly one place:

    pending        the unit that has it is not synced yet
    waiting        it is ready for a consumer: one WaitingList for each partition, with a level for each priority
    schedule       it waits for a time: `held` for its first delivery, `delayed` for another one
    order          it waits to be sorted into other partitions or priorities, after a change of the settings
    ahead          a replay brought it: it goes before all others
    Flow.unacked   a consumer has it and has not settled it
    returning      its consumer has ended, and it is on its way back
    enlisted       it is settled in a transaction that has outlived its consumer

A `Flow` (flow.py) is one consumer that is bound to one endpoint. Its subclasses belong to those who speak to consumers:
core/mqtt/consumer_flow.py, core/amqp/sending_link.py, bridges/flow_sender.py, connectors/outward.py.

The `Ledger` (vpnrouter/spool/ledger.py) knows for each message in the store which endpoints have still to settle it.
When the last one has, the message leaves the store. To the ledger messages are bytes.

The unit of work
----------------
All that happens between two commits is one `UnitOfWork`: messages with their endpoints, rows of the store that change,
and callbacks. `Spool.end_round` seals it, a thread of the edge writes and syncs it as one batch, and `Spool.committed`
ends it. Meanwhile the next unit is built. So a commit serves all publishers of its time, and one unit at most is on its
way.

    publish ──▶ unit being built ──▶ sealed, syncing ──▶ committed: ids arrive in their endpoints,
                     ▲                                    then callbacks are called, in the order of the requests
                     └── settle, expire, move, new endpoints, positions of bridges, sessions, retained messages

Four rules follow:

1. Nobody is told anything that a crash could make untrue. Whoever needs an answer leaves a `CompletionCallback` in the
   unit (`call_when_synced`), and answers in `on_outcome`.
2. What belongs together is put into one unit, and then a crash cannot part it: a QoS 2 message and its packet
   identifier; a message that came over a bridge and its position; a dead letter and the place that it left; all of a
   transaction.
3. A commit that fails is tried again until it succeeds. A unit is never taken back, since parts of it may be on disk.
   New messages are refused meanwhile (`Spool.down`), and who waits for long is told so (`on_delay`).
4. What raises while a unit is built is taken out again (`take_back`): a message is in all of its endpoints or in none.

Who gets a message
------------------
`Spool.publish` asks the route for the endpoints that match, then each of them for an `obstacle`. If one has no room and
its settings say so, the publisher is refused and nobody keeps the message (ALLORNONE); else the others keep it, and the
loss is counted at the full one. A message that no endpoint matches goes on as Direct (`pass_on`, DEMOTED) or is a
discard (UNMATCHED). A Direct message that an endpoint matches is promoted: it is kept, and nobody is answered.

An endpoint that has something to do is `dirty`. `Spool._deliver` calls `dispatch` of the dirty ones until the turn has
done enough; what is left is for the next round. `DispatchOrder` (dispatch.py) chooses flows: one flow for an exclusive
endpoint and for each partition, in turn for others, by their selectors where they have any. A flow takes as many as its
window, its client's memory and the endpoint's `max_delivered_unacked_msgs_per_flow` allow.

Nothing is delivered that is newer than the endpoint's `mark`. The mark is written ahead of what may be sent, so that
after a crash all messages up to it count as perhaps delivered (DUP, `delivery-count`), without a write per delivery.

How a message leaves
--------------------
`Flow.settle` takes one of four outcomes: ACCEPTED (it leaves), FAILED (again, and that counts towards
`max_redelivery_count`), REJECTED (dead letter), RELEASED (again, uncounted). Expiry, last value, purge and an
operator's delete and move are the other ways. All of them end in `Spool.settle`, which tells the ledger, and the
counters of the endpoint by the cause (counters.py). So received = in the endpoint + left by cause, at each instant
(BALANCE).

An endpoint that ends gives its ids to the `PurgeQueue`, which deletes them in slices, in later rounds. What a consumer
held that ends goes back at once, or in slices (returning.py), and keeps its order.

After a start
-------------
recover.py gives each endpoint its ids in portions, in the order of the ids. Messages are read when they are needed.
Rows that nobody claims (a session that has ended, a queue that is not configured) are taken by whoever made them, or
purged.
"""
