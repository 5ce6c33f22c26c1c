-- The report's tables of figures once more, in DuckDB's SQL, written from docs/report.md, docs/report-planning.md and
-- docs/traces.md alone. Each view has the name of the table that it computes, and its columns.
--
-- Given: the variables `traces` (a pattern of trace files) and `width_ns` (of a stretch of the timeline), and the table
-- `corrections` (router, reference, offset_ns): what is taken off the clocks.

-- --- trace rows ---------------------------------------------------------------------------------------------

create table trace_file as
select
    file_name as file,
    max(decode(value)) filter (decode(key) = 'vpnrouter.router') as router,
    max(try_cast(decode(value) as double)) filter (decode(key) = 'vpnrouter.trace.sample') as rate,
    coalesce(max(decode(value)) filter (decode(key) = 'vpnrouter.trace.always'), '') as always,
    nullif(max(decode(value)) filter (decode(key) = 'vpnrouter.host'), '') as host
from parquet_kv_metadata(getvariable('traces'))
group by file_name;

create table recorded as
select
    seen.* exclude (filename), trace_file.router, file,
    coalesce("count", 1) as many,
    -- Where the message entered first; a row with `count` is of no single message.
    if("count" is null and message_id is not null, coalesce(origin_router, trace_file.router), null) as entry_router,
    if("count" is null and message_id is not null, coalesce(origin_vpn, vpn), null) as entry_vpn,
    ts_ns // getvariable('width_ns') * getvariable('width_ns') as start_ns,
    strftime(make_timestamp_ns(ts_ns), '%Y-%m-%d') as day,
    mode in ('non_persistent', 'persistent') as is_guaranteed,
    -- Events that a router records of all messages stand for themselves.
    list_contains(string_split(always, ','), event) as is_complete
from read_parquet(getvariable('traces'), hive_partitioning = false, filename = true, union_by_name = true) as seen
join trace_file on file = filename
-- Times that cannot be right are left out.
where ts_ns >= epoch_ns(timestamp '2000-01-01') and ts_ns < epoch_ns(now()::timestamp + interval 1 day);

-- A router's rate holds from the first row of the file that has it.
create table rate_since as
select router, min(ts_ns) as since_ns, any_value(rate) as rate
from recorded join trace_file using (file, router)
group by router, file;

-- `weight`: how many messages a traced one stands for; null where that is not known.
create table trace as
select recorded.*, if(is_complete, 1.0, 1 / rate) as weight
from recorded asof left join rate_since
    on entry_router = rate_since.router and coalesce(origin_ts_ns, ts_ns) >= since_ns;

-- An estimate from the known weights of so many rows: null unless each has one.
create macro estimate(weights, rows) as
    if(coalesce(len(weights), 0) = rows, round(coalesce(list_sum(weights), 0))::bigint, null);

-- --- bridges ------------------------------------------------------------------------------------------------

-- Every row about a bridge, at its sending end (the remote router) or at its receiving one. A link's row is of the
-- sending end where it has a client: the name by which the bridge logged in there.
create table crossing as
select *,
    if(sends, router, peer_router) as from_router, if(sends, vpn, peer_vpn) as from_vpn,
    if(sends, peer_router, router) as to_router, if(sends, peer_vpn, vpn) as to_vpn
from (
    select *, if(event in ('link_up', 'link_down'), client is not null, event = 'bridge_send') as sends
    from trace where event in ('bridge_send', 'bridge_receive', 'link_up', 'link_down')
);

create view crossed as select * from crossing where event in ('bridge_send', 'bridge_receive');

create table busier as
select from_router, from_vpn, to_router, to_vpn, bridge, arg_max(sends, (messages, not sends)) as sends
from (select from_router, from_vpn, to_router, to_vpn, bridge, sends, count(*) as messages from crossed group by all)
group by all;

create view rates as
select from_router, from_vpn, to_router, to_vpn, bridge, start_ns,
    count(*) as messages, sum(size_bytes) as bytes, count(*) filter (is_guaranteed) as guaranteed
from crossed join busier using (from_router, from_vpn, to_router, to_vpn, bridge, sends)
group by all;

-- The times that each end saw the link up; and those of the end that saw more, the receiving one if alike.
create table link_seen as
select from_router, from_vpn, to_router, to_vpn, bridge, sends, ts_ns as up_ns,
    if(next_event = 'link_down', next_ns, null) as down_ns, if(next_event = 'link_down', next_reason, null) as reason
from (
    select *, lead(event) over following as next_event, lead(ts_ns) over following as next_ns,
        lead(reason) over following as next_reason
    from crossing where event in ('link_up', 'link_down')
    window following as (partition by from_router, from_vpn, to_router, to_vpn, bridge, sends order by ts_ns)
)
where event = 'link_up';

create table link_end as
select from_router, from_vpn, to_router, to_vpn, bridge, arg_max(sends, (ups, not sends)) as sends
from (select from_router, from_vpn, to_router, to_vpn, bridge, sends, count(*) as ups from link_seen group by all)
group by all;

create view links as
select link_seen.* exclude (sends)
from link_seen join link_end using (from_router, from_vpn, to_router, to_vpn, bridge, sends);

create view edges as
with every as (
    select from_router, from_vpn, to_router, to_vpn, bridge,
        count(*) filter (event = 'bridge_send') as sent,
        count(*) filter (event = 'bridge_receive') as received,
        greatest(
            count(*) filter (event = 'link_up' and sends), count(*) filter (event = 'link_up' and not sends)
        ) as link_ups,
        greatest(
            count(*) filter (event = 'link_down' and sends), count(*) filter (event = 'link_down' and not sends)
        ) as link_downs,
        min(ts_ns) as first_ns, max(ts_ns) as last_ns
    from crossing group by all
),
best as (
    select from_router, from_vpn, to_router, to_vpn, bridge,
        count(*) as messages, estimate(list(weight) filter (weight is not null), count(*)) as messages_estimated, sum(size_bytes) as bytes,
        count(*) filter (not is_guaranteed) as direct, count(*) filter (is_guaranteed) as guaranteed
    from crossed join busier using (from_router, from_vpn, to_router, to_vpn, bridge, sends)
    group by all
),
peak as (
    select from_router, from_vpn, to_router, to_vpn, bridge, max(messages) as peak_messages from rates group by all
),
-- A link that is still up counts to the last row of the router at that end.
time_up as (
    select from_router, from_vpn, to_router, to_vpn, bridge, sum(coalesce(down_ns, last_ns) - up_ns)::bigint as up_ns
    from link_seen join link_end using (from_router, from_vpn, to_router, to_vpn, bridge, sends)
    join (select router, max(ts_ns) as last_ns from trace group by all) on router = if(sends, from_router, to_router)
    group by all
)
select every.*, coalesce(best.messages, 0) as messages, if(best.messages is null, 0, messages_estimated) as messages_estimated,
    coalesce(bytes, 0) as bytes, coalesce(direct, 0) as direct, coalesce(guaranteed, 0) as guaranteed,
    coalesce(peak_messages, 0) as peak_messages, up_ns
from every
left join time_up using (from_router, from_vpn, to_router, to_vpn, bridge)
left join best using (from_router, from_vpn, to_router, to_vpn, bridge)
left join peak using (from_router, from_vpn, to_router, to_vpn, bridge);

-- --- message VPNs, topics, losses ---------------------------------------------------------------------------

create view nodes as
select router, vpn, true as traced,
    count(*) filter (event = 'ingress') as ingress,
    coalesce(sum(size_bytes) filter (event = 'ingress'), 0) as ingress_bytes,
    estimate(list(weight) filter (event = 'ingress' and weight is not null), ingress) as ingress_estimated,
    count(*) filter (event = 'deliver') as delivered,
    coalesce(sum(size_bytes) filter (event = 'deliver'), 0) as delivered_bytes,
    estimate(list(weight) filter (event = 'deliver' and weight is not null), delivered) as delivered_estimated,
    count(*) filter (event = 'bridge_receive') as bridged_in,
    count(*) filter (event = 'bridge_send') as bridged_out,
    count(*) filter (event = 'enqueue') as spooled,
    coalesce(sum(many) filter (event = 'discard'), 0) as discarded,
    coalesce(sum(many) filter (event = 'reject'), 0) as rejected,
    min(ts_ns) as first_ns, max(ts_ns) as last_ns
from trace where vpn is not null group by all
union all by name
-- The other ends of bridges that wrote no rows.
select * from (
    select from_router as router, from_vpn as vpn, false as traced from crossing
    union
    select to_router, to_vpn, false from crossing
)
where (router, vpn) not in (select (router, vpn) from trace where vpn is not null);

create view timeline as
select start_ns,
    count(*) filter (event = 'ingress') as ingress,
    count(*) filter (event = 'bridge_receive') as bridged,
    count(*) filter (event = 'deliver') as delivered,
    coalesce(sum(many) filter (event = 'discard'), 0) as discarded
from trace where event in ('ingress', 'bridge_receive', 'deliver', 'discard') group by all;

create view topics as
select topic, router, vpn,
    count(*) filter (event = 'ingress') as published,
    coalesce(sum(size_bytes) filter (event = 'ingress'), 0) as published_bytes,
    estimate(list(weight) filter (event = 'ingress' and weight is not null), published) as published_estimated,
    count(*) filter (event = 'bridge_receive') as bridged_in,
    count(*) filter (event = 'bridge_send') as bridged_out,
    count(*) filter (event = 'deliver') as delivered,
    coalesce(sum(many) filter (event = 'discard'), 0) as discarded
from trace
where event in ('ingress', 'bridge_receive', 'bridge_send', 'deliver', 'discard') and topic is not null
group by all;

create view discards as
select router, vpn, event, coalesce(reason, '') as reason, coalesce(endpoint, bridge, client, '') as place,
    sum(many) as messages,
    round(if(bool_and(weight is not null or is_complete), sum(if(is_complete, many, many * weight)), null))::bigint
        as messages_estimated,
    coalesce(sum(size_bytes), 0) as bytes, min(ts_ns) as first_ns, max(ts_ns) as last_ns,
    list(distinct topic) as topics
from trace where event in ('discard', 'reject', 'expire', 'dead_letter') group by all;

-- --- ways ---------------------------------------------------------------------------------------------------

-- Bridges between the places of a way: steps to a provider (the only places with "://") and from it are none.
create macro bridges_on(way) as
    len(list_filter(
        list_zip(string_split(way, '>')[:-2], string_split(way, '>')[2:]),
        lambda step: not contains(step[1], '://') and not contains(step[2], '://')
    ));

create view ways as
select "path" || '>' || router || '/' || vpn as way, bridges_on(way) as hops,
    count(*) as messages, sum(size_bytes) as bytes
from trace where event = 'bridge_receive' group by all;

create view lengths as
select hops, sum(messages)::bigint as messages
from (
    select hops, messages from ways
    union all
    select 0, count(*) from trace where event = 'ingress'
)
group by hops having sum(messages) > 0;

create view providers as
select router, vpn, regexp_extract(bridge, '^([^/]*)/', 1) as connector, regexp_extract(bridge, '/(.*)$', 1) as link,
    peer_router as provider, if(event = 'ingress', 'in', 'out') as direction,
    count(*) filter (event != 'redeliver') as messages,
    estimate(list(weight) filter (event != 'redeliver' and weight is not null), messages) as messages_estimated,
    coalesce(sum(size_bytes) filter (event != 'redeliver'), 0) as bytes,
    count(*) filter (event != 'redeliver' and not is_guaranteed) as direct,
    count(*) filter (event != 'redeliver' and is_guaranteed) as guaranteed,
    count(*) filter (event = 'redeliver') as redelivered,
    min(ts_ns) as first_ns, max(ts_ns) as last_ns
from trace where event in ('ingress', 'deliver', 'redeliver') and bridge is not null
group by all;

-- --- latencies ----------------------------------------------------------------------------------------------

-- 32 buckets for each doubling, of equal width; a bucket goes by its middle.
create macro middle(ns) as (
    case
        when abs(ns) < 64 then ns
        else sign(ns) * (
            abs(ns) // (1::bigint << (floor(log2(abs(ns)))::bigint - 5)) * (1::bigint << (floor(log2(abs(ns)))::bigint - 5))
            + (1::bigint << (floor(log2(abs(ns)))::bigint - 6))
        )
    end
)::bigint;

-- Routers whose clocks can be compared: those of one group, and each with itself.
create table alike as
select distinct one.router as from_router, other.router as to_router, true as corrected
from corrections as one join corrections as other using (reference)
where one.offset_ns is not null and other.offset_ns is not null and one.router != other.router
union all
select distinct router, router, true from recorded;

-- How far a clock is ahead when it shows a time. One that was set or drifts has rows for the times that are known.
create macro shown_by(clock, at_ns) as (
    clock.offset_ns + coalesce(trunc((at_ns - clock.first_ns)::double * clock.drift_ppm / 1e6)::bigint, 0)
);
create macro is_of(clock, at_ns) as (
    clock.offset_ns is not null
    and (clock.first_ns is null or (clock.first_ns <= at_ns and at_ns < clock.last_ns))
);

-- Of each message that both ends of a bridge saw: first sent, first come.
create table passage as
select message_id, from_router, from_vpn, to_router, to_vpn, bridge,
    min(ts_ns) filter (sends) as sent_ns, min(ts_ns) filter (not sends) as came_ns,
    count(*) filter (sends) as times_sent, count(*) filter (not sends) as times_came
from crossed where message_id is not null
group by all having times_sent > 0 and times_came > 0;

create table latency as
select from_router, from_vpn, to_router, to_vpn, bridge, times_sent, times_came, coalesce(corrected, false) as corrected,
    came_ns - sent_ns
        - case when corrected and from_router != to_router
            then shown_by(later, came_ns) - shown_by(earlier, sent_ns) else 0 end as ns
from passage left join alike using (from_router, to_router)
left join corrections as earlier
    on corrected and from_router != to_router and earlier.router = from_router and is_of(earlier, sent_ns)
left join corrections as later
    on corrected and from_router != to_router and later.router = to_router and is_of(later, came_ns)
where ns is not null;

create view edge_latencies as
select from_router, from_vpn, to_router, to_vpn, bridge, count(*) as latency_samples,
    bool_and(corrected) as latency_corrected, list(ns order by ns) as sorted_ns
from latency group by all;

create view latencies as
select from_router, from_vpn, to_router, to_vpn, bridge, middle(ns) as latency_ns, count(*) as messages
from latency group by all;

create table arrival as
select entry_router, entry_vpn, trace.router, vpn, event, endpoint, client, coalesce(corrected, false) as corrected,
    ts_ns - origin_ts_ns
        - case when corrected and entry_router != trace.router
            then shown_by(later, ts_ns) - shown_by(earlier, origin_ts_ns) else 0 end as ns
from trace left join alike on entry_router = from_router and trace.router = to_router
left join corrections as earlier
    on corrected and entry_router != trace.router and earlier.router = entry_router and is_of(earlier, origin_ts_ns)
left join corrections as later
    on corrected and entry_router != trace.router and later.router = trace.router and is_of(later, ts_ns)
where origin_ts_ns is not null and event in ('deliver', 'enqueue') and ns is not null;

create view end_to_end as
select entry_router as origin_router, entry_vpn as origin_vpn, router, vpn, count(*) as messages,
    bool_and(corrected) as corrected, list(ns order by ns) as sorted_ns
from arrival group by all;

-- The fastest message from the router where it entered to another one that received it, by the clocks of the two.
create view fastest as
select entry_router, router, min(ts_ns - origin_ts_ns) as ns
from trace where event = 'bridge_receive' and origin_ts_ns is not null and entry_router != router
group by all;

-- How far the clock of `router` is ahead of that of `other`, and half of the fastest round trip.
create view compared as
select one.router, one.entry_router as other, (one.ns - back.ns) / 2 as ahead_ns, (one.ns + back.ns) / 2 as error_ns
from fastest as one join fastest as back on one.router = back.entry_router and one.entry_router = back.router;

-- --- what depends on what -----------------------------------------------------------------------------------

-- Ways of messages into a message VPN, from the last provider on, as lists of places. What went round is left out.
create table stop as
select distinct way, way[1] as entry, way[-1] as goal
from (
    select string_split(regexp_replace("path", '^.*://[^>]*>', '') || '>' || router || '/' || vpn, '>') as way
    from trace where event = 'bridge_receive'
)
where len(list_distinct(way)) = len(way);

-- Each place, with what came into it or through it (`sender`), and with what got messages from it or through it.
create table dependent as
select distinct here, other, sender
from (
    select unnest(way[2:]) as here, entry as other, true as sender from stop
    union all
    select unnest(way[:-2]), goal, false from stop
);

create table member as
select router || '/' || vpn as here, router, vpn,
    count(distinct client) filter (event in ('ingress', 'deliver')) as clients,
    count(distinct endpoint) filter (event = 'enqueue') as endpoints
from (select router, vpn from nodes) left join trace using (router, vpn) group by all;

create view blast_radius as
with both_ways as (select distinct here, other from dependent),
beyond as (
    select both_ways.here, count(*) as vpns, sum(clients)::bigint as clients_beyond,
        sum(endpoints)::bigint as endpoints_beyond
    from both_ways join member on other = member.here group by all
),
counted as (
    select here, count(*) filter (sender) as senders, count(*) filter (not sender) as receivers from dependent group by all
),
-- Where no endpoint took anything, nothing is known of endpoints.
known as (select sum(endpoints) > 0 as endpoints_known from member),
inside as (
    select entry_router as router, entry_vpn as vpn, count(*) as messages from arrival
    where entry_router = router and entry_vpn = vpn group by all
),
whole as (select (max(ts_ns) - min(ts_ns)) / 1e9 as seconds from trace)
select router, vpn, clients, if(endpoints_known, endpoints, null) as endpoints,
    coalesce(messages, 0) / seconds as local_per_s,
    coalesce(senders, 0) as senders, coalesce(receivers, 0) as receivers, coalesce(vpns, 0) as vpns,
    coalesce(clients_beyond, 0) as clients_beyond,
    if(endpoints_known, coalesce(endpoints_beyond, 0), null) as endpoints_beyond
from member cross join known cross join whole
left join inside using (router, vpn) left join counted using (here) left join beyond using (here);

-- --- usage --------------------------------------------------------------------------------------------------

create view usage as
select 'client' as what, day, router, vpn, client,
    null::varchar as from_router, null::varchar as from_vpn, null::varchar as to_router, null::varchar as to_vpn,
    null::varchar as bridge,
    count(*) filter (event = 'ingress') as published,
    coalesce(sum(size_bytes) filter (event = 'ingress'), 0) as published_bytes,
    estimate(list(weight) filter (event = 'ingress' and weight is not null), published) as published_estimated,
    count(*) filter (event = 'deliver') as delivered,
    coalesce(sum(size_bytes) filter (event = 'deliver'), 0) as delivered_bytes,
    estimate(list(weight) filter (event = 'deliver' and weight is not null), delivered) as delivered_estimated,
    0 as crossings, 0 as crossing_bytes, 0 as crossings_estimated, 1 as rows
from (
    select * replace (
        if(bridge is not null, '#connector/' || regexp_extract(bridge, '^([^/]*)/', 1), client) as client
    ) from trace where event in ('ingress', 'deliver')
)
where client is not null group by all
union all
select 'bridge', day, entry_router, entry_vpn, null, from_router, from_vpn, to_router, to_vpn, bridge, 0, 0, 0, 0, 0, 0,
    count(*), sum(size_bytes), estimate(list(weight) filter (weight is not null), count(*)), 1
from crossed join busier using (from_router, from_vpn, to_router, to_vpn, bridge, sends)
group by all;
