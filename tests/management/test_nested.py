from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.management.responses import Condition, Key, Row, nested_page

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
