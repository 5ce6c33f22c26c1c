"""A running router that was started from a file and whose configuration can be changed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from vpnrouter.config.load import load
from vpnrouter.config.parse import Plain
from vpnrouter.events.log import Event
from vpnrouter.management.config.editor import ConfigEditor
from vpnrouter.server.run import Node, StartFiles, serve

BASE = """# mine
listeners: [{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}]
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_usernames: {ann: {password: "first secret"}}
    queues: {q: {}}
  green:
"""


class Edited:
    """A running router, its editor and its files."""

    def __init__(self, node: Node, path: Path, folder: Path) -> None:
        assert node.editor is not None
        self.node = node
        self.editor: ConfigEditor = node.editor
        self._seen = 0
        self.path = path
        self.overlay = folder / "data" / "overlay.yaml"

    async def set(self, value: int, **more: Any) -> Any:
        """Change one number of `blue`."""

        def change(document: Plain) -> None:
            document["msg_vpns"]["blue"]["max_subscription_count"] = value

        return await self.editor.edit(change, "ann", **more)

    @property
    def value(self) -> int:
        """That number as the router has it."""
        return self.node.router.vpns["blue"].limits.max_subscription_count

    def stored(self, **more: Any) -> int:
        """That number as a router would have it that starts now."""
        config = load(self.path, **more).config
        return config.msg_vpns["blue"].max_subscription_count

    def events_raised(self) -> list[Event]:
        """The events of changed configurations since the last call."""
        log = self.node.router.context.events
        assert log is not None
        found = log.after(self._seen, 1_000)
        self._seen = log.last_event_id
        return [each for each in found if "CONFIG_CHANGE" in each.kind.name]

    def files(self) -> list[str]:
        """What lies in the data directory besides the spool."""
        return sorted(one.name for one in self.overlay.parent.iterdir() if one.name != "spool")


@asynccontextmanager
async def edited_router(
    folder: Path, text: str = BASE, *, overlaid: bool = True
) -> AsyncIterator[Edited]:
    """The router of `text`, with its data in `folder`; with `overlaid` False without its overlay."""
    path = folder / "here.yaml"
    path.write_text(f"router: {{name: here, data_dir: {folder}/data}}\n{text}")
    loaded = load(path, overlay=overlaid)
    nodes: list[Node] = []
    up = trio.Event()

    def ready(node: Node) -> None:
        nodes.append(node)
        up.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, loaded.config, ready, StartFiles(str(path), loaded, overlaid))
        with trio.fail_after(20):
            await up.wait()
        yield Edited(nodes[0], path, folder)
        nursery.cancel_scope.cancel()
