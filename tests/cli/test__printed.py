"""Where tables are printed, how values read, and rates."""

import io

from rich.table import Table

from vpnrouter.cli._format import (
    RX_RATE,
    TX_RATE,
    RenderBuffer,
    add_rate_columns,
    console_for,
    printer_for,
    rate_cells,
)


def test_names_are_no_markup() -> None:
    """Brackets and colons of names are printed as they are, on one line however long."""
    file = io.StringIO()
    printer_for(file).print("[bold]x[/bold] :smile: " + "y" * 300)
    assert file.getvalue() == "[bold]x[/bold] :smile: " + "y" * 300 + "\n"


def test_collected_and_drawn_later() -> None:
    """What is collected comes out in its order, empty lines too."""
    found = RenderBuffer()
    assert printer_for(found) is found
    found.print("[one]", style="red")
    found.print()
    found.print("two")
    file = io.StringIO()
    console_for(file).print(found.drawn())
    assert file.getvalue() == "[one]\n\ntwo\n"


def test_rate_columns_only_while_watching() -> None:
    """Rows that are not watched have no such columns; an unknown rate is a dash."""
    table = Table()
    add_rate_columns(table, [{}])
    assert (len(table.columns), rate_cells({})) == (0, ())
    row = {RX_RATE: None, TX_RATE: 1234.4}
    add_rate_columns(table, [row])
    assert (len(table.columns), rate_cells(row)) == (2, ("-", "1,234"))
