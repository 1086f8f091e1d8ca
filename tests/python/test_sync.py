"""The power fails: what the service has acknowledged is there afterwards.

A process that is killed loses nothing of what it has written; a power failure loses what was not synced. So the calls
by which the service writes and syncs are recorded with strace, and replayed up to some point into a model of a disk,
which then forgets whatever was not synced. The service must start on what is left and know everything that it had
acknowledged before that point: its answers are in the same record, and count from when they begin to be sent, whereas a
sync counts when it is done.
"""

import os
import random
import re
import shutil
import subprocess
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from service import LOOKALIKE, Service, service, text

CLIENTS = 4
# Requests of a client, in two runs of the service.
STEPS = 80
PAGE = 4096
SYNCS = {"fsync", "fdatasync"}
SENDS = {"write", "writev", "sendto", "sendmsg"}
WRITES = {"write", "writev", "pwrite64", "lseek", "ftruncate"}
CHANGES = {"mkdir", "mkdirat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "link", "linkat"}
# What the model does not know, and must not be called for a file of the index.
UNKNOWN = {"creat", "truncate", "fallocate", "copy_file_range", "pwritev", "pwritev2", "sendfile", "splice", "dup", "dup2"}
UNKNOWN |= {"dup3", "sync_file_range", "symlink", "symlinkat", "io_uring_setup"}
TRACED = {"open", "openat"} | SYNCS | SENDS | WRITES | CHANGES | UNKNOWN

HEX = r"((?:\\x[0-9a-f]{2})*)"
FILE = re.compile(rf"(\d+)<{HEX}>")
STRING = re.compile(rf'"{HEX}"(\.\.\.)?')
NAMED = re.compile(rf'(?:(?:AT_FDCWD|\d+)<{HEX}>(?:\(deleted\))?, )?"{HEX}"')


# What strace tells.


@dataclass
class Call:
    """A call to the system: its arguments, and what it returned."""

    name: str
    arguments: str
    result: int | None = None
    # What a sync finds when it begins.
    copy: dict | None = None
    size: int = 0

    def data(self):
        """The bytes that it writes."""
        parts = STRING.findall(self.arguments)
        assert not any(cut for _, cut in parts), "strace has cut what was written"
        return b"".join(map(unhex, (part for part, _ in parts)))

    def file(self):
        """The number of its first file, and its path."""
        found = FILE.match(self.arguments)
        return (int(found[1]), unhex(found[2]).decode()) if found else (None, "")

    def paths(self):
        """The paths that it names."""
        return [os.path.join(unhex(base).decode(), unhex(name).decode()) for base, name in NAMED.findall(self.arguments)]


def unhex(escaped):
    return bytes.fromhex(escaped.replace("\\x", ""))


def read_log(path):
    """What happened, in its order: calls that begin (False) and calls that have returned (True)."""
    events, pending = [], {}
    for line in path.read_text().splitlines():
        thread, line = line.split(maxsplit=1)
        if line.startswith(("+++", "---")):
            continue
        if line.startswith("<... "):
            call, rest = pending.pop(thread), line.partition(" resumed>")[2]
        else:
            name, _, rest = line.partition("(")
            call = Call(name, "")
            events.append((False, call))
        if rest.endswith("<unfinished ...>"):
            call.arguments += rest.removesuffix("<unfinished ...>")
            pending[thread] = call
            continue
        rest, _, result = rest.rpartition(" = ")
        call.arguments += rest
        number = re.match(r"-?\d+", result)
        call.result = int(number[0]) if number else None
        events.append((True, call))
    return events


# A disk.


class Node:
    """A file or a directory: as programs see it, and as it is on the disk."""

    def __init__(self, is_directory, home=None):
        self.is_directory = is_directory
        # The directory and the name under which it was made.
        self.home = home
        # Of a directory, nodes by name; of a file, bytes by the number of the page, as far as they are not zero.
        self.seen, self.size = {}, 0
        self.kept, self.kept_size = {}, 0
        # The number of the event at which the sync began that the kept part is from.
        self.synced = -1

    def write(self, at, data):
        """Puts bytes into a file."""
        end = at + len(data)
        while at < end:
            number, offset = divmod(at, PAGE)
            part, data = data[: PAGE - offset], data[PAGE - offset :]
            page = bytearray(self.seen.get(number, bytes(PAGE)))
            page[offset : offset + len(part)] = part
            self.seen[number] = bytes(page)
            at += len(part)
        self.size = max(self.size, end)

    def truncate(self, size):
        """Makes a file shorter or longer."""
        whole, rest = divmod(size, PAGE)
        if size < self.size:
            last = self.seen.get(whole, b"")[:rest]
            self.seen = {number: page for number, page in self.seen.items() if number < whole}
            if last:
                self.seen[whole] = last.ljust(PAGE, b"\0")
        self.size = size

    def keep(self, copy, size, began):
        """Syncs it, as it was when the sync began; that also keeps the name under which it was made."""
        if began > self.synced:
            # What was made and synced meanwhile is kept as well.
            meanwhile = {name: node for name, node in self.kept.items() if self.is_directory and self.seen.get(name) is node}
            self.kept, self.kept_size, self.synced = {**meanwhile, **copy}, size, began
        if self.home:
            directory, name = self.home
            if directory.seen.get(name, self) is self:
                directory.kept[name] = self


@dataclass
class Opened:
    """A file that is open, and where the next write goes."""

    node: Node
    at: int = 0
    appends: bool = False


class Disk:
    """What the calls of a process make of a directory."""

    def __init__(self, root, ignored=frozenset()):
        self.path = str(root)
        self.root = Node(is_directory=True)
        self.ignored = ignored
        self.open = {}
        self.number = 0

    def node(self, path):
        """The file or directory at a path; nothing if there is none."""
        node = self.root
        for name in Path(path).relative_to(self.path).parts:
            node = node and node.seen.get(name)
        return node

    def place(self, path):
        """The directory of a path, and the name in it."""
        return self.node(os.path.dirname(path)), os.path.basename(path)

    def is_ours(self, path):
        return path.startswith(self.path + "/")

    def replay(self, event):
        """Does what a call has done."""
        self.number += 1
        is_done, call = event
        number, path = call.file()
        if call.name in SYNCS and self.is_ours(path) and call.name not in self.ignored:
            node = self.open[number].node
            if not is_done:
                call.copy, call.size, call.began = dict(node.seen), node.size, self.number
            elif call.result == 0:
                node.keep(call.copy, call.size, call.began)
        elif is_done and call.result is not None and call.result >= 0:
            self.do(call, number, path)

    def do(self, call, number, path):
        """Does what a call that has succeeded has done."""
        if call.name in WRITES and self.is_ours(path):
            self.write(call, self.open[number])
        elif call.name in ("open", "openat") and self.is_ours(call.paths()[0]):
            self.open[call.result] = self.opened(call.paths()[0], call.arguments)
        elif call.name in CHANGES and self.is_ours(call.paths()[0]):
            self.change(call.name, call.paths())
        elif call.name in UNKNOWN:
            assert not self.is_ours(path) and not any(map(self.is_ours, call.paths())), call

    def write(self, call, opened):
        """Changes what is in a file."""
        numbers = re.findall(r"-?\d+", call.arguments.rpartition(", ")[2])
        if call.name == "lseek":
            opened.at = call.result
        elif call.name == "ftruncate":
            opened.node.truncate(int(numbers[0]))
        elif call.name == "pwrite64":
            opened.node.write(int(numbers[0]), call.data()[: call.result])
        else:
            at = opened.node.size if opened.appends else opened.at
            opened.node.write(at, call.data()[: call.result])
            opened.at = at + call.result

    def opened(self, path, flags):
        """Opens a file, and makes it if it is not there."""
        directory, name = self.place(path)
        node = directory.seen.get(name)
        if node is None:
            node = directory.seen[name] = Node(is_directory=False, home=(directory, name))
        if "O_TRUNC" in flags:
            node.truncate(0)
        return Opened(node, appends="O_APPEND" in flags)

    def change(self, name, paths):
        """Changes what is in directories."""
        directory, entry = self.place(paths[0])
        if name.startswith("mkdir"):
            directory.seen[entry] = Node(is_directory=True, home=(directory, entry))
            return
        node = directory.seen[entry] if name.startswith("link") else directory.seen.pop(entry)
        if name.startswith(("rename", "link")):
            directory, entry = self.place(paths[1])
            directory.seen[entry] = node


# What a power failure leaves of it: the content of a directory or of a file, and the size of a file.


def everything(node):
    """All of it, as if there had been no failure."""
    return node.seen, node.size


def strict(node):
    """What was synced, and nothing else: a file is found if it or its directory was synced after it had been made, and
    under another name or not at all if its directory was synced after that."""
    return node.kept, node.kept_size


def ordered(node):
    """Of files, what was synced; of directories, all, as file systems with a journal keep it."""
    return everything(node) if node.is_directory else strict(node)


def torn(seed):
    """As ordered; of what was not synced, some pages have been written all the same."""
    source = random.Random(seed)

    def some(node):
        if node.is_directory:
            return everything(node)
        numbers = sorted(node.seen.keys() | node.kept.keys())
        size = source.choice((node.size, node.kept_size))
        pages = {number: source.choice((node.seen, node.kept)).get(number, bytes(PAGE)) for number in numbers}
        return {number: page for number, page in pages.items() if number * PAGE < size}, size

    return some


def materialise(node, path, left):
    """Makes files and directories of what is left."""
    content, size = left(node)
    if node.is_directory:
        path.mkdir()
        for name, entry in content.items():
            materialise(entry, path / name, left)
        return
    with open(path, "wb") as file:
        for number, page in content.items():
            file.seek(number * PAGE)
            file.write(page)
        file.truncate(size)


# What the service was told, and what it said.


@dataclass
class Step:
    """A page that is put, with the number of its text; without one, it is deleted."""

    page: str
    number: int | None


@dataclass
class Record:
    """What clients did, and all that happened then."""

    root: Path
    steps: list = field(default_factory=list)
    events: list = field(default_factory=list)
    # Where the processes begin: each has files of its own.
    starts: list = field(default_factory=list)
    # Request → the number of the event with which its answer begins.
    answers: dict = field(default_factory=dict)


def plan(client):
    """What a client does: most pages are new, some are replaced or put again, and some are deleted."""
    source, known, there, steps = random.Random(client), [], [], []
    for number in range(client * STEPS, (client + 1) * STEPS):
        chance = source.random()
        if there and chance < 0.12:
            steps.append(Step(there.pop(source.randrange(len(there))), None))
            continue
        page = source.choice(known) if known and chance < 0.24 else f"page-{number}"
        known.append(page)
        if page not in there:
            there.append(page)
        steps.append(Step(page, number))
    return steps


def act(running, client, steps, first):
    """Does the steps of a client, one after the other; the id of a request tells client and step."""
    connection = running.connection()
    for at, step in enumerate(steps, first):
        headers = {"X-Request-Id": f"{client}-{at}"}
        if step.number is None:
            answer = running.call("DELETE", f"/v1/pages/{step.page}", headers=headers, connection=connection)
            assert answer[0] == 204, answer
        else:
            store = "if_new" if step.page == f"page-{step.number}" else "always"
            page = {"id": step.page, "text": text(step.number)}
            answer = running.call("POST", f"/v1/pages?store={store}", page, headers, connection)
            assert answer[0] == 200 and answer[1]["stored"], answer
    connection.close()


def run(record, directory, steps):
    """Runs the service while all clients do some of their steps, and adds what happens to the record."""
    log = record.root.parent / "log"
    # With -D, the process that is started is the service itself, and ends as it does.
    trace = ("strace", "-D", "-f", "-y", "-xx", "-s", str(1 << 26), "-o", log, "-e", "trace=" + ",".join(sorted(TRACED)))
    with service(directory, wrapper=trace) as running, ThreadPoolExecutor(CLIENTS) as clients:
        jobs = [clients.submit(act, running, client, record.steps[client][steps], steps.start) for client in range(CLIENTS)]
        for job in jobs:
            job.result()
        running.stop()
    record.starts.append(len(record.events))
    record.events += read_log(log)


def find_answers(events):
    """Where the answers of a good end begin, by the id of the request."""
    answers = {}
    for number, (is_done, call) in enumerate(events):
        if not is_done and call.name in SENDS and "\\x48\\x54\\x54\\x50\\x2f" in call.arguments:
            found = re.match(rb"HTTP/1.1 20[04] .*?\r\nx-request-id: (\d+-\d+)\r\n", call.data(), re.DOTALL)
            if found:
                answers[found[1].decode()] = number
    return answers


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """Two runs of the service, with pages that come and go."""
    need_strace()
    root = Path(os.path.realpath(tmp_path_factory.mktemp("sync"))) / "disk"
    root.mkdir()
    record = Record(root, steps=[plan(client) for client in range(CLIENTS)])
    run(record, root / "index", slice(0, STEPS // 2))
    run(record, root / "index", slice(STEPS // 2, STEPS))
    record.answers = find_answers(record.events)
    assert len(record.answers) == CLIENTS * STEPS, "every answer is in the record"
    return record


def need_strace():
    """Skips where calls cannot be recorded."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    tried = subprocess.run(["strace", "-D", "-e", "trace=none", "true"], capture_output=True, text=True)
    if tried.returncode != 0 or "exited with 0" not in tried.stderr:
        pytest.skip(f"strace is not permitted here: {tried.stderr.strip()}")


# Failures.


def failures(record, points, ignored=frozenset()):
    """The disk at each of some points, each the number of the first event that does not happen any more."""
    disk, done = Disk(record.root, ignored), 0
    for point in sorted(points):
        for event in record.events[done:point]:
            disk.replay(event)
        done = point
        yield point, disk


def known(record, point):
    """What pages may be at a point, by id: numbers of texts, or None where there is no such page; and all texts that they
    may have had. What was not answered may have been done or not."""
    may, had = {}, defaultdict(set)
    for client, steps in enumerate(record.steps):
        for at, step in enumerate(steps):
            had[step.page].add(step.number)
            if record.answers[f"{client}-{at}"] >= point:
                may[step.page] = may.get(step.page, {None}) | {step.number}
                break
            may[step.page] = {step.number}
    return may, had


def look(running, page, numbers, connection):
    """The numbers of the texts with which a page is found; None if it is not there."""
    status, _ = running.call("GET", f"/v1/pages/{page}", connection=connection)
    answers = {number: running.check({"text": text(number)}, connection) for number in numbers - {None}}
    found = {number for number, answer in answers.items() if page in [near["id"] for near in answer["of"]]}
    assert status in (200, 404), status
    return found or {None} if status == 404 else found


def find_losses(directory, may, had):
    """What is wrong with an index after a failure; nothing, if all is well."""
    try:
        running = Service(directory)
    except RuntimeError as error:
        return [f"it does not start: {error}"]
    try:
        connection, losses = running.connection(), []
        for page, states in may.items():
            found = look(running, page, had[page], connection)
            if len(found) != 1 or not found <= states:
                losses.append(f"{page} is {found}, and should be one of {states}")
        connection.close()
        running.stop()
    finally:
        if running.process.poll() is None:
            running.kill()
    verified = subprocess.run([LOOKALIKE, "index", "verify", str(directory)], capture_output=True, text=True)
    if verified.returncode != 0:
        losses.append(f"it is damaged: {verified.stdout} {verified.stderr}")
    return losses
