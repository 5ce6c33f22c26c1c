"""`vpnrouter completion bash|zsh|fish`: what makes a shell complete commands, options and names."""

from enum import StrEnum
from typing import Annotated

import typer


class Shell(StrEnum):
    """Shells that can be served."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def command(
    ctx: typer.Context,
    shell: Annotated[Shell, typer.Argument(help="Which shell.", show_default=False)],
) -> None:
    """Print the script that makes a shell complete commands, options, and names of a running router.

    bash: source <(vpnrouter completion bash) in ~/.bashrc; zsh: source <(vpnrouter completion zsh) in
    ~/.zshrc, behind compinit; fish: vpnrouter completion fish >
    ~/.config/fish/completions/vpnrouter.fish. Names come from the router at VPNROUTER_URL, if it
    answers at once and asks for no login.
    """
    from typer.completion import show_callback

    # Prints the script and leaves with exit code 0. The parameter is not looked at.
    show_callback(ctx, ctx.command.params[0], shell.value)
