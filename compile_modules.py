"""Compile modules with mypyc, on all cores: `python compile_modules.py WORK MODULE.py …` in the root of a tree.

mypyc writes one C file for each module, and one link binds all of them into one shared library, so that
calls between them are bound early. The C compiler is nearly all of the work; its jobs run side by side.
Extensions land beside the sources that they stand for, which is why this works on a copy of the tree.

WORK is a folder for what arises on the way. Environment:
    CC, CFLAGS, LDFLAGS      as for any extension module.
    VPNROUTER_OBJECT_CACHE   a folder that keeps objects by the hash of all that they are made of. Where a
                             function's body changes, one C file is compiled anew. Unused ones go after 14 days.
"""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final, NamedTuple

OPTIMIZE: Final = "3"
"""gcc -O3: a sixth longer to compile than -O1, and 2 to 6 % faster where one frame goes to many."""

GROUP: Final = "vpnrouter"

MYPY_OPTIONS: Final = ("--ignore-missing-imports", "--follow-imports=silent")
"""Only the modules named are judged; what they import is read for its types alone, where it is installed."""

HIDDEN: Final = "-fvisibility=hidden"
"""Without it every call between native functions goes by way of the linkage table, and none is inlined."""

KEPT_S: Final = 14 * 86_400.0
"""Seconds that an object stays in the cache without being used."""


class Failed(Exception):
    """A compiler said no; the text is what it said."""


class Extension(NamedTuple):
    """One extension module: its place in the tree, what is compiled for it, how, and with headers of which folders."""

    target: Path
    sources: list[Path]
    arguments: list[str]
    folders: list[str]


class Toolchain:
    """The C compiler that Python was built with, or the one that CC names, and its cache of objects."""

    def __init__(self, cache: Path | None, headers: Iterable[Path]) -> None:
        self._cache = cache
        inherited = _words("CC", os.environ.get("CC") or _config("CC"))
        linker = shlex.split(_config("LDSHARED"))
        if os.environ.get("CC"):
            # The configured linker begins with the configured compiler.
            linker = [*inherited, *linker[len(shlex.split(_config("CC"))) :]]
        self._compile = [
            *inherited,
            *shlex.split(_config("CFLAGS")),
            *_words("CFLAGS", os.environ.get("CFLAGS", "")),
            *shlex.split(_config("CCSHARED")),
            *(f"-I{sysconfig.get_path(name)}" for name in ("include", "platinclude")),
        ]
        self._link = [*linker, *_words("LDFLAGS", os.environ.get("LDFLAGS", ""))]
        self._base = hashlib.sha256()
        version = subprocess.run([*inherited, "--version"], capture_output=True, check=False).stdout
        commands = shlex.join([*self._compile, *self._link]).encode()
        texts = [header.read_bytes() for header in sorted(headers)]
        for part in (version, sys.version.encode(), commands, *texts):
            self._base.update(part + b"\0")

    def compiled(self, source: Path, arguments: Sequence[str], into: Path) -> bool:
        """Compile `source` into the object `into`; True when the cache had it. Raises Failed."""
        command = [*self._compile, *arguments, "-c", str(source), "-o", str(into)]
        # Where headers lie differs from build to build; what they hold is part of every hash.
        lasting = [argument for argument in arguments if not argument.startswith("-I")]
        return self._made(command, [source], lasting, into)

    def linked(self, objects: Sequence[Path], into: Path) -> bool:
        """Link `objects` into the library `into`; True when the cache had it. Raises Failed."""
        into.parent.mkdir(parents=True, exist_ok=True)
        return self._made(
            [*self._link, *map(str, objects), "-o", str(into)], objects, [into.name], into
        )

    def _made(
        self, command: list[str], inputs: Sequence[Path], words: Sequence[str], into: Path
    ) -> bool:
        kept = None
        if self._cache is not None:
            digest = self._base.copy()
            digest.update(shlex.join(words).encode() + b"\0")
            for path in inputs:
                digest.update(path.read_bytes() + b"\0")
            kept = self._cache / f"{digest.hexdigest()}{into.suffix}"
            if kept.exists():
                os.utime(kept)
                shutil.copyfile(kept, into)
                return True
        try:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
            )
        except OSError as error:
            raise Failed(f"{command[0]}: {error}") from error
        if done.returncode:
            raise Failed(
                f"{done.stdout}\ncommand {command[0]!r} failed: exit code {done.returncode}"
            )
        if kept is not None:
            fresh = kept.with_suffix(f".{os.getpid()}")
            shutil.copyfile(into, fresh)
            fresh.replace(kept)
        return False


def _config(name: str) -> str:
    return str(sysconfig.get_config_var(name) or "")


def _words(name: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise Failed(f"{name}: {error}") from error


def written(modules: Sequence[str], work: Path) -> list[Extension]:
    """Have mypyc write C for `modules` into `work`; what is to be compiled. Exits where mypy finds errors."""
    from mypyc.build import mypycify

    extensions = mypycify(
        [*MYPY_OPTIONS, *modules],
        opt_level=OPTIMIZE,
        debug_level="0",
        multi_file=True,
        group_name=GROUP,
        target_dir=str(work),
    )
    suffix = _config("EXT_SUFFIX")
    return [
        Extension(
            Path(each.name.replace(".", "/") + suffix),
            [Path(source) for source in each.sources],
            [*each.extra_compile_args, HIDDEN, *(f"-I{folder}" for folder in each.include_dirs)],
            list(each.include_dirs),
        )
        for each in extensions
    ]


def compiled(extensions: Sequence[Extension], work: Path, toolchain: Toolchain) -> int:
    """Compile and link all of `extensions`, largest sources first; how many objects were made anew.

    Raises Failed with what the compiler said of the first file that it refused.
    """
    objects: dict[Path, Path] = {}
    jobs: list[tuple[Path, list[str]]] = []
    for extension in extensions:
        for source in extension.sources:
            objects[source] = work / f"{len(objects)}.o"
            jobs.append((source, extension.arguments))
    jobs.sort(key=lambda job: job[0].stat().st_size, reverse=True)
    fresh = 0
    with ThreadPoolExecutor(cores()) as pool:
        try:
            futures = [
                pool.submit(toolchain.compiled, source, arguments, objects[source])
                for source, arguments in jobs
            ]
            for count, future in enumerate(as_completed(futures), 1):
                fresh += not future.result()
                if count % 50 == 0 or count == len(futures):
                    say(f"C files compiled: {count} of {len(futures)}")
            linked = [
                pool.submit(
                    toolchain.linked,
                    [objects[source] for source in extension.sources],
                    extension.target,
                )
                for extension in extensions
            ]
            for future in as_completed(linked):
                future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return fresh


def cores() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def say(text: str) -> None:
    """Tell whoever waits for the build how far it is."""
    print(f"vpnrouter: {text}", file=sys.stderr, flush=True)


def cache_folder() -> Path | None:
    """The folder of VPNROUTER_OBJECT_CACHE, made and swept, or None."""
    named = os.environ.get("VPNROUTER_OBJECT_CACHE")
    if not named:
        return None
    folder = Path(named)
    folder.mkdir(parents=True, exist_ok=True)
    oldest = time.time() - KEPT_S
    for path in folder.iterdir():
        if path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)
    return folder


def main(work: Path, modules: Sequence[str]) -> None:
    """Compile `modules` in the tree that is the working directory."""
    began = time.monotonic()
    say(f"{len(modules)} modules become C")
    extensions = written(modules, work)
    say(f"{cores()} jobs compile the C, {time.monotonic() - began:.0f} s after the start")
    folders = {work} | {Path(folder) for each in extensions for folder in each.folders}
    headers = [header for folder in folders for header in folder.rglob("*.h")]
    fresh = compiled(extensions, work, Toolchain(cache_folder(), headers))
    say(f"compiled after {time.monotonic() - began:.0f} s; {fresh} objects were not in the cache")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), sys.argv[2:])
    except Failed as failed:
        sys.exit(str(failed))
