"""Declares the digests: the few small frames from which all tables and findings are made.

Each is made in one pass over the rows (HOPS and DOUBLES in two) and is additive, so that a stream of traces can be
digested in batches and kept as files.

In all of them: `weight` is how many messages the rows stand for, null as soon as that is not known of one row; `bytes`
is of payloads; `start_ns` is the begin of a stretch of time, nanoseconds since 1970; `count` is of trace rows, where a
row that stands for several messages counts as those.
"""

from typing import Final

from pyspark.sql.types import StructType

from vpnrouter.report.schema import flag, integer, long, real, struct, text

PLACES: Final = struct(
    **text("router vpn event mode bridge peer_router peer_vpn"),
    **flag("remote"),
    **long("start_ns count"),
    **real("weight"),
    **long("bytes first_ns last_ns"),
)
"""What happened where in which stretch: all events but `subscribe`, `unsubscribe` and `link_rejected`.

`bridge` and the peer are null for events that concern none, those of connectors name a link and a provider;
`mode` is null for `link_*`. `remote` is true when the
row was written by the remote router of the bridge, where messages come from (`bridge_send`, and `link_*` with
a client).
"""

PATHS: Final = struct(
    **text("path router vpn bridge peer_router peer_vpn origin_router origin_vpn"),
    **integer("hops"),
    **long("count bytes first_ns last_ns"),
)
"""The ways on which messages came into message VPNs, from `bridge_receive` rows: `path` is what they had
visited before ("router/vpn>router/vpn"; null where a row does not say).
"""

AGES: Final = struct(
    **text("origin_router router"),
    **long("start_ns least_age_ns"),
)
"""The shortest time in each stretch from the first ingress at `origin_router` to an arrival over a bridge at `router`,
by the clocks of the two, uncorrected: what `vpnrouter.report.flows.clocks` knows of clocks.
"""

USES: Final = struct(
    **text("topic router vpn event client endpoint bridge peer_router peer_vpn"),
    **long("count"),
    **real("weight"),
    **long("bytes"),
)
"""What became of each topic in each message VPN: `ingress`, `bridge_receive`, `deliver` (with client),
`enqueue` (with endpoint), `bridge_send` (with the bridge's client), `discard` (with the reason in `endpoint`
where it is `no-subscription-match`, else null). `bridge` and the peer only for events of bridges and
connectors. The one digest whose size grows with the number of topics.
"""

LOSSES: Final = struct(
    **text("router vpn event reason endpoint bridge client"),
    **flag("crossed"),
    **long("start_ns count"),
    **real("weight"),
    **long("bytes"),
    **text("example_topic example_path"),
    **long("first_ns last_ns"),
)
"""Events that ended a message's way or held it up, by reason and place: `discard`, `reject`, `expire`,
`dead_letter`, `redeliver`. `crossed`: it had come over a bridge. `reason`, `endpoint`, `bridge` and `client`
are "" where the row does not name one.
"""

DELAYS: Final = struct(
    **text("origin_router origin_vpn router vpn"),
    **flag("corrected"),
    **integer("bucket"),
    **long("count error_ns"),
)
"""How long messages were under way from their first ingress to a delivery or an endpoint (`deliver`, `enqueue`),
by clocks that are corrected: counts by bucket of `vpnrouter.report.digests.columns`. `corrected`: the difference of the
clocks was known when they were counted, and `error_ns` is a bound of its error, null where it was not.
"""

HOPS: Final = struct(
    **text("from_router from_vpn to_router to_vpn bridge"),
    **flag("corrected"),
    **integer("bucket"),
    **long("count error_ns"),
)
"""How long messages took over each bridge, from `bridge_send` to `bridge_receive`, by corrected clocks; `corrected` and
`error_ns` as in DELAYS.
"""

DOUBLES: Final = struct(
    **text("kind router vpn who other"),
    **long("messages copies"),
    **text("example_trace"),
    **long("first_ns last_ns"),
)
"""Messages that came more than once, found by following each message:

* `deliver`: a client, `who`, got the same message more than once (redeliveries do not count).
* `enqueue`: an endpoint, `who`, took the same message more than once.
* `bridge`: a bridge, `who`, brought the same message more than once.
* `two_ways`: a message came into this message VPN over two bridges, `who` and `other` ("router/vpn:bridge" of
  its remote end, in order of name; of more than two the first and the last).

`messages` is how many messages, `copies` how many were one too many.
"""

STATES: Final = struct(
    **long("ts_ns"),
    **text("router vpn event client bridge peer_router peer_vpn topic topic_syntax reason"),
)
"""The rows that concern no message, as they are: link_up, link_down, link_rejected, subscribe, unsubscribe;
`topic` is the filter of the last two, `topic_syntax` its dialect ("mqtt" or "smf", null where unknown).
"""

USAGE: Final = struct(
    **text("router vpn event client origin_router origin_vpn bridge peer_router peer_vpn"),
    **long("day_ns count"),
    **real("weight"),
    **long("bytes"),
)
"""Who used what on which day: `ingress` and `deliver` by client, `bridge_send` and `bridge_receive` by bridge and by
where the messages entered first; the other columns are null. `day_ns` is the begin of the day (UTC), nanoseconds since
1970.
"""

ENDPOINTS: Final = struct(
    **text("router vpn endpoint"),
    **integer("partition"),
    **long("start_ns enqueued acknowledged bytes"),
    **real("weight"),
)
"""Load of each queue and topic endpoint in each stretch; `partition` is null for one that has none. `bytes` are of what
was enqueued; `weight` is of what was enqueued less what was acknowledged.
"""

DIGESTS: Final[dict[str, StructType]] = {
    "places": PLACES,
    "paths": PATHS,
    "ages": AGES,
    "uses": USES,
    "losses": LOSSES,
    "delays": DELAYS,
    "hops": HOPS,
    "doubles": DOUBLES,
    "states": STATES,
    "endpoints": ENDPOINTS,
    "usage": USAGE,
}
"""Every digest by the name of its file."""
