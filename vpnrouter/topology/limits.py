"""Bounds of the topology report and of what it keeps in memory; docs/limits.md lists them with the router's."""

from typing import Final

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

REPORT_PAGE_ROWS: Final = 200
"""Rows of one table on the report page; more makes the page slow to open. Beyond: the page shows the first
ones and names the file that has all."""

REPORT_DAMAGED_FILES: Final = 16
"""Damaged files that a report sets aside after Spark stumbled over them, each time starting afresh. Beyond:
the report ends with an error that names the last one."""

REPORT_DRAWN_SHAPES: Final = 3_000
"""Message VPNs in the report page's drawing, and bridges: what a browser zooms smoothly. Beyond: those in
trouble and the busiest are drawn, and the page says how many are not."""

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

REPORT_LINK_CHANGES: Final = 10_000
"""Ups and downs of one end of one link that a report follows; a link that does more flaps, and that is seen by then.
Beyond: the earliest are left out, and with them their time up; the counts in the table of bridges are of all."""

REPORT_GRAPH_EDGES: Final = 200_000
"""Joints between message VPNs up to which a mesh is taken apart in Python's memory. Beyond: Spark finds what hangs
together."""

REPORT_COMPONENT_ROUNDS: Final = 64
"""Rounds in which Spark finds what hangs together; a chain of a million message VPNs takes about 20. Beyond: the
report ends with an error."""

REPORT_CENTRALITY_STEPS: Final = 20_000_000
"""Message VPNs plus ways between them, times starts, that shortest ways are counted over: two to four seconds.
Beyond: they are counted from a sample of starts."""

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

REPORT_WAYS_ON: Final = 200_000
"""Topics that cross on from message VPNs where nobody receives them, of which the driver finds out by itself whether
somebody farther on does. Beyond: Spark finds out, in some fifty jobs instead of one."""

REPORT_FOLLOW_PARTITIONS: Final = 2
"""Partitions of what a followed report keeps of messages under way. Each costs a file or two with every batch, however
little there is; a checkpoint keeps the number it began with."""
