import base64
import json
import random

import pytest
import trio

from vpnrouter.errors import RequestError
from vpnrouter.limits import SORT_CHARACTERS
from vpnrouter.management.responses import (
    CHUNK,
    Key,
    Page,
    Row,
    page_of,
    parse_sort,
    parse_where,
    sort_key,
    sorted_page,
)

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


async def test_a_page_costs_what_it_shows() -> None:
    """Without conditions only the rows of the page are made."""
    made: list[Key] = []

    def row(key: Key) -> Row:
        made.append(key)
        return {}

    await page_of(keys(1_000), row, 7, "", ())
    assert len(made) == 7


async def test_objects_that_come_and_go_between_pages() -> None:
    """An object that is gone is left out, also the one the cursor names; no other is shown twice or missed."""
    first = await page_of(keys(10), row_of_key, 4, "", ())
    assert first.cursor is not None
    rest = [key for key in keys(10) if key != ("0003",)] + [("00025",)]
    second = await page_of(rest, row_of_key, 100, first.cursor, ())
    assert [key for key, _ in second.rows] == [(f"{number:04}",) for number in range(4, 10)]


async def test_objects_that_go_while_a_page_is_made() -> None:
    """A row that cannot be made any more is left out."""
    page = await page_of(keys(3), lambda key: None if key == ("0001",) else {}, 10, "", ())
    assert [key for key, _ in page.rows] == [("0000",), ("0002",)]


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
