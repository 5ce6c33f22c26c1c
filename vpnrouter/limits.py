"""Every bound of the router and its tools, in one place.

Each has a string under it: why it has this value, and what happens beyond it. `docs/limits.md` is made from them.

The string under each constant says why it has this value and what happens beyond it.
docs/limits.md lists them all; each has a test that goes one step too far.
"""

from __future__ import annotations

from typing import Final

TOPIC_LEVELS: Final = 128
"""Levels of a topic or filter, as the field's leading product has it. Beyond: TopicError."""

TOPIC_BYTES: Final = 65_535
"""Bytes of a topic or filter: what MQTT's length field can say. A VPN may set less. Beyond: TopicError."""

ROUTE_CACHE_ENTRIES: Final = 65_536
"""Cached routes per VPN. Beyond: the oldest quarter is dropped."""

ROUTE_CACHE_BYTES: Final = 50_331_648
"""Memory of the cached routes of one VPN: ROUTE_CACHE_ENTRIES of ordinary ones with some 700 bytes each, and fewer with
long topics or with many receivers, each of which takes 20 to 200 bytes. Beyond: the oldest quarter is dropped."""

REMEMBERED_TOPIC_BYTES: Final = 524_288
"""Memory of the topics for which one holder (a link, a trace filter, a replay log) remembers an answer: some 4,000 of
ordinary length. Beyond: all of them are forgotten, and asked again."""

PERMITTED_TOPIC_BYTES: Final = 131_072
"""Memory of the topics for which a client remembers something: one that publishes, and whose names are in its ACL
profile, whether it may; an MQTT session what its subscriptions say of a delivery; an AMQP client whether it may have
them. Some 1,000. Beyond: as with REMEMBERED_TOPIC_BYTES."""

MAPPED_TOPIC_BYTES: Final = 4_194_304
"""Memory of the topics whose new topic one topic mapping, or the links of one connector, remember: some 16,000 of
ordinary length. Beyond: all of them are forgotten, and mapped again."""

MQTT_PACKET_BYTES: Final = 268_435_460
"""Largest MQTT packet the length encoding can express (MQTT 5, 2.1.4), fixed header included."""

MESSAGE_BYTES: Final = 10_000_000
"""Largest payload a VPN takes by default, the field's endpoint default. Beyond: refused, counted."""

OUTBOX_BYTES: Final = 33_554_432
"""Bytes waiting for one client: what comes at a gigabyte a second in the 30 ms for which a busy machine may not let a
receiver run. Beyond: Direct messages for it are discarded and counted."""

CROWDED_BYTES: Final = 1_048_576
"""Bytes waiting for one client, or a quarter of its outbox where that is less, from which on publishers of Direct
messages for it are left unread. It is what a processor's cache holds. Beyond: see PUBLISHER_HELD_NS."""

PUBLISHER_HELD_NS: Final = 10_000_000
"""Nanoseconds for which a publisher of Direct messages is left unread at most, while CROWDED_BYTES wait for one of its
receivers. Beyond: it is read; it is left unread again at once where that receiver has taken PAUSE_AFTER_BYTES
meanwhile, and what has no room is discarded and counted."""

PAUSE_AFTER_BYTES: Final = 131_072
"""Bytes that a receiver has to take before its publishers are left unread for it once more. Until then they are not.
Twice as many each time that it took less while they were, up to half of its outbox, unless it has read 13 MB/s since:
one that reads less holds nobody up for long."""

PUBLISHER_SPARED_NS: Final = 30_000_000
"""Nanoseconds for which a publisher that was left unread for nothing is not left unread again for receivers that were
not tried before, so that many that do not read, one after the other, take at most a quarter of its time."""

FAULT_PLACES: Final = 1_000
"""Places in the code whose contained faults are told apart, so that one that repeats does not hide the others.
Beyond: the one that came longest ago is told at once when it comes again."""

FAULT_TEXT_CHARS: Final = 200
"""Characters of what an unexpected error says that an event repeats. Beyond: cut."""

ALLOWED_ORIGINS: Final = 1_000
"""Origins of web pages that one listener names, and names of its host; each handshake of a browser is compared with
all of them. Beyond: the configuration is refused."""

MESSAGE_EXPIRY_S: Final = 4_294_967_295
"""Longest life time of a message in seconds: what MQTT's field can say (3.3.2.3.3), 136 years. Beyond, as a
link's field in milliseconds can say: the message never expires."""

SPOOL_EXPIRY_NS: Final = (1 << 62) - 1
"""Latest end of a life time that the spool writes down, in nanoseconds since 1970: early in 2116. Beyond: the
message is kept as one that never expires."""

HOPS: Final = 8
"""Bridges a message may cross by default (`max_ttl`). Beyond: discarded "ttl-exceeded"."""

SEEN_IDS: Final = 131_072
"""Ids of messages in each of a VPN's two generations of memory against duplicates in a mesh: a second of
heavy traffic, some 12 MB a generation when full. Beyond: the older generation is forgotten, and a copy
that comes that much later counts as new."""

LINK_FRAME_BYTES: Final = 17_039_360
"""Largest link frame, type and length bytes included: a 16 MiB payload and 256 KiB for topic,
properties and extension. Each side announces its own. Beyond: a sender discards the message and
counts it (LINK-37); a receiver closes with 0x95 (LINK-3)."""

LINK_HANDSHAKE_BYTES: Final = 16_384
"""Largest link frame from a peer that is not logged in: a HELLO with every text at its bound fits,
and a stranger cannot make the router hold more. Beyond: closed with 0x95 (LINK-3)."""

LINK_TEXT_BYTES: Final = 1_024
"""UTF-8 bytes of a text in a link handshake, or of a reason: the longest of the field's names
(client username, 189 characters) fits in any script. Beyond: closed with 0x81 (LINK-7)."""

LINK_SUBSCRIBE_FILTERS: Final = 4_096
"""Filters in one link SUBSCRIBE or UNSUBSCRIBE: 10,000 changes cost three frames, and no frame
holds Direct messages up for long. Beyond: closed with 0x82 (LINK-23)."""

LINK_EXTENSION_BYTES: Final = 131_072
"""Bytes of the extension of a link message: 255 visited VPNs with names of 255 bytes, and room to
spare. Beyond: closed with 0x81 (LINK-30)."""

LINK_FLOW_POSITIONS: Final = 65_535
"""Positions of a guaranteed flow that one frame names, and that were sent and are not yet forgotten: the
largest window, some 600 KB of BIND at worst. Beyond: closed with 0x82 (LINK-40); a sender sends no more
until the receiver's answers have been settled."""

LINK_FLOW_STORES: Final = 8
"""Lives of remote spools whose accepted positions a bridge remembers: one for each of its remotes, and some
that were set up anew. Beyond: those of the one used longest ago are forgotten, and a message that was on the
way there at the time may come twice; a BIND with more is closed with 0x82 (LINK-40)."""

LINK_GONE_BRIDGES: Final = 1_024
"""Deleted bridges whose positions are remembered, for a new bridge of the same name. Beyond: those deleted longest
ago are forgotten, and messages that their remotes had not settled come twice."""

LINK_GONE_DAYS: Final = 30
"""Days for which they are remembered, checked when a bridge is deleted and at the start. Beyond: as above."""

SHEETS_AT_ONCE: Final = 500
"""Balance sheets of endpoints, bridges and links of connectors that are looked at in one go; the others have their turn
50 ms later."""

LINK_PARKED: Final = 65_535
"""Messages that one bridge may have set aside (`on_reject: park`), all of which are in memory. Beyond: as with
`on_reject: block`."""

LINK_FLOWS: Final = 64
"""Guaranteed flows bound over one link at a time; a bridge binds one queue of each remote. Beyond: BIND is
answered with 0x97 (LINK-40)."""

LINK_WINDOW_LOG: Final = 20
"""Window of a link's compressed stream, as a power of two: with what zstd keeps beside it a receiver
spends at most 1.6 MiB for a link, a sender of ours 1.3 MiB, once something to compress was sent.
Beyond: closed with 0x81 (LINK-44)."""

LINK_PATH_ENTRIES: Final = 255
"""Visited VPNs in a link message, the largest `max_ttl`. Beyond: closed with 0x81 (LINK-31)."""

LINK_PATH_KEPT: Final = 248
"""Visited VPNs of a message that a bridge takes in, each with a name of LINK_PATH_ENTRY_BYTES: what the spool
has room for beside its origin. More of them need shorter names. Beyond: discarded "ttl-exceeded"."""

LINK_PATH_ENTRY_BYTES: Final = 255
"""UTF-8 bytes of one visited VPN ("router/vpn"): what its length byte can say. Beyond: ValueError
where the VPN is set up, since no link could name it."""

SCRAM_ITERATIONS_LEAST: Final = 4_096
"""Iterations of SCRAM-SHA-256 at least, as RFC 7677 has it: with fewer, somebody who hears a login could
try out passwords too fast. Below: ConfigError, and a remote that asks for less is left."""

SCRAM_ITERATIONS_MOST: Final = 600_000
"""Iterations at most, some 0.3 s of a helper thread: what a remote may make a router compute at each login.
Beyond: ConfigError, and a remote that asks for more is left."""

SCRAM_ITERATIONS: Final = 100_000
"""Iterations of the verifiers that `hash-password --scram` makes: some 50 ms at each login of a bridge."""

SCRAM_ITERATIONS_PLAIN: Final = 15_000
"""Iterations where the password of a client username is configured as text, as RFC 7677, 4 recommends: both sides
compute them at each login, some 8 ms."""

LINK_PROOFS_WAITING: Final = 64
"""Logins over links whose proof waits to be looked at, where the password is configured as text. Beyond: refused
with 0x97."""

LINK_PROOFS_OF_ADDRESS: Final = 8
"""Of these, how many may come from one address. Beyond: refused with 0x97."""

LINK_SHUNNED_S: Final = 30
"""Seconds for which a bridge does not use a peer's connection over which its login failed: it dials instead, so
that nobody keeps it away from its remote by logging in here."""

LINK_HEARTBEAT_MIN_MS: Final = 100
"""Shortest heartbeat interval a router agrees to: below it the heartbeats are themselves a load. A
shorter wish is answered with this value (LINK-15)."""

LINK_HEARTBEAT_MAX_MS: Final = 600_000
"""Longest heartbeat interval: middle boxes forget idle connections well before. A longer wish is
answered with this value (LINK-15)."""

LINK_REMOTE_RECORDS: Final = 20_000
"""Bridges of other routers whose counters are kept when they are gone. Beyond: those of the oldest that is not logged
in make room, of the same message VPN where it has one."""

CIPHER_SUITES_LENGTH: Final = 2_048
"""Characters of a list of cipher suites: all that OpenSSL has. Beyond: the configuration is refused."""

LINK_PLACES: Final = 4_096
"""Other routers whose addresses are remembered, for locations that name a router. Beyond: the oldest is
forgotten; it is learned again with the next link."""

LINK_REJECTED_TOLD: Final = 1_024
"""Refused bridges of other routers whose last reason is remembered, so that it is told once. Beyond: the oldest is
forgotten, and told again with its next try."""

CONNECT_BYTES: Final = 458_752
"""Largest packet taken before a client has logged in: a CONNECT whose client id, username, password, will
topic and will payload have 64 KiB each, as MQTT allows, and 128 KiB of properties. Beyond: refused, closed."""

CONNECT_TIMEOUT_S: Final = 10
"""Seconds a new connection has to log in; a silent one costs a descriptor. Beyond: closed. The second half of a link
has as long to answer a challenge. Beyond: refused with 0xc5, and the first half stands."""

LINK_TRY_S: Final = 3
"""Seconds that a bridge waits for a remote that says nothing while others have not had their turn since the
loss: two round trips to a satellite and back, with a lost packet. Beyond: the next remote; when all had their
turn, each has CONNECT_TIMEOUT_S."""
TURN_WORK: Final = 1_000
"""What one turn of a connection, or one slice of longer work, may do, in parts of about a microsecond (five
times that uncompiled): some 100 subscriptions, 200 packets, 60 new topics. Beyond: the rest waits until others
have had their turn, and the connection is not read meanwhile."""

TURN_OFFERS: Final = 8_192
"""Receivers that the batches of one turn are handed to, some 1 ms. Beyond: as with TURN_WORK. One message to more
receivers than that is delivered whole."""

SUBSCRIBE_FILTERS: Final = 4_096
"""Filters in one MQTT SUBSCRIBE or UNSUBSCRIBE, as on links. Beyond: 0x97, closed."""

OPEN_CONNECTIONS: Final = 1_000_000
"""Connections of clients and bridges open at a time where the descriptors of the process suffice; else as many
as leave the reserve. Beyond: the oldest that has not logged in makes room, or the new one is closed at once."""

RESERVED_DESCRIPTORS: Final = 1_536
"""File descriptors that clients are never given, or half of all where there are fewer than twice as many: for the
spool (SPOOL_OPEN_FILES), two listeners of the management API (MANAGEMENT_CONNECTIONS, MANAGEMENT_STRANGERS,
MANAGEMENT_PROBES), bridges, traces and logs."""

STRANGERS: Final = 3_072
"""Connections over plain TCP that have not logged in, some 5 KB each; half of all connections where that is less.
Beyond: the oldest of the address that has most of them is closed."""

STRANGERS_OF_ADDRESS: Final = 1_024
"""Those of one address (of one /64 network in IPv6): a whole fleet behind one address logs in within some round
trips. Beyond: the oldest of them is closed."""

STRANGERS_SHAKING: Final = 160
"""Connections over TLS or WebSocket that have not logged in: each costs some 110 KB. Beyond: one of the address
that has most of them, drawn, is closed."""

STRANGERS_SHAKING_OF_ADDRESS: Final = 128
"""Those of one address. Beyond: one of them, drawn, is closed."""

STRANGER_BYTES: Final = 6_291_456
"""Bytes received and kept of all that have not logged in: unfinished packets, and those that wait for the verdict
on a password. Beyond: the largest one of the address that holds most is closed."""

CLIENT_MEMORY: Final = 62_914_560
"""Bytes that the router keeps in memory for one client by default, whatever they are: unfinished messages, what waits
to be sent, what is sent and not settled, transactions, links, topic aliases, long topic filters. With what is not
counted a client stays near 64 MiB of resident memory. Beyond: what was asked for is refused, what can wait waits; else
the client is disconnected, with 0x97 or `amqp:resource-limit-exceeded`."""

USERNAME_MEMORY: Final = 201_326_592
"""Those of all clients of one client username by default: three quarters of a message VPN's, so that none takes it all.
Beyond: of the address whose clients hold most, the one that holds most is disconnected."""

MSG_VPN_MEMORY: Final = 268_435_456
"""Those of all clients and bridges of one message VPN by default. Beyond: as for USERNAME_MEMORY, of the client
username whose clients hold most."""

MSG_VPN_MEMORY_MOST: Final = 1_099_511_627_776
"""The most that a message VPN or a client profile may set for these: a terabyte."""

MEMORY: Final = 1_073_741_824
"""Those of all message VPNs together. Beyond: the same, of the message VPN whose clients hold most."""

SPARE_BYTES: Final = 2_048
"""Bytes of one unfinished packet, of one outbox that its client does not take, or of messages that one consumer has
not settled, from which on they count for these: the first few small ones cost nothing. A link of AMQP counts for
so much more than it takes."""

FILTER_SPARE_BYTES: Final = 2_048
"""Memory of one topic filter, with its selector, that does not count for these: VPN_SUBSCRIPTIONS bounds it. One of 100
bytes and four levels takes less. Beyond: the rest counts, and may be half of each bound."""

LOGINS_WAITING: Final = 1_024
"""Logins whose password hash waits to be verified. Beyond: of the address with most of them the one that has
waited longest is refused "503 Too Many Logins", 0x89."""

LOGINS_WAITING_OF_ADDRESS: Final = 256
"""Logins of one address that wait for verification: that takes ten to twenty seconds, as long as a login may take.
Beyond: the one of them that has waited longest is refused."""

LOGIN_FAILURES: Final = 10
"""Failed logins by one client username from one address within a minute. Beyond: refused "403 Too Many Failed
Logins", 0x9F, before a password is looked at, until the minute is over."""

LOGIN_FAILURES_OF_ADDRESS: Final = 30
"""Failed logins from one address within a minute. Beyond: each username has one attempt from there until the
minute is over, and names that are not known are not worth hashing."""

LOGIN_FAILURES_OF_USERNAME: Final = 100
"""Failed logins by one client username from all addresses within a minute. Beyond: each address has one attempt
until the minute is over, so that nobody is shut out from elsewhere."""

LOGIN_KEYS: Final = 65_536
"""Addresses, usernames and pairs of both whose failed logins are remembered, some 200 bytes each. Beyond: the one
whose minute began first is forgotten."""

CLIENT_ID_BYTES: Final = 1_024
"""UTF-8 bytes of an MQTT client id: eight times what the field takes. Beyond: refused, 0x85."""

MQTT_SESSIONS: Final = 100_000
"""MQTT sessions of one message VPN that outlive their connection, by default; some 3 KB each, without what waits in
their queues. Beyond: a CONNECT that wants one more is refused "503 Too Many Sessions", 0x97."""

MQTT_SESSIONS_OF_USERNAME: Final = 20_000
"""Those of one client username by default. Beyond: the same."""

WILL_BYTES: Final = 67_108_864
"""Bytes of the wills of one message VPN, of clients that are here and of those that left: topic, payload and
properties. Beyond: a CONNECT with a will is refused "503 Too Many Wills", 0x97."""

WILL_BYTES_OF_USERNAME: Final = 16_777_216
"""Those of one client username. Beyond: the same."""

WILL_BYTES_ALL: Final = 268_435_456
"""Those of all message VPNs together. Beyond: the same."""

SPOOL_DELAY_S: Final = 10
"""Seconds for which publishers wait for a spool that cannot be written. Beyond: their connections end with 0x97 or
`amqp:resource-limit-exceeded` and the reason. Whether their messages are kept is open; none that is kept is lost."""

UNREAD_S: Final = 30
"""Seconds in which a peer whose answers fill its outbox takes not one byte. Beyond: disconnected; while its outbox is
beyond its bound it is read no further."""

TOPIC_ALIASES: Final = 256
"""Topic aliases a client may set on its connection; one topic is kept for each. Beyond: 0x94, closed. The router sets
as many."""

ALIASED_TOPIC_BYTES: Final = 1_024
"""Longest topic that the router sets an alias for. Beyond: it is sent in full."""

USER_PROPERTIES: Final = 1_024
"""User properties of one MQTT packet; each use of the properties looks at them one by one. Beyond:
0x97, closed."""

REASON_STRING_BYTES: Final = 1_024
"""UTF-8 bytes of a reason string that is sent: a line for people, which must not repeat at length what a peer
sent. Beyond: cut."""

REPEATED_CHARACTERS: Final = 64
"""Characters of a text from outside that an error repeats. Beyond: cut, with an ellipsis."""

PROPERTY_BYTES: Final = 65_536
"""Room for the properties of one message on top of topic and payload. Beyond: packet too large."""

RETAINED_MESSAGES: Final = 1_000_000
"""Retained messages in one VPN. Beyond: a new topic's message is delivered but not retained, counted."""

RETAINED_MEGABYTES: Final = 256
"""Megabytes of memory that retained messages of one VPN take by default: 300,000 messages of 200 bytes. Beyond: a
message is delivered but not retained, counted."""

RETAINED_MESSAGE_COST: Final = 600
"""Bytes of memory that a retained message counts for besides its topic, properties and payload. Topics of different
depths took 550 to 680."""

RETAINED_AHEAD: Final = 1_000
"""Messages waiting in a session's endpoint beyond which no more retained ones are put there: the rest follows as
its client acknowledges. Beyond: they wait where they are."""

REMEMBERED_PASSWORDS: Final = 10_000
"""Client usernames per VPN whose last good password is remembered. Beyond: all of them are forgotten."""

CONFIG_BYTES: Final = 8_388_608
"""Size of one configuration file; 1,000 VPNs with a dozen objects each need some 2 MB. Beyond:
ConfigError."""

CONFIG_DEPTH: Final = 32
"""Nested mappings and lists in a configuration; the deepest known key stands at 8. Beyond: ConfigError."""

CONFIG_PROBLEMS: Final = 1_000
"""Problems that are told of one configuration, errors first; nobody reads more, and finding the words for hundreds of
thousands takes a minute. Beyond: the rest is counted, and a file that is no configuration is read no further."""

CONFIG_VALUES: Final = 400_000
"""Values of one configuration with every alias written out, so that a few lines of aliases cannot
ask for more memory than a large honest file. Beyond: ConfigError."""

CONFIG_FILTER_PAIRS: Final = 50_000
"""Pairs of topic filters of one file that are compared for one covering the other, some 0.1 s.
Beyond: lists that stand further down are only searched for equal filters."""

ROUTER_NAME_LENGTH: Final = 64
"""Characters of a router name, the field's node name. Beyond: ConfigError."""

MSG_VPN_NAME_LENGTH: Final = 32
"""Characters of a message VPN name, as in the field. Beyond: ConfigError."""

SERVER_NAME_LENGTH: Final = 253
"""Characters of the name of a host (RFC 1035, 2.3.4)."""

ALPN_NAME_LENGTH: Final = 255
"""Characters of the name of a protocol over TLS (RFC 7301, 3.1)."""

INTERFACE_LENGTH: Final = 45
"""Characters of an IP address, or of the name of an interface, which has 15 at most."""

BRIDGE_NAME_LENGTH: Final = 150
"""Characters of a bridge name, as in the field. Beyond: ConfigError."""

QUEUE_NAME_LENGTH: Final = 200
"""Characters of the name of a queue or topic endpoint, as in the field. Beyond: ConfigError."""

REPLAY_LOG_NAME_LENGTH: Final = 185
"""Characters of the name of a replay log, as in the field. Beyond: ConfigError."""

CLIENT_USERNAME_LENGTH: Final = 189
"""Characters of a client username, as in the field. Beyond: ConfigError."""

PROFILE_NAME_LENGTH: Final = 32
"""Characters of the name of a client or ACL profile, as in the field. Beyond: ConfigError."""

LOCATION_LENGTH: Final = 259
"""Characters of a remote message VPN's location, as in the field: a host name and a port. Beyond:
ConfigError."""

COMMON_NAME_LENGTH: Final = 64
"""Characters of a trusted common name, as in the field and in X.509. Beyond: ConfigError."""

TLS_FAILURE_LINES: Final = 5
"""Lines a second that tell of failed TLS handshakes, so that a port scan cannot flood the log. Beyond:
counted, and the count told with the next line."""

TLS_REMEMBERED_PEERS: Final = 20_480
"""Client certificates remembered for resumed TLS 1.2 sessions: as many as OpenSSL keeps sessions. Beyond:
the oldest is forgotten."""

PATH_LENGTH: Final = 4_096
"""Characters of a path in a configuration, Linux's PATH_MAX. Beyond: ConfigError."""

PASSWORD_BYTES: Final = 128
"""UTF-8 bytes of a configured password, the field's bound. Beyond: ConfigError."""

TOKEN_BYTES: Final = 8_192
"""Characters of a bearer token for an HTTP server; those of clouds have some 2,000. Beyond: ConfigError."""

PASSWORD_HASH_MEMORY: Final = 134_217_728
"""Memory one verification of a password hash may ask for (128 * N * r), so that a configured hash
cannot take the router's. Beyond: the hash is refused with a ConfigError."""

PASSWORD_HASH_PASSES: Final = 4
"""Parallelisation (p) of a password hash: each pass costs the same time again. Beyond: ConfigError."""

VPN_CONNECTIONS: Final = 200_000
"""Most, and by default all, clients of one message VPN at a time, the field's bound. Beyond: refused."""

VPN_ENDPOINTS: Final = 20_000
"""Queues, topic endpoints, sessions and subscriptions of one message VPN by default, and flows from them: what
MSG_VPN_MEMORY has room for, as each plain consumer of a topic in JMS has one. The field has 1,000. Beyond: refused."""

USERNAME_ENDPOINTS: Final = 10_000
"""Those that the clients of one client username make, by default: half of them, so that none takes all. The field has
1,000. Beyond: refused."""

VPN_SUBSCRIPTIONS: Final = 500_000
"""Subscriptions in one message VPN by default, the field's default. Beyond: refused."""

CLIENT_SUBSCRIPTIONS: Final = 10_000
"""Subscriptions of one client by default; the field has 500,000. With 10,000 filters that all match one topic a
message on a new topic costs some 3 ms, and a session's end some 10 ms of rows in the store; those grow with the
number. Beyond: refused."""

OUTBOX_CHUNKS: Final = 65_536
"""Parts of which an outbox consists: each answer is one, and each write of messages. Beyond: a client whose packets add
further ones is not read until it has read half of them. To drop millions of small answers takes 100 ms."""

OUTBOX_BYTES_LEAST: Final = 65_536
"""Smallest outbox a client profile may set: below it one round of small messages overflows."""

OUTBOX_BYTES_MOST: Final = 1_073_741_824
"""Largest outbox a client profile may set: it is memory for each slow client."""

TRACE_BLOCK_RECORDS: Final = 65_536
"""Trace events in one block of 64-byte records: 4 MiB, and a row group worth its overhead. Beyond:
the next block begins."""

TRACE_BLOCKS: Final = 16
"""Blocks of trace events that may wait for the writer: 64 MiB, ten seconds at 100,000 events/s.
Beyond: trace events are dropped and counted."""

TRACE_BLOCK_TOPIC_BYTES: Final = 4_194_304
"""Bytes of distinct topics in one block of trace events, as much as its records take. Beyond: the
next block begins early."""

TRACE_LOSSES: Final = 4_096
"""Places and topics for which a second's discards and rejects of untraced messages are told apart: rows of
a second that a report can still name. Beyond: they are counted without topic, then without client."""

TRACE_FILTERS: Final = 64
"""Trace filters of one router: each is looked at for every new topic. Beyond: the configuration is
refused."""

TRACE_FILTER_NAME_LENGTH: Final = 127
"""Characters of the name of a trace filter, as the field has them. Beyond: refused."""

TRACE_CLIENT_NAME_LENGTH: Final = 65_535
"""Characters of a client name in a trace filter: what MQTT lets a client call itself. Beyond: refused."""

TRACE_PICKINGS: Final = 1_024
"""Combinations of trace filters whose clients share what they remember of topics. Beyond: clients that log in later
remember anew."""

TRACE_FILE_BYTES: Final = 134_217_728
"""Size at which a trace file is finished: what Spark gives one task by default. Beyond, by at most
one block: the next file begins."""

TRACE_FILE_CONTEXTS: Final = 262_144
"""Contexts of a trace file that its writer remembers, some 25 MB. Beyond: it begins anew, and the first row of each
context is marked once more."""

TRACE_RETENTION_STEP: Final = 500
"""Trace files looked at or removed in one step of the writer's thread, before it looks for events to write
again. Beyond: the next step goes on."""

TRACE_RETENTION_REMOVALS: Final = 1_000
"""Names of the oldest trace files of one date that are kept in memory to be removed. Beyond: the directory is
read again."""

TRACE_UPLOAD_PENDING_BYTES: Final = 10_737_418_240
"""Bytes of trace files not uploaded yet that retention has to leave, by default: some hours of a busy router while the
store is away. Beyond: retention removes the oldest, which are counted as lost."""

TRACE_UPLOAD_CHUNK: Final = 4_194_304
"""Bytes of a trace file that are read at once for an upload. Beyond: the next read goes on."""

TRACE_UPLOAD_ABANDONED: Final = 64
"""Uploads that broke off and whose buffers, some megabytes each, are kept so that no half object appears. Beyond:
nothing is uploaded until the router starts again; files are kept as while the store does not answer."""

TRACE_UPLOAD_WAIT_S: Final = 300
"""Longest wait between two attempts to upload, in seconds: a store that is back is noticed within it. Beyond: the wait
grows no more."""

TRACE_UPLOAD_READS: Final = 3
"""Attempts to read a trace file that the disk does not give. Beyond: it waits for the next start of the router."""

TRACE_UPLOAD_ERROR: Final = 600
"""Characters of what a store says of an error that are shown. Beyond: the rest is left out."""

TRACE_UPLOAD_REGION_LENGTH: Final = 64
"""Characters of the name of a region: more than any store has. Beyond: refused."""

OTLP_QUEUE_ROWS: Final = 131_072
"""Trace events that may wait to be sent to an OpenTelemetry collector by default, two blocks. Beyond: they
make no spans, and are counted; the trace files have them."""

OTLP_BATCH_SPANS: Final = 512
"""Spans in one request to a collector, as the OpenTelemetry SDK has it by default."""

OTLP_SPAN_EVENTS: Final = 128
"""Events of one span, as the OpenTelemetry SDK has it by default. Beyond: counted in the span's attributes."""

OTLP_OPEN_SPANS: Final = 10_000
"""Spans of sends that wait for the consumer's answer. Beyond: the oldest goes out without an outcome."""

ROUTE_CACHE_TOPIC_BYTES: Final = 1_024
"""Longest topic whose route is cached, so that long topics cannot fill memory 64 KiB at a time. Beyond:
the topic is matched anew for each message."""

ROUTE_CACHE_INVALIDATION_STEPS: Final = 4_096
"""Cached topics and levels that a filter is compared with when it comes or goes, some 1 ms. Beyond: all
cached routes of the message VPN are dropped, and made again when needed."""

ROUTE_CACHE_INDEX_LEVELS: Final = 8
"""Levels by which cached topics are indexed. Beyond: topics alike in eight levels are compared one by
one when a wildcard subscription comes or goes."""

LINK_HEARTBEAT_MS: Final = 5_000
"""Heartbeat interval a bridge asks for: a peer that went silent is noticed after three of them."""

RATE_SAMPLES: Final = 64
"""Samples of a bridge's counts that its rates are made from: one a second for a minute. Beyond: the
oldest is forgotten, and samples that come faster are left out."""

MANAGEMENT_CONNECTIONS: Final = 256
"""Requests of one management listener at a time, if it does not set less. Beyond: of the address with most of them
whose body is still to come, or whose answer is not read, the oldest is closed; if there is none, 503."""

MANAGEMENT_STRANGERS: Final = 256
"""HTTP connections of one management listener without a request: in their TLS handshake, with half a header, or between
two requests. Beyond: the oldest of the address that has most of them is closed."""

MANAGEMENT_STRANGERS_OF_ADDRESS: Final = 192
"""Those of one address, so that others have places of their own. Beyond: the oldest of them is closed."""

MANAGEMENT_PROBES: Final = 32
"""Requests for `/health/…` and `/metrics` on one management listener, which have these places beside
MANAGEMENT_CONNECTIONS: more than MANAGEMENT_LOGINS_WAITING. Beyond: as for MANAGEMENT_CONNECTIONS."""

MANAGEMENT_PAGE_ROWS: Final = 100
"""Objects in one answer of the management API, the field's cap for bridges, so that an answer holds
messages up for a millisecond or two. Beyond: 400; the rest comes with the cursor."""

MANAGEMENT_BODY_BYTES: Final = 65_536
"""Bytes of the body of one request to the management API, of all MANAGEMENT_CONNECTIONS 17 MB; a configuration
as a whole may have DOCUMENT_BYTES, of DOCUMENTS_READ at a time. Beyond: 400."""

MANAGEMENT_MSG_IDS: Final = 1_000
"""Messages that one request names. Beyond: 400; without names a request is about all of a queue."""

MANAGEMENT_CONDITIONS: Final = 16
"""Conditions in the `where` of one request. Beyond: 400."""

MANAGEMENT_SELECTED: Final = 256
"""Attribute names in the `select` of one request, the field's bound. Beyond: 400."""

MANAGEMENT_LOGIN_FAILURES: Final = 10
"""Wrong passwords from one address within a minute. Beyond: 429 for that address until the minute is over."""

MANAGEMENT_LOGIN_ADDRESSES: Final = 4_096
"""Addresses whose wrong passwords are remembered. Beyond: the one whose minute began first is forgotten."""

MANAGEMENT_LOGINS_WAITING: Final = 16
"""Management logins whose password hash is being verified or waits for it. Beyond: 503."""

SELECTOR_BYTES: Final = 8_192
"""UTF-8 bytes of a message selector: room for a list of some 500 names; its parsing takes at most some
5 ms. Beyond: SelectorError."""

AMQP_DEPTH: Final = 32
"""Values of AMQP within one another, descriptors included; clients need five. Beyond: `amqp:decode-error`, closed."""

FAILOVER_SERVERS: Final = 16
"""Servers that a listener of AMQP names to its clients. Beyond: the configuration is refused."""

AMQP_VALUES: Final = 2_048
"""Values of AMQP in one frame, or read out of one section of a message, those within others and descriptors included:
clients need some fifty. Each costs a quarter of a microsecond, and an object. The entries of `unsettled` do not count:
they are read one by one, in slices. Beyond: `amqp:decode-error`, closed; a section goes on as it came."""

AMQP_SECTIONS: Final = 4_096
"""Sections of one message of AMQP: one of each kind, and data in as many parts as a client has streamed. Beyond:
`amqp:decode-error`, the link ends."""

AMQP_LOGIN_VALUES: Final = 256
"""Values of AMQP in one frame before the login. Clients need some forty for the properties in `open`. Beyond:
`amqp:decode-error`, closed."""

AMQP_FILTERS: Final = 16
"""Filters of one source of a link, of which one may be a selector; three are known. Beyond: the link is refused with
`amqp:invalid-field`."""

AMQP_FRAME_BYTES: Final = 131_072
"""Bytes of a frame of AMQP after the login; larger messages come in several. Beyond: `amqp:connection:framing-error`,
closed."""

AMQP_LOGIN_FRAME_BYTES: Final = 8_192
"""Bytes of a frame of AMQP before the login: SASL and `open`. Beyond: `amqp:connection:framing-error`, closed."""

AMQP_CHANNELS: Final = 32_768
"""Channels of one connection of AMQP (channel-max + 1), as many as Qpid JMS has. Beyond:
`amqp:connection:framing-error`, closed."""

AMQP_SESSIONS: Final = 4_096
"""Sessions of one connection of AMQP: as many as it may have links, since an application gives each of its threads one.
Each counts for the client's memory. Beyond: the session ends with `amqp:resource-limit-exceeded`, the others go on."""

AMQP_LINKS: Final = 4_096
"""Links of one connection of AMQP, over all its sessions. Beyond: the link is refused with
`amqp:resource-limit-exceeded`."""

AMQP_CREDIT: Final = 10_000
"""Messages that a client may send over one link before the router asks for more. Beyond: `amqp:link:transfer-limit-
exceeded`, the link ends."""

AMQP_WINDOW: Final = 65_535
"""Transfers that a client may send over one session before the router widens its window. Beyond:
`amqp:session:window-violation`, the session ends."""

AMQP_IDLE_S: Final = 120
"""Seconds without a frame from a client of AMQP; it is asked for one in half of that. Beyond:
`amqp:resource-limit-exceeded`, closed."""

AMQP_LINK_NAME_BYTES: Final = 1_024
"""Bytes of the name of a link. Beyond: the link is refused with `amqp:invalid-field`."""

AMQP_UNSETTLED: Final = 10_000
"""Deliveries over one link whose client settles second that it has not settled. Beyond:
`amqp:resource-limit-exceeded`, the link ends."""

AMQP_DELIVERIES_AWAY: Final = 100_000
"""Deliveries whose outcome is kept for AMQP clients that come back to settle them, in one message VPN; a link counts as
ten of them. Beyond: the oldest of the client username that has most are forgotten, and sent again by its clients."""

AMQP_DELIVERIES_AWAY_OF_USERNAME: Final = 50_000
"""Those of one client username. Beyond: its oldest are forgotten."""

AMQP_AWAY_S: Final = 300
"""Seconds that the outcome of deliveries is kept at least for an AMQP client that may come back. Beyond: they are
forgotten, unless the terminus lasts longer."""

AMQP_KNOWN_DELIVERIES: Final = 2_048
"""Deliveries over one link of AMQP that are known again where its client asks for that, some 400 KB. Beyond: the one
that came first is forgotten. The client is told the number, and has no more than so many under way."""

AMQP_KNOWN_LINKS: Final = 256
"""Such links of one message VPN, attached or not. Beyond: the one that was not attached longest is forgotten; where all
are attached, the link goes without."""

AMQP_KNOWN_LINKS_OF_USERNAME: Final = 64
"""Those of one client username. Beyond: likewise, of its own."""

AMQP_TAG_BYTES: Final = 32
"""Bytes of a delivery's tag (2.8.7). Beyond: `amqp:invalid-field`, the link ends."""

AMQP_TRANSACTIONS: Final = 4_096
"""Transactions of one connection that are open at a time: as many as it may have links. A transacted session of JMS
always has one. Each counts for the client with its bytes. Beyond: `amqp:resource-limit-exceeded`, refused."""

AMQP_TRANSACTION_BYTES: Final = 16_777_216
"""Bytes of the messages that one transaction holds. Beyond: `amqp:resource-limit-exceeded` for the message, or for the
link whose delivery is one too many, and it can only be rolled back."""

AMQP_TRANSACTION_MESSAGES: Final = 10_000
"""Messages sent and outcomes given within one transaction, which are committed in one turn. Beyond: as above."""

AMQP_TIME_MS: Final = 253_402_300_799_999
"""Milliseconds since 1970 of a time that is put into AMQP: the year 9999. Beyond: it is left out."""

SASL_BYTES: Final = 4_096
"""Bytes of a name, a password or a message of a SASL mechanism. Beyond: `amqp:decode-error`, closed."""

SELECTOR_DEPTH: Final = 32
"""Brackets, NOT and signs around one another in a message selector: evaluation recurses so far, and people
use five. Beyond: SelectorError."""

SELECTOR_NUMBER_LENGTH: Final = 64
"""Characters of a number in a message selector, or of a property that is read as one: any double has its
digits in there. Beyond: SelectorError; a property is text."""

SELECTOR_LOOKED: Final = 131_072
"""Characters of properties that one evaluation of a message selector looks at by LIKE with a text between two `%`: the
longest property of MQTT twice, some 8 ms at worst. A property counts for each pattern, and once more for each 32
characters of the pattern; for a comparison of two properties, a sixty-fourth of it. Beyond: the comparison is false."""

SELECTORS_CACHED: Final = 256
"""Selectors whose parsed form is remembered, some 5 MB at worst: clients that come back, and thousands with the
same one, are not parsed again. Beyond: all of them are forgotten."""

SELECTOR_CACHED_LENGTH: Final = 256
"""Characters of a selector that is remembered so. Beyond: it is parsed each time."""

TOPIC_MAPPING_RULES: Final = 128
"""Rules of one topic mapping: a topic that is new costs a look at each. Beyond: TopicError."""

MESH_CHECK_STEPS: Final = 2_000_000
"""Comparisons of topic sets while `check` looks for loops, double delivery and exceeded hop limits, some
five seconds; each message VPN has its share. Beyond: the search there ends, and a note says where."""

SPOOL_SEGMENT_BYTES: Final = 131_072
"""Bytes of messages in one segment, after which the next begins: what one read brings into memory, and what one
damaged place on the disk costs at most. A larger message is a segment by itself."""

SPOOL_SEGMENT_MESSAGES: Final = 4_096
"""Messages in one segment. Beyond: the next segment begins."""

SPOOL_ID_LEASE: Final = 65_536
"""Spool ids that are reserved in the store at a time, so that no id comes back after a restart; as many
are skipped by one. Beyond: the next ones are reserved with the unit that needs them."""

SPOOL_PARTS: Final = 8_192
"""Partly settled segments whose state is held in memory; some 2 KiB each. Beyond: the oldest are read
from the store again when a message of theirs is settled."""

SPOOL_RECOVERED: Final = 65_536
"""Messages per endpoint that recovery hands over at a time; some 2 MiB. Beyond: another portion."""

SPOOL_CACHE_BYTES: Final = 33_554_432
"""Blocks of the spool that RocksDB keeps in memory, its indexes and filters included. Beyond: the least
recently used is read from disk again."""

SPOOL_WRITE_BUFFER_BYTES: Final = 16_777_216
"""Size of one of RocksDB's two write buffers. Beyond: it is written out as a sorted file."""

SPOOL_WAL_BYTES: Final = 67_108_864
"""Write-ahead log of the spool, which a start replays: some 0.3 s. Beyond: write buffers are written out."""

SPOOL_OLD_LOGS: Final = 4
"""Old write-ahead logs of the spool that are written over, each about as large as a write buffer. Beyond: removed."""

SPOOL_BATCH_BYTES: Final = 2_097_152
"""Bytes that are written into the spool at once: nothing else runs meanwhile, some 3 ms. Beyond: the large values of
the batch (SPOOL_CUT_BYTES) are written ahead of it in pieces (SPOOL_PIECE_BYTES), with rests between them."""

SPOOL_PIECE_BYTES: Final = 131_072
"""Bytes of one piece, some 1 ms. Beyond: another piece."""

SPOOL_CUT_BYTES: Final = 32_768
"""Bytes of a value from which on it is written ahead of a large batch. Beyond: see SPOOL_BATCH_BYTES."""

SPOOL_OPEN_FILES: Final = 256
"""Files that RocksDB keeps open. Beyond: the least recently used is closed."""

SPOOL_UNMERGED_FILES: Final = 1_000_000
"""Sorted files of the spool that wait to be merged. Merging keeps them at a few; where it fails for damage, each
write buffer adds one, and reading gets slower. Beyond: writes wait."""

SPOOL_COLLECT_AGAIN_S: Final = 600.0
"""Seconds for which files of large values are not collected after that failed for damage. Beyond: it is tried again,
which costs one failed merge."""

SPOOL_PUT_ASIDE: Final = 1_000
"""Damaged units of the spool of which a copy is kept beside it, some 128 KiB each. Beyond: they are counted and not
copied."""

SPOOL_FINDINGS: Final = 1_000
"""Findings of one check of a spool. Beyond: the last line says that there are more."""

SPOOL_BODY_BYTES: Final = 67_108_864
"""Memory for messages of the spool that were just synced or read ahead. Beyond: the oldest leave it and are
read from the store when their turn comes."""

SPOOL_BODY_COST: Final = 500
"""Bytes that a message in memory costs besides its topic, properties and payload, for SPOOL_BODY_BYTES."""

PROMOTION_BYTES: Final = 16_777_216
"""Bytes that wait for the next commit, from which on Direct messages are no more promoted. Beyond: discarded
"message-promotion-congestion", so that Direct traffic never delays guaranteed messages for long."""

VPN_SPOOL_BYTES: Final = 5_000_000_000
"""Bytes of guaranteed messages in the endpoints of one message VPN by default, as the field's queues have.
Beyond: refused "503 Spool Over Quota"."""

UNSETTLED_BYTES: Final = 16_777_216
"""Bytes of messages that one consumer has been sent and has not settled; they stay in memory until then. Beyond: the
next ones wait in the spool. One message is sent, whatever its size."""

CHECKED_LINK_PAIRS: Final = 200_000
"""Pairs of links of connectors that `check` compares in one message VPN. Beyond: a warning, and the rest is not
compared."""

KNOWN_MESSAGES: Final = 16_384
"""Messages of a provider of AMQP that a connector knows again, over all its links once-and-only-once. Beyond: the one
that came first is forgotten."""

LINK_WAITING_BYTES: Final = 8_388_608
"""Bytes of guaranteed messages of a provider that a connector's link keeps in memory, not acknowledged, because the
message VPN refuses them and the link's own queue is full. Beyond: they are left to the provider, which sends them over
the next connection."""

GUARANTEED_AHEAD_BYTES: Final = 2_097_152
"""Bytes of guaranteed messages that are put into one outbox in one go. Beyond: the next ones wait in the spool until
the peer has taken them. One message is sent, whatever its size."""

BROWSED_BYTES: Final = 4_194_304
"""Bytes of messages that are read for a look at a queue in one go. Beyond: the rest comes with the next one. One
message is read, whatever its size."""

RECEIVE_MAXIMUM: Final = 2_000
"""QoS 1 and 2 messages of one client that are not yet answered, as CONNACK says. Beyond: an MQTT 5 client is
disconnected with 0x93, one of 3.1.1 is read no further until half of them are answered."""

UNIT_BYTES: Final = 33_554_432
"""Bytes that wait for the next commit, from which on clients that publish guaranteed messages are not read
until theirs are answered."""

COMMITTED_AT_ONCE: Final = 2_000
"""Messages of a commit that is on disk that are put into their endpoints, or answered, in one turn, some 3 ms. Beyond:
in the turns after it, and the next commit begins behind them."""

LARGE_UNIT_BYTES: Final = 4_194_304
"""Bytes that wait for the next commit, from which on large messages (LARGE_MESSAGE_BYTES) of clients wait for the one
after it, and their publishers are not read meanwhile. So a commit, for which everybody waits whose messages are in it,
takes no longer than so many bytes and one large message."""

LARGE_MESSAGE_BYTES: Final = 16_384
"""Payload of a guaranteed or a retained message from which on it is large. Beyond: see LARGE_UNIT_BYTES."""

CLIENT_WINDOW: Final = 10_000
"""QoS 1 and 2 messages that a client may hold unacknowledged, whatever larger Receive Maximum it gives.
Beyond: they wait in the spool."""

REPLAYS: Final = 32
"""Replays that run at a time from one replay log. Beyond: refused "503 Out of Replay Resources"."""

ENDPOINT_BRIDGES: Final = 16
"""Bridges that a queue remembers to have been bound to it, for `end_to_end_bridge`. Beyond: the first one is
forgotten, and nobody waits for it any more."""

TROUBLES: Final = 16
"""Lines of trouble that wait to be told at the end of a round. Beyond: left out; the next round has its own."""

PRINTED_CHARS: Final = 4_096
"""Characters of one text that a stranger chose, such as a topic, where it is printed for people, so that a line
stays readable. Beyond: it is cut, and ends with `…`; JSON has it whole."""

ALLOWED_LOCATIONS: Final = 256
"""Patterns of `bridging.allowed_locations`, each of which is compared when a bridge is dialled. Beyond: the
configuration is refused."""

MSG_VPNS: Final = 10_000
"""Message VPNs of one router: many have some dozens, and those of a configuration are validated in one step. Beyond:
the configuration is refused before they are looked at."""


SHOW_BLOCK_ROWS: Final = 500
"""Rows that `show` prints in one go and holds in memory; the next ones get columns at least as wide. Beyond:
another block."""

SHOW_COMPLETIONS: Final = 200
"""Names from a router that completion offers. Beyond: left out; more letters bring them."""

MQTT_CLIENT_CHUNK_BYTES: Final = 262_144
"""Bytes that `pub` and `sub` read at a time, and that `pub` sends at a time at QoS 0."""

MQTT_CLIENT_PACKET_BYTES: Final = 268_435_460
"""The largest packet that MQTT has, which `sub` takes unless --max-packet says less. Beyond: the connection is
ended."""

MQTT_CLIENT_WINDOW: Final = 1_000
"""QoS 1 and 2 messages that `pub` has in flight, or fewer where the broker says so. Beyond: it waits. Their
answers fit a socket's buffer, so that neither side waits for the other."""

MQTT_CLIENT_TOLD: Final = 10
"""Refused messages that `pub` tells one by one. Beyond: counted by reason."""


EVENTS_KEPT: Final = 1_000
"""Newest events of each name that the management API can be asked for; clients that come and go, and
strangers who try to, push none of the others out. Beyond: the oldest are forgotten."""

EVENT_DENIALS: Final = 5
"""Refused logins to the management API that are told in a second. Beyond: counted, and told with the next."""

EVENT_TEXT_CHARS: Final = 1_000
"""Characters of an event's text. Beyond: it is cut, and ends with `…`."""

EVENT_NAME_CHARS: Final = 256
"""Characters of the name of what an event is about, such as a client's, which may have 65,535. Beyond: cut."""

EVENTS_STANDING: Final = 20_000
"""One-shot events that were raised and not cleared. Beyond: the oldest count as cleared."""

EVENT_LINE_BYTES: Final = 4_096
"""Bytes of a line on stderr: what a pipe that has room takes whole, without making the router wait. Beyond:
the text is cut."""

EVENT_LINES_WAITING: Final = 10_000
"""Lines that wait while nobody reads stderr. Beyond: lost, counted, and told when somebody reads again."""

EVENT_LINES_A_SECOND: Final = 100
"""Lines a second of events of one name, where `logging.rate_limit` says nothing else. Beyond: counted and
told a second later; the management API has them all."""

EVENTS_TO_PUBLISH: Final = 10_000
"""Events that wait to be published in their message VPNs. Beyond: not published, and counted."""

EVENT_CHUNK: Final = 32
"""Endpoints that are looked at for thresholds before other tasks have their turn: less than half a millisecond."""


EXPLAIN_CONFIGS: Final = 1_000
"""Configurations that one explanation takes together. Beyond: wrong use."""

EXPLAIN_PAYLOAD_BYTES: Final = 67_108_864
"""Bytes of the message that explain sends through its copy of the mesh, 64 MiB. Beyond: wrong use."""

EXPLAIN_PROPERTIES: Final = 64
"""User properties of that message. Beyond: wrong use."""

EXPLAIN_SUBSCRIPTIONS: Final = 100_000
"""Subscriptions of clients that one explanation takes, asked for or of live routers. Beyond: the rest is left
out, and the answer says so."""

EXPLAIN_ROUNDS: Final = 10_000
"""Rounds in which bytes go between the routers of the copy before it must be quiet. Beyond: the answer says that
messages were still under way."""

EXPLAIN_COMMITS: Final = 10_000
"""Commits of one spool of the copy in one round. Beyond: the rest goes on in the next round."""

EXPLAIN_PASSES: Final = 64
"""How often the bridges that are down are tried, each pass with those up that the one before brought up; a
bridge that finds its remote by v:ROUTER needs another one to be up. Beyond: they stay down."""

EXPLAIN_WAIT_MS: Final = 1_500
"""Milliseconds of the copy's own clock that pass after the message was published, for what is tried again."""

EXPLAIN_EVENTS: Final = 100_000
"""Trace events of one message that are put together. Beyond: the later ones are left out, and the answer says
so."""

EXPLAIN_MISSES: Final = 20
"""Queues, topic endpoints, bridges and clients of one message VPN of which it is told why the message did not
come there, each. Beyond: their number is told; `--all` tells them all."""

EXPLAIN_TRACE_FILES: Final = 1_000_000
"""Trace files that are searched for one message. Beyond: the later ones are left out, and the answer says so."""


METRICS_QUEUES: Final = 10_000
"""Queues and topic endpoints that /metrics has series of, some 10 each. Beyond: the rest is left out and counted by
`vpnrouter_metrics_left_out`."""

METRICS_BRIDGES: Final = 2_000
"""Bridges that /metrics has series of, some 40 each; likewise connectors, and links of connectors. Beyond: the rest is
left out and counted by `vpnrouter_metrics_left_out`."""

METRICS_MSG_VPNS: Final = 2_000
"""Message VPNs that /metrics has series of. Beyond: the rest is left out, with its bridges and queues, and counted by
`vpnrouter_metrics_left_out`."""

SORT_CHARACTERS: Final = 100
"""Characters of a text that `sort` compares: names have fewer, and a cursor, which repeats them, still fits into an
address. Beyond: texts that begin alike are sorted by the names of their objects."""

METRICS_WAITING: Final = 4
"""Scrapes that wait for the one that is being made. Beyond: 503, try again."""

METRICS_LABELS: Final = 20_000
"""Objects whose labels are kept as text between two scrapes. Beyond: all are written anew at the next one."""

METRICS_ID_TIMES: Final = 4_096
"""Moments of which the router knows which message of the spool was the newest, for ages without reading messages.
Beyond: every second one is forgotten, so that ages get less exact the older they are."""

TRACE_TAILS: Final = 8
"""Different filters by which traces are looked at live at a time. Beyond: 503, try again."""

TRACE_TAIL_ROWS: Final = 2_000
"""Trace rows that are kept for one who looks. Beyond: the oldest go, and are counted as missed."""

TRACE_TAIL_RATE: Final = 500
"""Trace rows a second that are copied for one who looks; each costs the router's interpreter some ten microseconds.
Beyond: rows are counted as missed."""

TRACE_TAIL_TOPICS: Final = 5_000
"""Topics of one block of traces that are compared with a filter. Beyond: rows with the rest are counted as missed."""

TRACE_TAIL_PAGE: Final = 1_000
"""Trace rows in one answer. Beyond: they come with the next one."""

EVENTS_PAGE: Final = 1_000
"""Events in one answer. Beyond: they come with the next one."""

BODIES_OF_A_USER: Final = 128
"""Requests with a body that one user has under way: half of MANAGEMENT_CONNECTIONS, so that bodies that do not
come keep no other user out. Beyond: of the address with most bodies that are still to come the oldest is refused with
503; if all have come, the new one."""

CLEARED_COUNTS: Final = 10_000
"""Clients, and as many queues, whose counts were cleared while they went on. Beyond: the one that was cleared
longest ago shows again what it counted from the beginning."""

MATCHES: Final = 1_000
"""Subscriptions in the answers to which ones match a topic. Beyond: the rest, by holder and name, is left out."""

DOCUMENT_BYTES: Final = 8_388_608
"""Bytes of the body of a request that brings a whole configuration, as many as a file may have. Beyond: 400."""

DOCUMENTS_READ: Final = 4
"""Such bodies that are read at a time. Beyond: 503, try again."""

DOCUMENT_PROBLEMS: Final = 100
"""Problems that are told of a configuration that is refused. Beyond: the rest is counted."""

DOCUMENT_POSITIONS: Final = 100_000
"""Parts of a configuration of which GET /vpnrouter/v1/config says where they are written. Beyond: those that
are nested deepest are left out."""

NAME_SHOWN_CHARS: Final = 60
"""Characters of a name in a request that are repeated in the answer that refuses it. Beyond: cut."""


EDITOR_DOCUMENTS: Final = 16
"""Earlier configurations that a router can be told to return to. Beyond: the oldest is forgotten."""

EDITOR_BYTES: Final = 16_777_216
"""Bytes of all of these, packed; one of 1,000 queues takes some 10 kB. Beyond: the oldest is forgotten."""

EDITOR_LINES_TOLD: Final = 100
"""Lines in the log about one change of the configuration by the management API. Beyond: their number is
told; who asked gets all of them."""


REPORT_DRIVER_MEMORY: Final = "1400m"
"""Heap of the Java process behind a report; with what Java needs beside it the driver stays below 2 GiB.
Beyond: Spark spills to disk, and where it cannot, the report ends with an error."""

REPORT_SHUFFLE_PARTITIONS: Final = 8
"""Partitions of a small report's groupings; a larger one takes one per million trace rows, see below."""

REPORT_SHUFFLE_PARTITIONS_MOST: Final = 400
"""Most partitions of a report's groupings, reached at 400 million rows. Beyond: partitions grow,
Spark spills."""

REPORT_TOPICS: Final = 1_000
"""Rows of the report's table of busiest topics. Beyond: the less busy topics are left out, and the page says
how many rows stand for how many topics."""

REPORT_DISCARDS: Final = 1_000
"""Rows of the report's table of discards by reason and place. Beyond: the rarest are left out and the totals,
which are counted apart, still hold them."""

REPORT_PROVIDERS: Final = 10_000
"""Rows of the report's table of providers: links of connectors times directions. Beyond: those of fewer messages are
left out; the figures of their message VPNs still count them."""

REPORT_PAGE_ROWS: Final = 200
"""Rows of one table on the report page; more makes the page slow to open. Beyond: the page shows the first
ones and names the file that has all."""

REPORT_FOOTERS_AT_A_TIME: Final = 32
"""Footers of trace files that are read from an object store at the same time. Beyond: they wait for each other."""

REPORT_LAKEHOUSE_AT_A_TIME: Final = 8
"""Tables of Iceberg and Delta that a report writes at the same time, as each waits for an object store some twenty
times. Beyond: they wait for each other."""

REPORT_FOOTER_BYTES: Final = 16_000_000
"""Bytes of the footer of a trace file; a file with a larger one is set aside."""

REPORT_BROADCAST_ROWS: Final = 1_000_000
"""Contexts of trace rows that each task of a report has all of, some 200 MB. Beyond: rows move to their contexts, which
takes several times as long."""

REPORT_MOVING_CLOCKS: Final = 64
"""Clocks that were set or drift and that a report follows, those first that contradict most others. Beyond: latencies
of their routers are not corrected."""

REPORT_CLOCK_STRETCHES: Final = 32
"""Stretches of time in which one clock is followed. Beyond: latencies of its router are not corrected."""

REPORT_KEPT_BYTES: Final = 1_000_000_000
"""Bytes of trace files under 256 KiB whose rows Spark keeps, some five times as many in memory and on disk, so that
each file is opened once. Beyond: each pass opens them again."""

REPORT_DAMAGED_FILES: Final = 16
"""Damaged files that a report sets aside after Spark stumbled over them, each time starting afresh. Beyond:
the report ends with an error that names the last one."""

REPORT_DRAWN_SHAPES: Final = 3_000
"""Message VPNs in the report page's drawing, and bridges: what a browser zooms smoothly. Beyond: those in
trouble and the busiest are drawn, and the page says how many are not."""

REPORT_DRAWN_FEEDS: Final = 1_000
"""Arrows between message VPNs and providers in the report page's drawing, one for each pair, connector and direction.
Beyond: the busiest are drawn, with their providers, and the page says how many are not."""

REPORT_PAGE_SHAPE_ROWS: Final = 500
"""Rows of the page's tables of bridges, message VPNs and findings, which the drawing points to. Beyond: the
page shows the busiest or the worst; the drawing's panel still has the figures of each."""

REPORT_PAGE_STRETCHES: Final = 240
"""Points of a rate curve on the page. Beyond: neighbouring stretches are added up."""

REPORT_PAGE_SPANS: Final = 60
"""Times up of one link that the page's panel shows. Beyond: the latest are shown and all are counted."""

REPORT_PAGE_SHAPE_FINDINGS: Final = 20
"""Findings that the page's panel lists for one bridge or message VPN. Beyond: the worst ones, and how many
more there are."""

REPORT_SUBSCRIPTION_FINDINGS: Final = 1_000
"""Findings of one kind about subscriptions in a report. Beyond: those that concern the fewest messages, or were
held for the shortest time, are left out."""

REPORT_UNMET_SUBSCRIPTIONS: Final = 10_000
"""Subscriptions without a single message that a report looks at closely. Beyond: those held for the shortest
time are left out."""

REPORT_CLIENTS: Final = 20_000
"""Clients with several subscriptions whose filters a report compares with each other. Beyond: those with
fewer subscriptions are left out."""

REPORT_CLIENT_FILTERS: Final = 300
"""Subscriptions of one client that a report compares with each other. Beyond: the client is named as not
examined."""

REPORT_FILTER_PAIRS: Final = 1_000_000
"""Pairs of filters that a report compares in all, about two seconds. Beyond: the clients that are left,
which have most subscriptions, are named as not examined."""

REPORT_WASTED_EDGES: Final = 200
"""Bridges whose wasted messages a report looks into topic by topic. Beyond: those that waste the fewest
messages are left out."""

REPORT_EDGE_TOPICS: Final = 2_000
"""Topics of one bridge, received ones and wasted ones each, from which a narrower subscription is made. Beyond:
with more received topics no narrower subscription is proposed, of the wasted ones the busiest count."""

REPORT_RATES: Final = 100_000
"""Rows of the report's table of rates: bridges times stretches of time. Beyond: the rates of the less busy bridges
are left out; their totals and peaks stay in the table of bridges."""

REPORT_LATENCIES: Final = 100_000
"""Rows of the report's table of latencies: bridges times buckets. Beyond: the histograms of the bridges with fewer
samples are left out; their percentiles stay in the table of bridges."""

REPORT_END_TO_END: Final = 5_000
"""Pairs of message VPNs in the report's table of times from end to end. Beyond: the pairs with fewer messages are
left out."""

REPORT_WAYS: Final = 1_000
"""Rows of the report's table of ways. Beyond: the ways of fewer messages are left out; the table of lengths counts
them all."""

REPORT_LINKS: Final = 50_000
"""Rows of the report's table of times that links were up. Beyond: the earliest are left out; the counts and the
time up in the table of bridges are of all."""

REPORT_USAGE: Final = 10_000
"""Rows of the report's table of usage: days times clients, and days times bridges and where messages entered. Beyond:
those of the fewest bytes are one row together."""

REPORT_LINK_CHANGES: Final = 10_000
"""Ups and downs of one end of one link that a report follows; a link that does more flaps, and that is seen by then.
Beyond: the earliest are left out, and with them their time up; the counts in the table of bridges are of all."""

REPORT_CENTRALITY_STEPS: Final = 20_000_000
"""Message VPNs plus ways between them, times starts, that shortest ways are counted over: two to four seconds.
Beyond: they are counted from a sample of starts."""

REPORT_ROUTES: Final = 50_000
"""Ways of messages into message VPNs that a report plans with: which go over a bridge, and where they go without it.
Beyond: the ways of fewer messages are left out, and a note says so."""

REPORT_ROUTE_PAIRS: Final = 50_000
"""Pairs of message VPNs with traffic that a report plans with. Beyond: the pairs with fewer messages are left out, and
a note says so."""

REPORT_WHAT_IF: Final = 50
"""Rows of the table of what would be without a router, without a bridge, and with twice the load of a message VPN, of
each. Beyond: those that lose the least are left out; the command answers for each by name."""

REPORT_WHAT_IF_EFFECTS: Final = 1_000
"""Pairs apart, and bridges that carry more, that are listed for one question asked. Beyond: they are counted only."""

REPORT_WHAT_IF_STEPS: Final = 5_000_000
"""Bridges looked at in the search for other ways without each router, and again without each bridge: one to two seconds
each. Beyond: the routers and bridges that carry the least are left out, and a note says how many."""

REPORT_GROWTH: Final = 1_000
"""Endpoints whose growth a report looks at, and rows of the table of growth. Beyond: those that changed the least, or
that have the longest until they are full, are left out."""

REPORT_PAIRS: Final = 1_000
"""Rows of the report's table of pairs. Beyond: pairs with less traffic are left out."""

REPORT_PAIR_STEPS: Final = 2_000_000
"""Joints looked at for the hops and links of all pairs: about three seconds. Beyond: the rows left have neither."""

REPORT_PAIR_LINKS: Final = 8
"""Links between two message VPNs that are counted. Beyond: the table says as many, and means as many or more."""

REPORT_STRUCTURE_FINDINGS: Final = 200
"""Articulation points, and cut bridges, that are told as findings. Beyond: those with fewer messages show in the
tables alone."""

REPORT_SECOND_WAYS: Final = 3
"""Links that are proposed so that pairs get a second way, and as many around articulation points. Beyond: they
show when these are there."""

REPORT_CHANGES: Final = 1_000
"""Rows of the table of changes for each of message VPNs, bridges, topics and findings. Beyond: the smaller changes
are left out."""

REPORT_DRIFT_FINDINGS: Final = 1_000
"""Findings of each kind about the difference between configured and observed mesh. Beyond: they are counted only."""

REPORT_ADVICE: Final = 100
"""Rows of advice. Beyond: what would gain the least is left out."""

REPORT_ADVICE_ACTION: Final = 25
"""Rows of advice of one kind, so that one kind does not hide the others. Beyond: the same."""

REPORT_FINDINGS: Final = 200
"""Findings of one kind in a report: more of one kind have one cause, or nobody reads them. Beyond: the worst
are listed, and the last one says how many more there are."""

REPORT_TROUBLE_ROWS: Final = 20_000
"""Rows that a rule about trouble takes from Spark: places that lose messages, ways with a loop, topics that
nobody wants. Beyond: those with most messages count, and totals of findings are too small."""

REPORT_TROUBLE_FILTERS: Final = 200_000
"""Subscriptions that topics without a taker are compared with. Beyond: a topic whose subscriber came late may be
called a black hole."""

REPORT_TROUBLE_STALLS: Final = 1_000
"""Bridges that are looked at closely for stalls. Beyond: those with most stretches without arrivals."""

REPORT_FOLLOW_FILES: Final = 1_000
"""Trace files that one batch of a followed report takes, so that a backlog of days does not make one batch of all
memory. Beyond: the next batch takes them."""

REPORT_DIGEST_FILES: Final = 32
"""Files of one digest that a followed report keeps. Beyond: they are put together in one."""

REPORT_EXECUTOR_MEMORY: Final = "1g"
"""Heap of each executor on a cluster, where neither SPARK_EXECUTOR_MEMORY nor the cluster's spark-defaults.conf says
otherwise. Beyond: the executor spills to disk."""

REPORT_ASYNCAPI_TOPICS: Final = 20_000
"""Topics of a message VPN from which its AsyncAPI document is made. Beyond: the busiest, of those that are as busy any
ones; the document says how many are left out."""

REPORT_ASYNCAPI_TOPICS_ALL: Final = 200_000
"""As much of all message VPNs together, which the driver holds. Beyond: each gets an equal share of it."""

REPORT_ASYNCAPI_TOPIC_LENGTH: Final = 1_000
"""Characters of a topic in an AsyncAPI document: nobody reads a longer one. Beyond: the document counts it only."""

REPORT_ASYNCAPI_CHANNELS: Final = 500
"""Channels of an AsyncAPI document. Beyond: the busiest; the document says how many are left out."""

REPORT_ASYNCAPI_CHANNELS_ALL: Final = 50_000
"""As many of all documents together, which the driver holds. Beyond: each gets an equal share of them."""

REPORT_ASYNCAPI_NAMES: Final = 10
"""Clients, queues, bridges and connectors, of each, that a channel of an AsyncAPI document names. Beyond: the busiest,
and how many more there are."""

REPORT_WAYS_ON: Final = 200_000
"""Topics that cross on from message VPNs where nobody receives them, of which the driver finds out by itself whether
somebody farther on does. Beyond: Spark finds out, in some fifty jobs instead of one."""

REPORT_FOLLOW_PARTITIONS: Final = 2
"""Partitions of what a followed report keeps of messages under way. Each costs a file or two with every batch, however
little there is; a checkpoint keeps the number it began with."""


TUI_ROUTERS: Final = 16
"""Routers that one terminal interface looks at. Beyond: it does not start and says so."""

TUI_ROWS: Final = 500
"""Message VPNs, and bridges, of one router that are held at a time: those of the overview and the map.
Beyond: the first ones by name are shown, and those bridges that are down."""

TUI_TROUBLES: Final = 200
"""Lines of trouble in the overview. Beyond: the least of them are left out."""

TUI_QUEUES_LOOKED_AT: Final = 200
"""Queues with messages of one router that the overview looks at for trouble. Beyond: the first by name."""

TUI_PAGES: Final = 1_000
"""Pages of one list whose beginnings are remembered, of 100 rows each. Beyond: the list goes no further;
a filter brings what is wanted to the front."""

TUI_HISTORIES: Final = 4_096
"""Counters whose growth is kept. Beyond: those not seen for longest are forgotten, and begin anew."""

TUI_HISTORY: Final = 64
"""Rates that are kept of one counter, for its sparkline: half a minute at two looks a second. Beyond: the
oldest go."""

TUI_TAIL: Final = 1_000
"""Events, and traces, that are kept to scroll through. Beyond: the oldest go."""

TUI_TAIL_ROWS: Final = 100
"""Events or traces asked for at a time. Beyond: the next look brings them."""

TUI_PAYLOAD_SHOWN: Final = 65_536
"""Bytes of a payload that are shown. Beyond: it is cut, and a line says how much is left out."""

TUI_ANSWER: Final = 33_554_432
"""Bytes of one answer of a router that are read. Beyond: it is given up; a payload that large is for
`vpnrouter queue browse`."""

TUI_TEXT: Final = 1_000
"""Characters of one name or text that are drawn in a line. Beyond: it is cut; no terminal is that wide."""

TUI_LINES: Final = 10_000
"""Lines of a payload or an explanation that can be scrolled through. Beyond: they are left out, and the last
line says so."""

HTTP_HEAD_BYTES: Final = 65_536
"""Bytes of the head of an answer to a web hook, and of its trailers; common servers send some 200. Beyond: the
connection ends, and the message is tried again as one that was refused."""

HTTP_FIELDS: Final = 256
"""Lines of the head of an answer to a web hook. Beyond: the connection ends, likewise."""

HTTP_LINE_BYTES: Final = 8_192
"""Bytes of a line among the chunks of an answer to a web hook, which tells a size. Beyond: the connection ends,
likewise."""

HTTP_INFORMS: Final = 16
"""Answers 1xx before the one that counts; servers send one. Beyond: the connection ends, likewise."""

HTTP_ANSWER_BYTES: Final = 16_777_216
"""Bytes of the body of an answer to a web hook that are read, kept or not. Beyond: its status counts, and the
connection is closed."""

HTTP_REPLY_BYTES: Final = 1_048_576
"""Bytes of an answer that becomes a reply; each connection of a connector may hold one. Beyond: there is no reply,
which is counted."""

HTTP_CONNECTIONS: Final = 256
"""Connections of one connector to an HTTP server at most, each with one request. Beyond: ConfigError."""

HTTP_WAITING_BYTES: Final = 8_388_608
"""Bytes of Direct messages that wait for a connection to an HTTP server. Beyond: they are discarded and counted."""

HTTP_TARGET_BYTES: Final = 8_192
"""Bytes of the path and query of a request; RFC 9112 asks servers to take 8,000. Beyond: the message has no address at
the provider, and is given up."""

HTTP_VALUE_BYTES: Final = 4_096
"""Bytes of the value of one header that is made of a message. Beyond: it is cut, since servers refuse larger heads."""

HTTP_HEADERS: Final = 64
"""Headers that a link adds to its requests. Beyond: ConfigError."""

TRANSFORM_STEPS: Final = 32
"""Steps of the transform of a link. Beyond: ConfigError."""

TRANSFORM_TEXT_BYTES: Final = 16_384
"""Characters of a text with placeholders, and bytes of a property that a step sets. Beyond: ConfigError; a message
whose property would become longer is treated as `on_transform_error` says."""

TRANSFORM_JSON_BYTES: Final = 262_144
"""Bytes of a payload that steps read as JSON, and characters that a step may make: it takes a millisecond of the
router's time and some megabytes of its memory. Beyond: the message is treated as `on_transform_error` says."""

DEAD_MSG_QUEUES: Final = 16
"""Entries in the list of dead message queues of a bridge or a link. Beyond: ConfigError."""

UNDELIVERED_BYTES: Final = 8_388_608
"""Bytes of messages that a bridge or a link has given up and that wait for a dead message queue with room. Beyond: it
takes no more messages, which wait where they are."""

HTTP_RETRY_AFTER_S: Final = 3_600
"""Seconds that a server may ask for before the next request (Retry-After). Beyond: it is asked again after as many."""

HTTP_AHEAD: Final = 64
"""Messages of a queue that a link holds for each connection to an HTTP server that it may use: those whose keys wait
for an answer do not hold up the others as long as there are fewer. Beyond: they wait in the spool."""
