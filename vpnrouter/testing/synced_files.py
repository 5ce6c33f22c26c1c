"""Takes from the files of a process all bytes that it never synced: what a power cut may leave.

A process that is killed leaves its files whole, since the system has all that was written. To know what a
power cut would leave, a small library is loaded before all others into the process. It writes down each file
that is synced and the size that the file had before. Needs a C compiler and Linux.

    synced = SyncedFiles(folder)
    process = subprocess.Popen(command, env={**os.environ, **synced.environment})
    ...
    process.kill()
    synced.cut(data_folder)
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Final, final

from vpnrouter.errors import OperationError

if TYPE_CHECKING:
    from pathlib import Path

VARIABLE: Final = "VPNROUTER_SYNCED_FILES"

SOURCE: Final = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int noted(const char *name, int fd)
{
    int (*call)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    struct stat about;
    /* What is written while the sync runs may be left out of it. */
    int known = fstat(fd, &about);
    int result = call(fd);
    const char *path = getenv("VPNROUTER_SYNCED_FILES");
    if (result == 0 && known == 0 && path) {
        int into = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (into >= 0) {
            char line[64];
            int size = snprintf(line, sizeof line, "%llu %lld\n",
                                (unsigned long long)about.st_ino, (long long)about.st_size);
            if (write(into, line, size) != size)
                abort();
            close(into);
        }
    }
    return result;
}

int fsync(int fd) { return noted("fsync", fd); }
int fdatasync(int fd) { return noted("fdatasync", fd); }
"""


@final
class SyncedFiles:
    """What processes with this `environment` have synced. All their files are on one file system."""

    def __init__(self, folder: Path) -> None:
        """Build the library in `folder`. Raises OperationError where there is no C compiler."""
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise OperationError("there is no C compiler")
        source, library = folder / "synced.c", folder / "synced.so"
        source.write_text(SOURCE, encoding="ascii")
        made = subprocess.run(
            [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise OperationError(f"the C compiler fails: {made.stderr.strip()}")
        self._told = folder / "synced.txt"
        self.environment = {"LD_PRELOAD": str(library), VARIABLE: str(self._told)}

    def sizes(self) -> dict[int, int]:
        """By inode the size up to which a file was synced last."""
        found: dict[int, int] = {}
        for line in self._told.read_text(encoding="ascii").splitlines():
            inode, size = line.split()
            found[int(inode)] = int(size)
        return found

    def cut(self, directory: Path, unsynced: str = "") -> int:
        """Cut all files below `directory` off where they were synced last; how many bytes that takes away.

        Files whose names end with `unsynced` count as never synced. No process may have them open.
        """
        sizes = self.sizes()
        lost = 0
        for path in directory.rglob("*"):
            if not path.is_file():
                continue
            about = path.stat()
            kept = min(about.st_size, sizes.get(about.st_ino, 0))
            if unsynced and path.name.endswith(unsynced):
                kept = 0
            lost += about.st_size - kept
            os.truncate(path, kept)
        return lost
