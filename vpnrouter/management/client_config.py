"""What a client of the management API asks about a router's configuration, and has changed in it."""

from typing import Final

from vpnrouter.management.attributes import Row
from vpnrouter.management.client_transport import Transport
from vpnrouter.management.envelope import segment

OURS: Final = "/vpnrouter/v1/config"

CONFIG: Final = "/SEMP/v2/config"


class ConfigCalls(Transport):
    """The configuration as a document, and its objects one by one.

    A path of an object is given behind `/SEMP/v2/config`, as `config_path` makes it.
    """

    def config(self) -> Row:
        """The document in force and where it is written: `document` (secrets as `***`), `digest`,
        `routerName`, `file`, `overlayFile`, `overlay`, `positions`.
        """
        return dict(self.get(OURS)["data"])

    def examine(self, document: Row) -> Row:
        """What it would take to put `document` into force: `problems`, `changes`, `digest`."""
        return dict(self.post(f"{OURS}/examine", {"document": document})["data"])

    def replace_config(self, document: Row, expected: str) -> Row:
        """Put `document` into force where `expected` is the digest in force: `lines`, `digest`."""
        body = {"document": document, "expected": expected}
        return dict(self.put(f"{OURS}/replace", body)["data"])

    def return_config(self, digest: str) -> Row:
        """Put the document with this digest, one of the last ones, into force again: `lines`, `digest`."""
        return dict(self.put(f"{OURS}/return", {"digest": digest})["data"])

    def config_object(self, path: str) -> Row:
        """One object of the configuration, without its secrets."""
        return dict(self.get(CONFIG + path)["data"])

    def config_objects(self, path: str) -> list[Row]:
        """The objects of one collection."""
        return list(self.rows(CONFIG + path))

    def patch_config(self, path: str, body: Row) -> Row:
        """Change some attributes of an object; returns the object."""
        return dict(self.patch(CONFIG + path, body)["data"])

    def create_config(self, path: str, body: Row) -> Row:
        """Create an object in a collection; returns the object."""
        return dict(self.post(CONFIG + path, body)["data"])

    def delete_config(self, path: str) -> None:
        """Delete an object."""
        self.delete(CONFIG + path)

    def enable_bridge(self, msg_vpn: str, bridge: str, *, enabled: bool) -> None:
        """Switch a bridge on or off."""
        path = config_path("msgVpns", msg_vpn, "bridges", (bridge, "auto"))
        self.patch_config(path, {"enabled": enabled})


def config_path(*parts: str | tuple[str, ...]) -> str:
    """`/msgVpns/blue/bridges/from-edge,auto` of `"msgVpns", "blue", "bridges", ("from-edge", "auto")`."""
    return "".join(f"/{segment(*((part,) if isinstance(part, str) else part))}" for part in parts)
