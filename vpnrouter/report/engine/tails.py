"""Reads the footers of many files of Hadoop's file systems at a time.

Called from Python, each file takes eight calls to Java and five more when Python forgets the objects: two milliseconds
of a processor, which the many small files of a large mesh do not leave. So Java does it, by a program of its own that
Spark's compiler of queries (Janino, a part of Spark) translates. It knows no lambdas, and no types in angle brackets.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final, final
from uuid import uuid4

from py4j.java_gateway import JavaObject, JVMView
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from vpnrouter.errors import OperationError
from vpnrouter.limits import REPORT_FOOTERS_AT_A_TIME
from vpnrouter.report.engine.failures import first_line, text_of
from vpnrouter.report.traces.storage import StoredFile

_PROGRAM: Final = """
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.*;
import java.util.concurrent.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.*;

/** For each of the files, "LENGTH PATH" with a NUL between: whether it was read, a length, and its end or why not. */
public byte[] read(final Configuration settings, String files, final int most, int threads) throws Exception {
    final Map systems = new HashMap();
    ExecutorService readers = Executors.newFixedThreadPool(threads);
    try {
        List found = new ArrayList();
        String[] names = files.split("\\0");
        for (int at = 0; at < names.length; at++) {
            final String name = names[at];
            found.add(readers.submit(new Callable() {
                public Object call() throws Exception { return tail(systems, settings, name, most); }
            }));
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        for (int at = 0; at < names.length; at++) {
            boolean sound = true;
            byte[] told;
            try {
                told = (byte[]) ((Future) found.get(at)).get();
            } catch (ExecutionException error) {
                sound = false;
                told = reason(error).getBytes("UTF-8");
            }
            out.writeBoolean(sound);
            out.writeInt(told.length);
            out.write(told);
        }
        return bytes.toByteArray();
    } finally {
        readers.shutdownNow();
        for (Iterator each = systems.values().iterator(); each.hasNext();) ((FileSystem) each.next()).close();
    }
}

/** For s3a a file system of our own: Hadoop's default since 3.5 asks the store about each file before it reads. */
static FileSystem system(Map systems, Configuration settings, Path path) throws IOException {
    if (!"s3a".equals(path.toUri().getScheme())) return path.getFileSystem(settings);
    synchronized (systems) {
        FileSystem system = (FileSystem) systems.get(path.toUri().getAuthority());
        if (system == null) {
            Configuration ours = new Configuration(settings);
            ours.setIfUnset("fs.s3a.input.stream.type", "classic");
            system = FileSystem.newInstance(path.toUri(), ours);
            systems.put(path.toUri().getAuthority(), system);
        }
        return system;
    }
}

static byte[] tail(Map systems, Configuration settings, String name, int most) throws Exception {
    int space = name.indexOf(' ');
    long length = Long.parseLong(name.substring(0, space));
    byte[] tail = new byte[(int) Math.min(length, (long) most)];
    if (tail.length == 0) return tail;
    Path path = new Path(name.substring(space + 1));
    FutureDataInputStreamBuilder builder = system(systems, settings, path).openFile(path);
    // An object store that is told the length is not asked for it.
    builder.opt("fs.option.openfile.length", Long.toString(length));
    FSDataInputStream stream = (FSDataInputStream) ((Future) builder.build()).get();
    try {
        stream.readFully(length - tail.length, tail);
        return Arrays.copyOfRange(tail, tail.length - wanted(tail), tail.length);
    } finally {
        stream.close();
    }
}

/** A Parquet file ends with its footer, the length of that in four bytes, and four more. */
static int wanted(byte[] tail) {
    if (tail.length < 8) return tail.length;
    long footer = Integer.reverseBytes(java.nio.ByteBuffer.wrap(tail).getInt(tail.length - 8)) + 8L;
    return footer < 8 ? tail.length : (int) Math.min(footer, (long) tail.length);
}

static String reason(Throwable error) {
    while (error.getCause() != null && (error instanceof ExecutionException || error instanceof CompletionException)) {
        error = error.getCause();
    }
    return error.getMessage() != null ? error.getMessage() : error.getClass().getSimpleName();
}
"""

_HEAD: Final = struct.Struct(">?i")


@final
class TailReader:
    """Reads footers of files with the settings of a session, in its Java."""

    def __init__(self, jvm: JVMView, settings: JavaObject) -> None:
        self._jvm = jvm
        self._settings = settings
        self._program: JavaObject | None = None

    def read(
        self, files: Sequence[StoredFile], size_bytes: int
    ) -> Iterator[bytes | OperationError]:
        """Yield the footer of each file with its length, at most `size_bytes`, or why it cannot be read.

        All of them are in memory at a time.
        """
        if not files:
            return
        names = "\0".join(f"{file.size_bytes} {file.path}" for file in files)
        try:
            program = self._translated()
            told = program.read(self._settings, names, size_bytes, REPORT_FOOTERS_AT_A_TIME)
        except (Py4JError, PySparkException) as error:
            reason = OperationError(f"cannot be read: {first_line(text_of(error))}")
            yield from [reason] * len(files)
        else:
            yield from _ends(bytes(told))

    def _translated(self) -> JavaObject:
        """Return the program, which is translated once."""
        if self._program is None:
            compiler = self._jvm.org.codehaus.janino.ClassBodyEvaluator()
            # Py4J remembers methods by the name of their class.
            compiler.setClassName(f"FooterReader{uuid4().hex}")
            compiler.setParentClassLoader(self._settings.getClassLoader())
            compiler.cook(_PROGRAM)
            self._program = compiler.getClazz().getDeclaredConstructors()[0].newInstance(None)
        return self._program


def _ends(told: bytes) -> Iterator[bytes | OperationError]:
    at = 0
    while at < len(told):
        sound, length = _HEAD.unpack_from(told, at)
        at += _HEAD.size + length
        end = told[at - length : at]
        if sound:
            yield end
        else:
            yield OperationError(f"cannot be read: {first_line(end.decode(errors='replace'))}")
