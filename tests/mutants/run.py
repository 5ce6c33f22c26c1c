"""Plant small faults, one at a time, and tell which tests notice them: `python tests/mutants/run.py`.

A file of faults is an area. It says which folders of the tests ought to notice its faults; a fault may say so
itself. A fault is bound to an expression, or to statements, within a function, a class or a constant that is found by
its qualified name:

    tests: [tests/core/guaranteed]
    faults:
      - id: queue-quota-off-by-one
        in: Endpoint.has_room
        old: self.count < self.limit
        new: self.count <= self.limit

What is looked for is the tree that `old` stands for, so that neither a moved file nor other line breaks, comments or
quotes ask for a change of the data. It is a whole expression, one or more whole statements that follow each other, or
entries of a table (`{key: value}`). Where it is there several times, `nth: 2 of 3` takes the second one. `spark: true`
lets tests run that start Spark.

`noticed.txt` has the faults that were noticed, each with names of tests. Those tests run first, wherever they
stand by now. Where none of them notices the fault, the files of tests run that are named after the file of the
fault, and then all tests of its folders.
"""

import argparse
import ast
import contextlib
import os
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent.parent
NOTICED: Final = HERE / "noticed.txt"

_SHORT_S: Final = 120
"""For the tests that noticed a fault before. What takes longer hangs."""
_LONG_S: Final = 420
"""For all tests of the folders of a fault."""
_MEMORY: Final = 16 << 30
"""Bytes of address space of a test run, so that a fault that fills the memory ends."""
_ENOUGH: Final = 3
"""Failed tests that end a run."""
_ALL_PASSED, _SOME_FAILED, _NO_TESTS = 0, 1, 5
"""What pytest ends with."""


class BadFault(Exception):
    """A fault that cannot be planted, or tests that fail without it."""


@dataclass(frozen=True)
class Fault:
    """A fault as data."""

    id: str
    area: str
    within: str
    old: str
    new: str
    tests: tuple[str, ...]
    spark: bool = False
    nth: int = 1
    """Which of several equal places, counted from 1."""
    of: int = 1
    """How many there are."""


@dataclass(frozen=True)
class Place:
    """A file, relative to the root, and its text with the fault in it."""

    path: Path
    text: str


@dataclass(frozen=True)
class Verdict:
    """What became of a fault: the ids of tests that failed, and whether the run was stopped for its time."""

    fault: Fault
    failed: tuple[str, ...]
    hung: bool
    seconds: float

    @property
    def noticed(self) -> bool:
        """True when a test failed, or none came to its end."""
        return bool(self.failed) or self.hung


# -- the data --------------------------------------------------------------------------------------


def load(folder: Path = HERE) -> list[Fault]:
    """The faults of all areas, by file and then as they stand there."""
    faults: list[Fault] = []
    for path in sorted(folder.glob("*.yaml")):
        area = yaml.safe_load(path.read_text(encoding="utf-8"))
        faults.extend(
            Fault(
                id=entry["id"],
                area=path.stem,
                within=entry["in"],
                old=entry["old"],
                new=entry["new"],
                tests=tuple(entry.get("tests", area["tests"])),
                spark=entry.get("spark", False),
                nth=int(entry.get("nth", "1 of 1").partition(" of ")[0]),
                of=int(entry.get("nth", "1 of 1").partition(" of ")[2]),
            )
            for entry in area["faults"]
        )
    return faults


def noticed_before(path: Path = NOTICED) -> dict[str, list[str]]:
    """The faults that were noticed, each with the names of tests that did."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    parts = [line.split() for line in lines if line and not line.startswith("#")]
    return {words[0]: words[1:] for words in parts}


def record(verdicts: list[Verdict], path: Path = NOTICED) -> None:
    """Write what is noticed by now. What was not tried stays as it was."""
    known = noticed_before(path)
    for verdict in verdicts:
        if verdict.noticed:
            known[verdict.fault.id] = sorted({_function(test) for test in verdict.failed})
        else:
            known.pop(verdict.fault.id, None)
    lines = [" ".join([name, *tests]) for name, tests in sorted(known.items())]
    head = "# Faults that the tests notice, and names of tests that do. Written by run.py --record."
    path.write_text("\n".join([head, *lines, ""]), encoding="utf-8")


# -- where a fault goes ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Definition:
    """A definition in a file of that text."""

    path: Path
    text: bytes
    node: ast.stmt


@dataclass(frozen=True)
class Part:
    """What a fault can be bound to: an expression, a statement, or an entry of a table, from its key to its value.

    `tree` is the same for all texts that mean the same.
    """

    first: ast.expr | ast.stmt
    last: ast.expr | ast.stmt
    tree: str

    @property
    def begin(self) -> tuple[int, int]:
        """The line, from 1, and the bytes before it in the line."""
        return self.first.lineno, self.first.col_offset

    @property
    def end(self) -> tuple[int, int]:
        """The line, from 1, and the bytes up to the end in the line."""
        return self.last.end_lineno or 0, self.last.end_col_offset or 0


def definitions(root: Path = ROOT) -> dict[str, list[Definition]]:
    """All functions, classes and names given a value, in classes or outside, by qualified name."""
    found: dict[str, list[Definition]] = {}
    for path in sorted((root / "vpnrouter").rglob("*.py")):
        text = path.read_bytes()
        for name, node in _named(ast.parse(text).body, ""):
            found.setdefault(name, []).append(Definition(path.relative_to(root), text, node))
    return found


def _named(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.stmt]]:
    """Definitions with their qualified names."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield prefix + node.name, node
                yield from _named(node.body, f"{prefix}{node.name}.")
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                yield prefix + name, node
            case ast.If():
                yield from _named([*node.body, *node.orelse], prefix)
            case _:
                pass


def place_of(fault: Fault, known: dict[str, list[Definition]]) -> Place:
    """Where the fault goes. Raises BadFault unless there are as many such places as it says, one if it says nothing."""
    try:
        old, new = _wanted(fault)
    except SyntaxError as error:
        raise BadFault(f"{fault.id}: no expression and no statements: {error.text}") from error
    trees = [part.tree for part in old]
    places = [
        (definition, run)
        for definition in known.get(fault.within, [])
        for run in _runs(definition.node, len(trees))
        if [part.tree for part in run] == trees
    ]
    if len(places) != fault.of or not 1 <= fault.nth <= fault.of:
        raise BadFault(
            f"{fault.id}: found {len(places)} times in {len(known.get(fault.within, []))} definitions of"
            f" {fault.within}, not {fault.of} times"
        )
    places.sort(key=lambda place: (str(place[0].path), place[1][0].begin))
    definition, run = places[fault.nth - 1]
    return Place(definition.path, _changed(definition.text, run, new))


def _wanted(fault: Fault) -> tuple[list[Part], str]:
    """The parts that are looked for, in their order, and the text that replaces them."""
    old, new = (textwrap.dedent(text).strip("\n") for text in (fault.old, fault.new))
    match ast.parse(old).body, ast.parse(new).body:
        case [ast.Expr(ast.Dict(keys=[_, *_]) as entries)], [ast.Expr(ast.Dict())]:
            return _entries(entries), new.strip()[1:-1]
        case [ast.Expr(expression)], [ast.Expr()]:
            # In parentheses it is one expression still, whatever is around it.
            return [_part(expression)], f"({new})"
        case statements, _:
            return [_part(statement) for statement in statements], new


def _part(node: ast.expr | ast.stmt) -> Part:
    return Part(node, node, ast.dump(node))


def _entries(table: ast.Dict) -> list[Part]:
    return [
        Part(key or value, value, ast.dump(ast.Dict([key], [value])))
        for key, value in zip(table.keys, table.values, strict=True)
    ]


def _runs(definition: ast.stmt, length: int) -> Iterator[list[Part]]:
    """All parts of a definition that follow each other, so many of them."""
    rows: list[list[Part]] = [[_part(definition)]]
    for node in ast.walk(definition):
        if isinstance(node, ast.expr):
            rows.append([_part(node)])
        if isinstance(node, ast.Dict):
            rows.append(_entries(node))
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and not _is_elif(node, block):
                rows.append([_part(statement) for statement in block])
    for row in rows:
        yield from (row[at : at + length] for at in range(len(row) - length + 1))


def _is_elif(node: ast.AST, block: list[ast.stmt]) -> bool:
    """Whether a block is an `elif`, which is no statement in the text."""
    match node, block:
        case ast.If(col_offset=column), [ast.If(col_offset=inner)]:
            return column == inner
        case _:
            return False


def _changed(text: bytes, run: list[Part], new: str) -> str:
    """The text with `new` in the place of parts; what is around them is kept."""
    starts = [0]
    for each in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(each))
    line, column = run[0].begin
    last_line, last_column = run[-1].end
    indented = textwrap.indent(new, " " * column).lstrip(" ")
    before, after = text[: starts[line - 1] + column], text[starts[last_line - 1] + last_column :]
    return (before + indented.encode() + after).decode()


# -- a copy of the tree ----------------------------------------------------------------------------


class Copy:
    """A copy of the tree in a folder of its own, in which tests run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, self.folder / name)

    def write(self, path: Path, text: str) -> None:
        """Change a file. What Python compiled of it goes: the times of two changes may be equal."""
        target = self.folder / path
        target.write_text(text, encoding="utf-8")
        for compiled in (target.parent / "__pycache__").glob(f"{target.stem}.*.pyc"):
            compiled.unlink()

    @contextlib.contextmanager
    def planted(self, place: Place) -> Iterator[None]:
        """With the fault in its place."""
        before = (self.folder / place.path).read_text(encoding="utf-8")
        self.write(place.path, place.text)
        try:
            yield
        finally:
            self.write(place.path, before)

    def named_alike(self, path: Path, tests: tuple[str, ...]) -> list[str]:
        """The files of tests that are named after a file of the package: most faults are noticed there."""
        found = {
            file for each in tests for file in (self.folder / each).rglob(f"test_{path.stem}.py")
        }
        return sorted(str(file.relative_to(self.folder)) for file in found)

    def failed(self, arguments: list[str], limit_s: float) -> tuple[list[str], bool]:
        """Ids of the tests that fail, some three of them, and whether the time was over first.

        Raises BadFault when the tests do not start, or would test other files than those of the copy.
        """
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--maxfail={_ENOUGH}"]
        # The copy keeps what Python compiled, so that a run begins soon.
        unwanted = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
        environment = {name: text for name, text in os.environ.items() if name not in unwanted}
        environment |= {"HYPOTHESIS_PROFILE": "faults", "HYPOTHESIS_SEED": "0"}
        environment |= {"VPNROUTER_EXPECT_BUILD": "pure", "COLUMNS": "300"}
        run = subprocess.Popen(
            [*command, "--tb=no", "-rfE", *arguments],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = run.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            return [], True
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
            run.wait()
        if f"from {self.folder / 'vpnrouter'}\n" not in output:
            raise BadFault(f"the tests do not import the copy in {self.folder}:\n{output[-2000:]}")
        if run.returncode in {_ALL_PASSED, _NO_TESTS}:
            return [], False
        found = re.findall(
            r"^(?:FAILED|ERROR) (tests/\S+\.py::.+?)(?: - .*)?$", output, re.MULTILINE
        )
        if run.returncode != _SOME_FAILED or not found:
            raise BadFault(f"the tests do not run:\n{output[-2000:]}")
        return found, False


# -- one fault after another -----------------------------------------------------------------------


class Trial:
    """Tries faults in a copy of its own. `known` are names of tests by fault, which pass without one."""

    def __init__(self, folder: Path, known: dict[str, list[str]]) -> None:
        self._copy = Copy(folder)
        self._known = known
        self._sound = {name for names in known.values() for name in names}

    def begin(self, faults: list[Fault]) -> None:
        """Run the tests that are to notice these faults, without any. Raises BadFault when one fails."""
        names = {name for fault in faults for name in self._known.get(fault.id, [])}
        if names:
            folders = sorted({path for fault in faults for path in fault.tests})
            marks = _marks(spark=any(fault.spark for fault in faults))
            self._pass([*folders, *marks, "-k", " or ".join(sorted(names))])

    def judge(self, fault: Fault, place: Place) -> Verdict:
        """Plant the fault and run its tests. Raises BadFault, also for tests that fail without it."""
        begin = time.monotonic()
        marks = _marks(spark=fault.spark)
        folders = [*fault.tests, *marks]
        failed: list[str] = []
        hung = slow = False
        with self._copy.planted(place):
            names = self._known.get(fault.id)
            if names:
                failed, hung = self._copy.failed([*folders, "-k", " or ".join(names)], _SHORT_S)
            near = self._copy.named_alike(place.path, fault.tests)
            if near and not failed and not hung:
                failed, hung = self._copy.failed([*near, *marks], _SHORT_S)
            if not failed and not hung:
                failed, hung = self._copy.failed(folders, _LONG_S)
                slow = hung
        if slow and self._copy.failed(folders, _LONG_S)[1]:
            raise BadFault(f"{fault.id}: its tests take more than {_LONG_S} s without a fault, too")
        # What fails with a fault passes without one.
        unsure = [test for test in failed if _function(test) not in self._sound]
        if unsure:
            self._pass(unsure)
            self._sound.update(map(_function, unsure))
        return Verdict(fault, tuple(failed), hung, time.monotonic() - begin)

    def _pass(self, arguments: list[str]) -> None:
        failed, hung = self._copy.failed(arguments, _LONG_S)
        if failed or hung:
            raise BadFault(
                f"without any fault, these fail or hang: {' '.join(failed or arguments)}"
            )


def _marks(*, spark: bool) -> list[str]:
    return ["-m", "not slow and not peers" + ("" if spark else " and not spark")]


def verdicts_on(faults: list[Fault], jobs: int) -> Iterator[Verdict]:
    """What becomes of each fault, as soon as it is known. Raises BadFault."""
    known = definitions()
    places = {fault.id: place_of(fault, known) for fault in faults}
    before = noticed_before()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        free: queue.SimpleQueue[Trial] = queue.SimpleQueue()
        for number in range(jobs):
            free.put(Trial(Path(folder) / str(number), before))
        first = free.get()
        first.begin(faults)
        free.put(first)

        def judge(fault: Fault) -> Verdict:
            trial = free.get()
            try:
                return trial.judge(fault, places[fault.id])
            finally:
                free.put(trial)

        with ThreadPoolExecutor(jobs) as workers:
            try:
                yield from workers.map(judge, faults)
            finally:
                workers.shutdown(cancel_futures=True)


def _function(test: str) -> str:
    """The name of the function in the id of a test, that of the class for a state machine."""
    *_, around, name = test.partition("[")[0].split("::")
    return around if name == "runTest" else name


def _line(verdict: Verdict) -> str:
    if verdict.hung:
        what = "the tests hang"
    else:
        what = " ".join(sorted({_function(test) for test in verdict.failed})) or "NOT NOTICED"
    return f"{verdict.fault.area:12} {verdict.fault.id:44} {verdict.seconds:5.0f} s  {what}"


def main() -> int:
    """0 when all that was noticed before still is, 1 when not, 2 for a fault that cannot be tried."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="ids of faults, or areas; all without")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--record", action="store_true", help=f"write {NOTICED.name} anew")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    chosen = [
        fault
        for fault in load()
        if not options.names or {fault.id, fault.area} & set(options.names)
    ]
    missing = set(options.names) - {name for fault in chosen for name in (fault.id, fault.area)}
    if missing:
        print("no fault and no area:", *sorted(missing), file=sys.stderr)
        return 2
    before = set(noticed_before())
    done: list[Verdict] = []
    bad = False
    try:
        for verdict in verdicts_on(chosen, options.jobs):
            print(_line(verdict), flush=True)
            done.append(verdict)
            if options.record:
                record([verdict])
    except BadFault as error:
        print(error, file=sys.stderr)
        bad = True
    noticed = [verdict for verdict in done if verdict.noticed]
    lost = {verdict.fault.id for verdict in done if not verdict.noticed} & before
    hung = sum(verdict.hung for verdict in done)
    print(f"{len(noticed)} of {len(done)} faults noticed, {hung} by a hang")
    if lost:
        print("noticed before, but not now:", *sorted(lost))
    if bad:
        return 2
    return 1 if lost and not options.record else 0


if __name__ == "__main__":
    sys.exit(main())
