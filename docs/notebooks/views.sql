-- Views of the newest report, for DuckDB and for Spark SQL. Made by `python docs/make_report_tables.py`. A semicolon
-- ends each statement and stands nowhere else.
--
-- They stand on the tables of all days, which are named as in docs/report-tables.md. With DuckDB, for each table:
--
--     create or replace temporary view nodes as
--         from read_parquet('report/tables/nodes/*/*.parquet', hive_partitioning = true, union_by_name = true)
--
-- with Spark:
--
--     create or replace temporary view nodes
--         using parquet options (path 'report/tables/nodes', mergeSchema 'true')
--
-- Iceberg tables are there by their names after `use CATALOG.vpnrouter`, Delta tables as delta.`…/lakehouse/nodes`.

-- The newest day, and the one before. A table may have no row of a day, but there are always message VPNs.
create or replace temporary view latest_day as
    select max(date) as date from nodes;
create or replace temporary view previous_day as
    select max(date) as date from nodes where date < (select max(date) from nodes);

-- A recommended change, the most useful first.
create or replace temporary view latest_advice as
    select * from advice where date = (select date from latest_day);

-- A finding, the worst first.
create or replace temporary view latest_findings as
    select * from findings where date = (select date from latest_day);

-- A difference between two ranges of time, where `--against` was given.
create or replace temporary view latest_changes as
    select * from changes where date = (select date from latest_day);

-- A message VPN.
create or replace temporary view latest_nodes as
    select * from nodes where date = (select date from latest_day);

-- A bridge, from the remote message VPN, where messages come from, to the local one, which attracts.
create or replace temporary view latest_edges as
    select * from edges where date = (select date from latest_day);

-- A time that a bridge's link was up.
create or replace temporary view latest_links as
    select * from links where date = (select date from latest_day);

-- A bridge and a stretch of time in which messages crossed it.
create or replace temporary view latest_rates as
    select * from rates where date = (select date from latest_day);

-- A bridge and a bucket of its latency histogram.
create or replace temporary view latest_latencies as
    select * from latencies where date = (select date from latest_day);

-- A pair of message VPNs: from first ingress to delivery, or to an endpoint that took the message.
create or replace temporary view latest_end_to_end as
    select * from end_to_end where date = (select date from latest_day);

-- A router.
create or replace temporary view latest_clocks as
    select * from clocks where date = (select date from latest_day);

-- A path of messages.
create or replace temporary view latest_ways as
    select * from ways where date = (select date from latest_day);

-- A number of bridges that messages had crossed when they entered a message VPN.
create or replace temporary view latest_lengths as
    select * from lengths where date = (select date from latest_day);

-- A topic and a message VPN in which it was seen.
create or replace temporary view latest_topics as
    select * from topics where date = (select date from latest_day);

-- A message VPN, an event that ended messages early, its reason and its place.
create or replace temporary view latest_discards as
    select * from discards where date = (select date from latest_day);

-- A link of a connector, a provider and a direction.
create or replace temporary view latest_providers as
    select * from providers where date = (select date from latest_day);

-- A stretch of time with any event.
create or replace temporary view latest_timeline as
    select * from timeline where date = (select date from latest_day);

-- A day, a message VPN, and a client or a bridge.
create or replace temporary view latest_usage as
    select * from usage where date = (select date from latest_day);

-- A message VPN and its place in the mesh.
create or replace temporary view latest_vpns as
    select * from vpns where date = (select date from latest_day);

-- A router, a bridge or a message VPN and what its loss or a doubled load would do.
create or replace temporary view latest_what_if as
    select * from what_if where date = (select date from latest_day);

-- A message VPN and what depends on it.
create or replace temporary view latest_blast_radius as
    select * from blast_radius where date = (select date from latest_day);

-- A queue or a bridge and its trend.
create or replace temporary view latest_growth as
    select * from growth where date = (select date from latest_day);

-- A pair of message VPNs.
create or replace temporary view latest_pairs as
    select * from pairs where date = (select date from latest_day);
