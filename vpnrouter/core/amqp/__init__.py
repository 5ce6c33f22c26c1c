"""AMQP 1.0 on the server's side: theory of operation.

docs/amqp.md is what clients see; numbers in parentheses are sections of AMQP 1.0 (ISO/IEC 19464). The codec is
vpnrouter/wire/amqp; decision 10 says why it and this engine are our own.

The layers
----------
    AmqpConnection  connection.py     protocol headers, SASL, open and close; a table of states (connection_states.py)
    AmqpSession     session.py        windows of frames in both directions, links by handle, deliveries by id (2.5)
    Link            link.py           what both directions have in common
      ReceivingLink receiving_link.py the client sends: credit, parts of messages, outcomes; also the coordinator (4)
      SendingLink   sending_link.py   the client is sent: from a queue or subscription (AmqpFlow), or Direct messages

`attach` (attach.py) makes a link. `Wish` and `Node` (termini.py) say what a source or target asks for; subscriptions.py
finds or makes the endpoint behind a topic, by its owner, the client username. `AmqpClient` (client.py) is who
publishes, binds and subscribes, with the rights of the login (login.py).

A message of AMQP stays as it came: the *content*, from its message annotations on, is kept and sent on byte for byte
(core/conversion.py). Header and delivery annotations belong to one hop, and are written anew. What routing needs is
read from the content without an object for each value. Only where it crosses to MQTT it is put into other terms.

A message that comes
--------------------
1. The connection finds frames. Transfers that are alike and whole, settled and Direct, are handled as a burst
   (`forward` in receiving_link.py): the topic is known, and they go to the outboxes of their receivers at once.
2. Others become a `Delivery`, until their last part has come. The link's credit is counted by messages; the link gives
   new credit when half of it is used, and none while its publisher is held back.
3. A message that is not settled goes to the spool, with the delivery's id as the token. `on_outcome` answers with
   `accepted` or `rejected` when the unit is synced. `settled` ones are Direct. What has selectors to be evaluated that
   are much work waits (core/selection.py), and holds the connection, so that the order stays.
4. With `rcv-settle-mode` second the outcome is remembered under the delivery's tag until the client settles
   (core/unsettled_deliveries.py), also while the link is away: a client that comes back asks for it (2.6.13).

5. Where the client has asked for it, the tag of a delivery is stored in one unit with the message
   (core/known_deliveries.py): one that comes again under that tag, over any link of the same name, is not taken twice.

A message that goes
-------------------
An `AmqpFlow` is a flow of core/guaranteed: its window is the link's credit and the session's window. Each delivery has
an id in the session and a tag (delivery_tags.py): the spool's id with a proof, so that the client can name the delivery
over another connection and nobody can make one up. `AmqpSession.unsettled` has the deliveries that are out, in the
order of their ids (serials.py), since ids go round at 2^32 and dispositions name ranges. sections.py writes the header,
and the span of a delivery into what is traced.

Outcomes (outcomes.py) are settled at the flow, within the bound of a turn; the rest is a job. Where the client settles
second, our settlement is a callback of the unit, since it has to be true after a crash.

`drain` is answered when all that is there was sent. A browser (distribution-mode copy) reads the endpoint and settles
nothing.

Transactions
------------
`Transactions` (transactions.py) keeps what a client does under a transaction's id: messages in memory, and outcomes as
notes at their flows. At the discharge everything goes into one unit of the spool, or nothing (`Spool.keep_together`). A
transaction belongs to the link to the coordinator over which it was declared, and not to the links over which its
messages came: what was settled over a link that ends is held in the endpoint (`enlist`).

Ends
----
A frame that breaks the rules is a ProtocolError with a condition of AMQP. It ends what it concerns: a link (`detach`),
a session (`end`) or the connection (`close`). A connection gives back what it holds by named steps
(core/fault_barrier.py); thousands of links go in slices (link_release.py). Who ends for an error, or is lost, has its
deliveries returned as FAILED, which counts; who ends in order has them RELEASED.

Bounds
------
Sessions, links, endpoints, parts of messages, unsettled tags, transactions and what waits for a window are counted in
bytes for the connection (`take`, `give_back`), and with it for client username, message VPN and router
(core/memory_account.py). A frame has a bounded number of values, and costs work by them (`Budget`, wire/amqp/types.py).
"""
