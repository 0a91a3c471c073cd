# SPDX-License-Identifier: Apache-2.0
"""What children write on its way to our own output, which nobody may be reading."""

import os
import queue
import select
import threading

PIECE = 1 << 16  # bytes: what is read at once, and as much of a line as is kept
KEPT = 1 << 18  # bytes on their way, above which no more are to be read


class Writer:
    """Writes to a stream in a thread of its own, which alone is held up when nobody reads; `told` is called there after each text.

    The thread begins with the first text. While the system has no thread for us, texts are written where they come, where a reader
    that does not read holds up all.
    """

    def __init__(self, stream, told):
        self._descriptor, self._told = stream.fileno(), told
        self._texts, self._thread = queue.SimpleQueue(), None
        self._given = self._written = 0  # bytes; the latter is the thread's
        self.failure = None  # behind one, nothing more is written

    def write(self, text):
        self._given += len(text)
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="ddlrun-output", daemon=True)
            try:
                thread.start()
                self._thread = thread
            except RuntimeError:
                self._put(text)
                return
        self._texts.put(text)

    @property
    def idle(self):
        return self.failure is not None or self._given == self._written

    @property
    def has_room(self):
        return self.failure is not None or self._given - self._written < KEPT

    def end(self):
        """When all is written, that is."""
        self._texts.put(b"")

    def _work(self):
        while self.failure is None:
            text = self._texts.get()
            if not text:
                return
            self._put(text)
            self._told()

    def _put(self, text):
        try:
            left = memoryview(text)
            while left:
                try:
                    left = left[os.write(self._descriptor, left):]
                except BlockingIOError:  # who shares the stream with us may have made it so
                    select.select([], [self._descriptor], [])
            self._written += len(text)
        except OSError as why:
            self.failure = why


class Output:
    """One stream of a child, whose lines come out whole, behind a tag; such as are longer than a piece, in pieces."""

    def __init__(self, source, writer, tag):
        self.source, self.writer = source, writer
        self._tag, self._rest = tag.encode(), bytearray()
        os.set_blocking(source.fileno(), False)

    def forward(self):
        """Passes on what one read finds. False at the end of the stream, or where nobody reads what we write: a rank that goes on
        to write is then to hear of it, as it would without us. Throws `BlockingIOError` if nothing is there yet."""
        if self.writer.failure is not None:
            return False
        some = os.read(self.source.fileno(), PIECE)
        if not some:
            return False
        first, end, others = some.partition(b"\n")
        self._rest += first
        while len(self._rest) > PIECE:  # no line but the first can be longer, as a read is not
            cut = PIECE
            while cut > PIECE - 3 and self._rest[cut] & 0xC0 == 0x80:  # inside a character
                cut -= 1
            self._pass_on(self._rest[:cut])
            del self._rest[:cut]
        if end:
            lines, end, rest = others.rpartition(b"\n")
            self._pass_on(self._rest + (b"\n" + lines if end else b""))
            self._rest = bytearray(rest)
        return True

    def close(self):
        if self._rest:
            self._pass_on(self._rest)
        self.source.close()

    def _pass_on(self, lines):
        """Of which the last goes without an end."""
        self.writer.write(self._tag + lines.replace(b"\n", b"\n" + self._tag) + b"\n")
