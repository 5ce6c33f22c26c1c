"""Documents on the way from what a router is to what it shall be."""

from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.plan.documents import Step, steps, unnamed, wanted

LINK = {"protocol": "link", "bind": "127.0.0.1:55555"}
HTTP = {"protocol": "http", "bind": "127.0.0.1:8080"}
NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from([{}, {"enabled": False}, {"x": 1}])
VPNS = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {},
        optional={
            "max_msg_size": st.integers(1, 3),
            "queues": st.dictionaries(NAMES, VALUES),
            "client_usernames": st.dictionaries(NAMES, VALUES),
            "bridges": st.dictionaries(NAMES, VALUES),
            "connectors": st.dictionaries(NAMES, VALUES),
        },
    ),
)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "listeners": st.lists(st.sampled_from([LINK, HTTP]), unique_by=str),
        "guaranteed_msging": VALUES,
        "msg_vpns": st.dictionaries(NAMES, VPNS),
    },
)


def test_blocks_that_are_asked_for_take_the_place_of_the_router_s() -> None:
    """What the file does not name stays: other blocks, other message VPNs."""
    current = {"router": {"name": "edge"}, "msg_vpns": {"a": {"x": 1}, "b": {}}}
    asked = {"msg_vpns": {"a": {"y": 2}}}
    assert wanted(current, asked, prune=False) == {
        "router": {"name": "edge"},
        "msg_vpns": {"a": {"y": 2}, "b": {}},
    }
    assert unnamed(current, asked) == ["b"]
    assert wanted(current, asked, prune=True)["msg_vpns"] == {"a": {"y": 2}}
    assert wanted(current, asked, prune=True, kept=["msg_vpns"]) == current


@given(DOCUMENTS, DOCUMENTS)
def test_the_way_ends_at_the_goal(current: Any, goal: Any) -> None:
    """The last step is the goal, whatever is between; nothing given is changed."""
    before = deepcopy((current, goal))
    found = steps(current, goal)
    assert (current, goal) == before
    assert found == [] if current == goal else found[-1].document == goal
    assert [step.name for step in found] == [
        name for name in ("grow", "bridge", "trim") if name in {step.name for step in found}
    ]


@given(DOCUMENTS, DOCUMENTS)
def test_nothing_goes_before_bridges_have_changed(current: Any, goal: Any) -> None:
    """Until the last step every object of before is there, and every new one from the first on."""
    for step in steps(current, goal)[:-1]:
        if step.name == "trim":
            continue
        for document in (current, goal):
            for name, vpn in (document.get("msg_vpns") or {}).items():
                there = step.document["msg_vpns"][name] or {}
                for kind in ("queues", "client_usernames"):
                    assert set((vpn or {}).get(kind, {})) <= set(there.get(kind, {}))
            for listener in document.get("listeners", []):
                assert listener in step.document["listeners"]


def test_bridges_change_in_the_middle() -> None:
    """A new bridge comes when its queue is there, an old queue goes when nobody takes from it."""
    current = {"msg_vpns": {"v": {"queues": {"old": {}}, "bridges": {"b": {"q": "old"}}}}}
    goal = {"msg_vpns": {"v": {"queues": {"new": {}}, "bridges": {"b": {"q": "new"}}}}}
    assert steps(current, goal) == [
        Step(
            "grow",
            {"msg_vpns": {"v": {"queues": {"old": {}, "new": {}}, "bridges": {"b": {"q": "old"}}}}},
        ),
        Step(
            "bridge",
            {"msg_vpns": {"v": {"queues": {"old": {}, "new": {}}, "bridges": {"b": {"q": "new"}}}}},
        ),
        Step("trim", goal),
    ]
