"""Topic filters as regular expressions, built by Spark itself from columns of filters.

The grammar is that of `vpnrouter.topics.grammar` (docs/topics.md, TOPIC-7 to TOPIC-28); tests hold the
expressions against the definition. A filter that the router would have refused gives some pattern too.
"""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from vpnrouter.topics.grammar import MQTT as MQTT_DIALECT
from vpnrouter.topics.grammar import SMF as SMF_DIALECT

MQTT: Final = "mqtt"
SMF: Final = "smf"
DIALECTS: Final = {MQTT: MQTT_DIALECT, SMF: SMF_DIALECT}
"""The dialects of `vpnrouter.topics.grammar` by their names in trace files."""

BRIDGE_CLIENT: Final = "#bridge/"
"""What the name of a client begins with under which a bridge logs in: "#bridge/ROUTER/VPN/BRIDGE"."""

_ONE: Final = "[^/]*"
# A topic that begins with these is matched only by filters whose first level is literal (TOPIC-23, TOPIC-24).
_NOT_HIDDEN: Final = r"(?!\$|#P2P)"


def syntax_of(client: Column, written: Column) -> Column:
    """The dialect of a subscription: as written down, else by the kind of client: bridges speak SMF."""
    bridge = client.startswith(BRIDGE_CLIENT)
    return F.coalesce(written, F.when(bridge, F.lit(SMF)).otherwise(F.lit(MQTT)))


def exception(filter_: Column, syntax: Column) -> Column:
    """Is it a subscription exception (TOPIC-29)? In MQTT a leading `!` stands for itself."""
    return (syntax == SMF) & filter_.startswith("!")


def bare(filter_: Column, syntax: Column) -> Column:
    """The filter without exception mark, `#noexport/` and share name."""
    shared = F.regexp_replace(filter_, r"^\$share/[^/]+/", "")
    exported = F.regexp_replace(filter_, r"^!?(?:#noexport/)?(?:#share/[^/]+/)?", "")
    return F.when(syntax == MQTT, shared).otherwise(exported)


def levels(text: Column) -> Column:
    """The levels of a topic or of a bare filter; empty levels are levels (TOPIC-7)."""
    return F.split(text, "/", -1)


def wild_first(text: Column, syntax: Column) -> Column:
    """Is the first level of a bare filter a wildcard?"""
    parts = levels(text)
    first = parts[0]
    smf = first.endswith("*") | (text == ">")
    return F.when(syntax == MQTT, first.isin("+", "#")).otherwise(smf)


def literal(text: Column, syntax: Column) -> Column:
    """Has a bare filter no wildcard, so that it matches the one topic that reads the same?"""
    parts = levels(text)
    mqtt = F.exists(parts, lambda level: level.isin("+", "#"))
    smf = F.exists(parts, lambda level: level.endswith("*")) | (F.element_at(parts, -1) == ">")
    return ~F.when(syntax == MQTT, mqtt).otherwise(smf)


def pattern(text: Column, syntax: Column) -> Column:
    """The regular expression (Java's) that finds exactly the topics that a bare filter matches."""
    guard = F.when(wild_first(text, syntax), F.lit(_NOT_HIDDEN)).otherwise(F.lit(""))
    body = F.when(syntax == MQTT, _mqtt(levels(text))).otherwise(_smf(levels(text)))
    # (?s): a topic may hold line ends. \z and not $, which would pass over a last line end.
    return F.concat(F.lit(r"(?s)\A"), guard, body, F.lit(r"\z"))


def _smf(parts: Column) -> Column:
    last = F.size(parts) - 1

    def piece(level: Column, index: Column) -> Column:
        prefix = F.concat(_quoted(_cut(level)), F.lit(_ONE))
        return (
            F.when((level == ">") & (index == last), F.lit(".*"))
            .when(level.endswith("*"), prefix)
            .otherwise(_quoted(level))
        )

    return F.array_join(F.transform(parts, piece), "/")


def _cut(level: Column) -> Column:
    """A level without its last character."""
    return F.substring(level, F.lit(1), F.length(level) - 1)


def _mqtt(parts: Column) -> Column:
    open_end = F.element_at(parts, -1) == "#"
    fixed = F.when(open_end, F.slice(parts, 1, F.size(parts) - 1)).otherwise(parts)
    body = F.array_join(
        F.transform(
            fixed, lambda level: F.when(level == "+", F.lit(_ONE)).otherwise(_quoted(level))
        ),
        "/",
    )
    return (
        F.when(F.size(fixed) == 0, F.lit(".*"))
        .when(open_end, F.concat(body, F.lit("(?:/.*)?")))
        .otherwise(body)
    )


def _quoted(text: Column) -> Column:
    """Text that stands for itself; the mark that ends a quotation ends it and is quoted by itself."""
    inside = F.replace(text, F.lit(r"\E"), F.lit(r"\E\\E\Q"))
    return F.concat(F.lit(r"\Q"), inside, F.lit(r"\E"))
