"""Names that are one where they should be two, or two where they should be one."""

from collections.abc import Sequence
from pathlib import PurePath

from vpnrouter.config.load import Loaded
from vpnrouter.config.mesh_finding import MeshFindings
from vpnrouter.config.mesh_remotes import is_loopback


def check_names(found: MeshFindings, mesh: Sequence[Loaded]) -> None:
    """Tell of routers with one name, routers with one data directory, and message VPNs whose names
    differ only by case.
    """
    names: dict[str, Loaded] = {}
    spellings: dict[str, tuple[Loaded, str]] = {}
    told: set[str] = set()
    for loaded in mesh:
        name = loaded.config.router.name
        if name in names:
            at = names[name].positions.value_at(("router", "name"))
            message = f"another router has the name {name} at {at}"
            found.tell("error", loaded, ("router", "name"), message)
        names.setdefault(name, loaded)
        for vpn in loaded.config.msg_vpns:
            first, spelling = spellings.setdefault(vpn.casefold(), (loaded, vpn))
            if spelling == vpn or vpn in told:
                continue
            told.add(vpn)
            at = first.positions.key_at(("msg_vpns", spelling))
            found.tell_key(
                "warning",
                loaded,
                ("msg_vpns", vpn),
                f"differs only by case from message VPN {spelling} at {at}",
            )
    _check_directories(found, mesh)


def _check_directories(found: MeshFindings, mesh: Sequence[Loaded]) -> None:
    users: dict[PurePath, list[Loaded]] = {}
    for loaded in mesh:
        directory = PurePath(loaded.config.router.data_dir)
        others = users.setdefault(directory, [])
        neighbour = next((one for one in others if _may_be_neighbours(one, loaded)), None)
        if neighbour is not None:
            at = neighbour.positions.value_at(("router", "data_dir"))
            found.tell(
                "warning",
                loaded,
                ("router", "data_dir"),
                f"router {neighbour.config.router.name} has the directory {directory} too ({at});"
                " on one machine each router needs its own",
            )
        others.append(loaded)


def _may_be_neighbours(one: Loaded, other: Loaded) -> bool:
    """Whether two routers can run on one machine: no port is bound by both."""
    theirs = {each.address for each in other.config.listeners if each.enabled}
    for mine in (each.address for each in one.config.listeners if each.enabled):
        for address in theirs:
            if mine.port and mine.port == address.port and _overlap(mine.host, address.host):
                return False
    hosts = _machines(one), _machines(other)
    return not (hosts[0] and hosts[1] and hosts[0].isdisjoint(hosts[1]))


def _overlap(host: str, other: str) -> bool:
    return host == other or {host, other} & _ANYWHERE != set()


def _machines(loaded: Loaded) -> set[str]:
    """The hosts that a router binds and that are one machine's alone."""
    return {
        each.address.host
        for each in loaded.config.listeners
        if each.enabled
        and each.address.host not in _ANYWHERE
        and not is_loopback(each.address.host)
    }


_ANYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - read, not bound
