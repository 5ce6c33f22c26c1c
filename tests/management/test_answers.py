"""Rows of an answer: envelope, pages, select, where and sort."""

import base64
import fnmatch
import json
import random
from typing import Any

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.errors import RequestError
from vpnrouter.limits import SORT_CHARACTERS
from vpnrouter.management.answers.conditions import Condition, matches, meets, parse_where
from vpnrouter.management.answers.order import parse_sort, sort_key
from vpnrouter.management.answers.pages import CHUNK, Key, Page, nested_page, page_of, sorted_page
from vpnrouter.management.answers.rows import Row
from vpnrouter.management.answers.selection import parse_select

KNOWN = ["bridgeName", "rxMsgCount", "rxByteCount", "txMsgCount"]


@pytest.mark.parametrize(
    ("select", "names"),
    [
        ("bridgeName", {"bridgeName"}),
        ("rx*", {"rxMsgCount", "rxByteCount"}),
        ("*MsgCount,bridgeName", {"rxMsgCount", "txMsgCount", "bridgeName"}),
        ("-rx*", {"bridgeName", "txMsgCount"}),
        ("rx*,-rxByte*", {"rxMsgCount"}),
        ("bridgeName,-bridgeName", set()),
    ],
)
def test_select(select: str, names: set[str]) -> None:
    """Names and patterns add, those with a dash take away."""
    assert parse_select(select, KNOWN) == names


@pytest.mark.parametrize("select", ["nosuch", "bridgeName,", "-nosuch*", "bridgename"])
def test_a_pattern_that_fits_nothing(select: str) -> None:
    """A misspelt name is an error that names it, not an empty answer."""
    with pytest.raises(RequestError, match=r"^select: there is no attribute"):
        parse_select(select, KNOWN)


def test_too_many_names() -> None:
    """One name more than the bound is refused."""
    names = ["bridgeName"] * limits.MANAGEMENT_SELECTED
    assert parse_select(",".join(names), KNOWN) == {"bridgeName"}
    with pytest.raises(RequestError, match="more than 256 names"):
        parse_select(",".join([*names, "bridgeName"]), KNOWN)


ROW = {"name": "from-edge", "up": True, "count": 5, "reasons": {"a": 1}}


@pytest.mark.parametrize(
    ("where", "met"),
    [
        ("", True),
        ("name==from-edge", True),
        ("name!=from-edge", False),
        ("name==from-*", True),
        ("name==*x*", False),
        ("name!=to-*", True),
        ("name==", False),
        ("up==true", True),
        ("up!=true", False),
        ("up==false", False),
        ("count==5", True),
        ("count!=5", False),
        ("count<5", False),
        ("count<=5", True),
        ("count>4", True),
        ("count>=6", False),
        ("count>-1", True),
        ("count>4,up==true,name==from*", True),
        ("count>4,up==false,name==from*", False),
    ],
)
def test_conditions(where: str, met: bool) -> None:
    """A row meets a where when it meets each of its conditions."""
    assert meets(ROW, parse_where(where, ROW)) is met


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("name", "'name' is no condition"),
        ("name=x", "'name=x' is no condition"),
        ("==x", "'==x' is no condition"),
        ("name==a,", "'' is no condition"),
        ("nmae==x", "there is no attribute nmae"),
        ("count==many", "count is compared with a number"),
        ("up==yes", "up is compared by == or != with true or false"),
        ("up>true", "up is compared by == or !="),
        ("name>a", "name cannot be compared by >"),
        ("reasons==a", "reasons cannot be compared by =="),
        (",".join(["count>1"] * (limits.MANAGEMENT_CONDITIONS + 1)), "more than 16 conditions"),
    ],
)
def test_what_is_no_condition(where: str, said: str) -> None:
    """One error says what is wrong with it."""
    with pytest.raises(RequestError, match=r"^where: ") as caught:
        meets(ROW, parse_where(where, ROW))
    assert said in str(caught.value)
    assert (caught.value.code, caught.value.http_status) == (11, 400)


@given(
    st.text(alphabet="ab*", max_size=8),
    st.text(alphabet="ab", max_size=8),
)
@example("ab*b", "ab")
@example("a*b*b", "ab")
def test_matches_as_a_shell_does(pattern: str, text: str) -> None:
    """Only `*` is special, and it stands for any characters, none included."""
    assert matches(pattern, text) == fnmatch.fnmatchcase(text, pattern)


def test_a_hostile_pattern_is_not_slow() -> None:
    """Many wildcards over a long text take linear time."""
    assert not matches("*a" * 50_000 + "b", "a" * 100_000)


ODD = parse_where("odd==true", ["odd"])


def row_of_key(key: Key) -> Row:
    """A row that says whether the key's number is odd."""
    return {"odd": int(key[0]) % 2 == 1}


def keys(count: int) -> list[Key]:
    """So many keys, in no order."""
    made = [(f"{number:04}",) for number in range(count)]
    random.Random(3).shuffle(made)
    return made


@pytest.mark.parametrize("conditions", [(), ODD], ids=["all", "odd"])
@pytest.mark.parametrize("count", [0, 1, 2, 9, 10, 11, 20, 95])
@pytest.mark.parametrize("most", [1, 5, 10])
async def test_pages_are_the_whole(count: int, most: int, conditions: tuple) -> None:
    """The pages together are all objects that meet the conditions, once each, in order; each says how many."""
    wanted = [key for key in sorted(keys(count)) if not conditions or row_of_key(key)["odd"]]
    seen: list[Key] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await page_of(keys(count), row_of_key, most, cursor, conditions)
        assert page.total == len(wanted)
        assert len(page.rows) <= most
        assert page.rows or not wanted, "no page is empty but the only one"
        seen += [key for key, _ in page.rows]
        cursor = page.cursor
    assert seen == wanted


async def test_objects_that_come_and_go_between_pages() -> None:
    """An object that is gone is left out, also the one the cursor names; no other is shown twice or missed."""
    first = await page_of(keys(10), row_of_key, 4, "", ())
    assert first.cursor is not None
    rest = [key for key in keys(10) if key != ("0003",)] + [("00025",)]
    second = await page_of(rest, row_of_key, 100, first.cursor, ())
    assert [key for key, _ in second.rows] == [(f"{number:04}",) for number in range(4, 10)]


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "%%%",
        "ä",
        base64.urlsafe_b64encode(b"{}").decode(),
        base64.urlsafe_b64encode(b"[1]").decode(),
        base64.urlsafe_b64encode(b"[" * 100_000).decode(),
    ],
)
async def test_what_is_no_cursor(cursor: str) -> None:
    """Anything that this API did not give is refused."""
    with pytest.raises(RequestError, match=r"^cursor: not one that this API gave"):
        await page_of(keys(3), row_of_key, 1, cursor, ())


async def test_other_tasks_have_their_turn() -> None:
    """A search through many objects does not hold up the router."""
    turns = 0
    done: list[Page] = []

    async def turn() -> None:
        nonlocal turns
        while not done:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn)
        done.append(await page_of(keys(10 * CHUNK), row_of_key, 5, "", ODD))
    assert turns > 5


def test_names_of_an_order() -> None:
    """What is no attribute, comes twice or has no order is refused by name."""
    assert parse_sort("", ["a"]) == ()
    for text, said in (("b", "no attribute b"), ("a,-a", "twice"), ("a,", "no attribute ")):
        with pytest.raises(RequestError, match=said):
            parse_sort(text, ["a"])
    with pytest.raises(RequestError, match="a has no order"):
        sort_key({"x": 1}, parse_sort("a", ["a"])[0])


def test_a_bounded_part_of_a_text_is_compared() -> None:
    """Texts that differ beyond it are alike, so that no cursor gets longer than an address may be."""
    alike = "a" * SORT_CHARACTERS
    for text in ("a", "-a"):
        (order,) = parse_sort(text, ["a"])
        assert sort_key(alike + "b", order) == sort_key(alike + "c", order)
        assert sort_key(alike[1:] + "b", order) != sort_key(alike[1:] + "c", order)


@pytest.mark.parametrize("sort", ["n", "-n", "-word,n", "odd,-word,-n", "word"])
@pytest.mark.parametrize("most", [1, 3, 40])
async def test_sorted_pages_are_the_whole(sort: str, most: int) -> None:
    """Sorted by numbers, texts or truth values, up or down, the pages together are all rows in that order."""
    seed = random.randrange(1 << 30)
    draw = random.Random(seed)
    rows = {
        key: {
            "n": draw.randint(-3, 3),
            "word": "".join(draw.choice("aä\U0001f600") for _ in range(draw.randint(0, 3))),
            "odd": draw.random() < 0.5,
        }
        for key in keys(37)
    }
    wanted = sorted(rows)
    order = parse_sort(sort, ["n", "word", "odd"])
    for each in reversed(order):
        wanted.sort(key=lambda key: rows[key][each.name], reverse=each.descending)
    where = parse_where("odd==true", ["odd"])
    for conditions in ((), where):
        seen: list[Key] = []
        cursor: str | None = ""
        expected = [key for key in wanted if not conditions or rows[key]["odd"]]
        while cursor is not None:
            page = await sorted_page(list(rows), rows.get, most, cursor, conditions, order)
            assert page.total == len(expected), f"seed {seed}"
            seen += [key for key, _ in page.rows]
            cursor = page.cursor
        assert seen == expected, f"seed {seed}"


@pytest.mark.parametrize(
    "names", [["0001"], [[], ["0001"]], [[1, 2], ["0001"]], [["x"], ["1"]], [[[1]], ["1"]], 7]
)
async def test_a_cursor_of_another_order(names: object) -> None:
    """A cursor of another order is refused."""
    cursor = base64.urlsafe_b64encode(json.dumps(names).encode()).decode()
    order = parse_sort("n", ["n"])
    with pytest.raises(RequestError, match="not one that this API gave"):
        await sorted_page(keys(3), lambda key: {"n": int(key[0])}, 2, cursor, (), order)


NAMES = st.sampled_from(["a", "b", "b ", "ba", "c"])


@given(
    st.dictionaries(st.tuples(NAMES, NAMES), st.sets(NAMES, max_size=4), max_size=8),
    st.integers(1, 5),
    st.booleans(),
)
async def test_every_row_once(
    contents: dict[tuple[str, str], set[str]], most: int, conditional: bool
) -> None:
    """Pages give all rows in order, each once, also when the group of the cursor is gone meanwhile."""
    opened: list[Key] = []

    def open_group(group: Key) -> list[tuple[Key, Row]]:
        opened.append(group)
        return [((*group, name), {"n": len(name)}) for name in sorted(contents[group[0], group[1]])]

    every = [(*group, name) for group in sorted(contents) for name in sorted(contents[group])]
    wanted = [key for key in every if not conditional or len(key[2]) == 1]
    conditions = (Condition("n", "==", "1"),) if conditional else ()
    seen: list[Key] = []
    cursor = ""
    while True:
        opened.clear()
        page = await nested_page(sorted(contents), open_group, most, cursor, conditions, len(every))
        assert page.total == (len(wanted) if conditional else len(every))
        assert len(page.rows) <= most
        if not conditional:
            # Those that hold nothing are passed through; of the others no more than rows are shown.
            assert sum(bool(contents[key[0], key[1]]) for key in opened) <= most + 2
        seen += [key for key, _ in page.rows]
        if page.cursor is None:
            break
        cursor = page.cursor
    assert seen == wanted
    if cursor:
        last = seen[-len(page.rows) - 1]
        left = {key: held for key, held in contents.items() if key != last[:2]}
        rest = await nested_page(sorted(left), open_group, 100, cursor, conditions, 0)
        assert [key for key, _ in rest.rows] == [
            key for key in wanted if key > last and key[:2] != last[:2]
        ]


PATH = "/SEMP/v2/monitor/msgVpns"
MOST = limits.MANAGEMENT_PAGE_ROWS


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?count=0", "count: "),
        (f"?count={MOST + 1}", "count: "),
        ("?count=many", "count: "),
        ("?cursor=x", "cursor: not one"),
        ("?where=x", "where: "),
        ("?select=x", "select: there is no attribute x"),
        ("?slect=x", "there is no query parameter slect"),
        ("/blue?count=1", "there is no query parameter count"),
        ("/blue?select=x", "select: there is no attribute x"),
    ],
)
async def test_a_wrong_query(here: Any, query: str, said: str) -> None:
    """Each is one error that says what is wrong; what is misspelt is not passed over."""
    async with here.api() as client:
        answer = await client.get(PATH + query)
    assert answer.status_code == 400
    error = answer.json()["meta"]["error"]
    assert (error["code"], error["status"]) == (11, "INVALID_PARAMETER")
    assert error["description"].startswith(said)


async def test_pages(here: Any) -> None:
    """Ten objects are a page unless the request says otherwise; the next page's address is given."""
    for number in range(MOST + 5):
        here.connect("empty", f"v{number:03}")
    path = "/SEMP/v2/monitor/msgVpns/empty/clients"
    async with here.api() as client:
        assert len((await client.get(path)).json()["data"]) == 10
        first = (await client.get(f"{path}?count={MOST}&select=clientName")).json()
        assert len(first["data"]) == MOST
        assert first["meta"]["count"] == MOST + 5
        paging = first["meta"]["paging"]
        assert paging["nextPageUri"].endswith(f"&cursor={paging['cursorQuery']}")
        second = (await client.get(paging["nextPageUri"])).json()
        names = [row["clientName"] for row in first["data"] + second["data"]]
        assert names == [f"v{number:03}" for number in range(MOST + 5)]
        assert "paging" not in second["meta"]
        assert second["data"][0].keys() == {"clientName"}


async def test_sort(here: Any) -> None:
    """A page can be sorted by attributes, unless its order is fixed by names."""
    async with here.api() as client:
        uri = f"{PATH}?sort=-msgVpnName&count=2&select=msgVpnName"
        first = (await client.get(uri)).json()
        second = (await client.get(first["meta"]["paging"]["nextPageUri"])).json()
        nested = await client.get("/vpnrouter/v1/subscriptions?sort=name")
        unknown = await client.get(f"{PATH}?sort=nothing")
    names = [row["msgVpnName"] for row in first["data"] + second["data"]]
    assert names == ["empty", "blue", "a/b"]
    assert first["meta"]["count"] == 3
    assert (nested.status_code, unknown.status_code) == (400, 400)
    assert "there is no attribute nothing" in unknown.text
