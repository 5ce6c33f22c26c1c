"""Asks whoever runs a command whether it may go on."""

import sys

import typer


def agreed(question: str) -> bool:
    """Whether somebody says yes: at a terminal, or by a line on standard input (`yes | …`).

    Raises BadParameter where nobody is there to answer.
    """
    if sys.stdin.isatty():
        return typer.confirm(question, err=True)
    answer = sys.stdin.readline()
    if not answer:
        raise typer.BadParameter(
            f"{question} Nobody is there to be asked; give --yes", param_hint="--yes"
        )
    return answer.strip().lower() in {"y", "yes"}
