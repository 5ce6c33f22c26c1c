"""What the management API asks of the spool as a whole."""

from typing import Protocol


class SpoolKeeper(Protocol):
    """The spool of a running router, as the API sees it."""

    async def backup(self, directory: str) -> None:
        """Write a consistent copy into `directory`, which is not there yet, while messages go on.

        Raises SpoolError when that cannot be done; it says why.
        """
