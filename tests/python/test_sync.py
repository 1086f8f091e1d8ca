"""The power fails: what the service has acknowledged is there afterwards.

A process that is killed loses nothing of what it has written; a power failure loses what was not synced. So the calls
by which the service writes and syncs are recorded with strace, and replayed up to some point into a model of a disk,
which then forgets what was not synced. The service must start on what is left, and know everything that it had
acknowledged before that point. Its answers are in the same record; an answer counts from when it begins to be sent,
a sync from when it is done.
"""

import filecmp
import json
import os
import random
import re
import shutil
import subprocess
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pytest
from service import LOOKALIKE, Service, service, text

PAGES = "/v1/pages"
NEWS = "/v1/collections/news"
# Where each client puts its pages.
CLIENTS = [PAGES, PAGES, PAGES, f"{NEWS}/pages"]
# Requests of a client, in two runs of the service.
STEPS = 80
# Pages that are put in the second run so that the store writes tables: more than fits into one in memory.
FILLING = 8600
# Points of each kind at which the power fails.
POINTS = 5
BLOCK = 4096

SYNCS = {"fsync", "fdatasync"}
SENDS = {"write", "writev", "sendto", "sendmsg"}
WRITES = {"write", "writev", "pwrite64", "lseek", "ftruncate"}
CHANGES = {"mkdir", "mkdirat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "link", "linkat"}
# What the model does not know, and must not be called for a file of the index.
UNKNOWN = {"creat", "truncate", "fallocate", "copy_file_range", "pwritev", "pwritev2", "sendfile", "splice"}
UNKNOWN |= {"dup", "dup2", "dup3", "sync_file_range", "symlink", "symlinkat", "io_uring_setup"}
TRACED = {"open", "openat"} | SYNCS | SENDS | WRITES | CHANGES | UNKNOWN

HEX = r"((?:\\x[0-9a-f]{2})*)"
FILE = re.compile(rf"(\d+)<{HEX}>")
STRING = re.compile(rf'"{HEX}"(\.\.\.)?')
NAMED = re.compile(rf'(?:(?:AT_FDCWD|\d+)<{HEX}>(?:\(deleted\))?, )?"{HEX}"')


# What strace shows.


@dataclass
class Call:
    """A call to the system: its arguments, and what it returned."""

    name: str
    arguments: str = ""
    result: int | None = None
    # Of a sync: what it found when it began, and the number of that event.
    found: tuple | None = None

    @cached_property
    def data(self):
        """The bytes that it writes."""
        parts = STRING.findall(self.arguments)
        assert not any(cut for _, cut in parts), "strace has cut what was written"
        return b"".join(unhex(part) for part, _ in parts)

    @cached_property
    def file(self):
        """The number of the file that it is about, and its path."""
        found = FILE.match(self.arguments)
        return (int(found[1]), unhex(found[2]).decode()) if found else (None, "")

    @cached_property
    def paths(self):
        """The paths that it names."""
        return [os.path.join(*(unhex(part).decode() for part in parts)) for parts in NAMED.findall(self.arguments)]


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
            call = Call(name)
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
        # Of a directory, nodes by name; of a file, blocks by number, as far as anything was written there.
        self.seen, self.size = {}, 0
        self.kept, self.kept_size = {}, 0
        # When the sync began that has kept the most.
        self.synced = 0

    def write(self, at, data):
        """Puts bytes into a file."""
        end = at + len(data)
        while at < end:
            number, offset = divmod(at, BLOCK)
            part, data = data[: BLOCK - offset], data[BLOCK - offset :]
            block = bytearray(self.seen.get(number, bytes(BLOCK)))
            block[offset : offset + len(part)] = part
            self.seen[number] = bytes(block)
            at += len(part)
        self.size = max(self.size, end)

    def truncate(self, size):
        """Makes a file shorter or longer."""
        whole, rest = divmod(size, BLOCK)
        if size < self.size:
            last = self.seen.get(whole, b"")[:rest]
            self.seen = {number: block for number, block in self.seen.items() if number < whole}
            if last:
                self.seen[whole] = last.ljust(BLOCK, b"\0")
        self.size = size

    def keep(self, found, size, began):
        """Syncs it as it was when the sync began; the name under which it was made is kept, too."""
        if began > self.synced:
            # So is what was made in this directory and synced while this sync was under way.
            if self.is_directory:
                found = {name: node for name, node in self.kept.items() if self.seen.get(name) is node} | found
            self.kept, self.kept_size, self.synced = found, size, began
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
    """What the calls of a process make of a directory; syncs of some names may be ignored."""

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
        number, path = call.file
        if call.name in SYNCS:
            if self.is_ours(path) and call.name not in self.ignored:
                self.sync(is_done, call, self.open[number].node)
        elif is_done and call.result is not None and call.result >= 0:
            self.do(call, number, path)

    def sync(self, is_done, call, node):
        """A sync keeps what was there when it began, once it is done."""
        if not is_done:
            call.found = (dict(node.seen), node.size, self.number)
        elif call.result == 0:
            node.keep(*call.found)
            call.found = None

    def do(self, call, number, path):
        """Does what a call that has succeeded has done."""
        if call.name in WRITES and self.is_ours(path):
            self.write(call, self.open[number])
        elif call.name in ("open", "openat") and self.is_ours(call.paths[0]):
            self.open[call.result] = self.opened(call.paths[0], call.arguments)
        elif call.name in CHANGES and self.is_ours(call.paths[0]):
            self.change(call.name, call.paths)
        elif call.name in UNKNOWN:
            assert not any(map(self.is_ours, [path, *call.paths])), call

    def write(self, call, opened):
        """Changes what is in a file."""
        last = call.arguments.rpartition(", ")[2].rstrip(") ")
        if call.name == "lseek":
            opened.at = call.result
        elif call.name == "ftruncate":
            opened.node.truncate(int(last))
        elif call.name == "pwrite64":
            opened.node.write(int(last), call.data[: call.result])
        else:
            at = opened.node.size if opened.appends else opened.at
            opened.node.write(at, call.data[: call.result])
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


# What a power failure leaves of a node: what is in it, and the size of a file.


def everything(node):
    """All of it, as if there had been no failure."""
    return node.seen, node.size


def strict(node):
    """What was synced, and nothing else. A file is there if it or its directory was synced after it had been made, and
    has another name or is gone if its directory was synced after that."""
    return node.kept, node.kept_size


def ordered(node):
    """Of files, what was synced; of directories, all: a file system with a journal keeps the order of such changes."""
    return everything(node) if node.is_directory else strict(node)


class Torn:
    """The same, but of what was not synced, some blocks have been written."""

    def __init__(self, seed):
        self.source = random.Random(seed)

    def __call__(self, node):
        if node.is_directory:
            return everything(node)
        size = self.source.choice((node.size, node.kept_size))
        numbers = sorted(number for number in node.seen.keys() | node.kept.keys() if number * BLOCK < size)
        return {number: self.source.choice((node.seen, node.kept)).get(number, b"") for number in numbers}, size


MODELS = {"strict": strict, "ordered": ordered, "torn": Torn(1)}


def materialise(node, path, left):
    """Makes files and directories of what is left."""
    content, size = left(node)
    if node.is_directory:
        path.mkdir()
        for name, entry in content.items():
            materialise(entry, path / name, left)
        return
    with open(path, "wb") as file:
        for number, block in content.items():
            file.seek(number * BLOCK)
            file.write(block)
        file.truncate(size)


# What the service was told, and what it said.


@dataclass
class Step:
    """A page that is put, with the number of its text; without one, the page is deleted."""

    path: str
    number: int | None

    def page(self):
        return {"id": self.path.rpartition("/")[2], "text": text(self.number)}


@dataclass
class Record:
    """What clients did, and all that happened then."""

    root: Path
    # Client → what it does, one after the other.
    steps: list
    events: list = field(default_factory=list)
    # Id of a request → the number of the event with which the answer begins.
    answers: dict = field(default_factory=dict)

    def made(self):
        """The number of the event with which all indexes are there."""
        return self.answers["made"]

    def answer(self, client, step):
        """The number of the event with which the answer to a step begins."""
        return self.answers[f"step-{client}-{step}"]


def plan(client):
    """What a client does: most pages are new, some are replaced or put again, some are deleted."""
    source, known, there, steps = random.Random(client), [], [], []
    for number in range(client * STEPS, (client + 1) * STEPS):
        chance = source.random()
        if there and chance < 0.12:
            steps.append(Step(there.pop(source.randrange(len(there))), None))
            continue
        path = source.choice(known) if known and chance < 0.24 else f"{CLIENTS[client]}/page-{number}"
        known.append(path)
        if path not in there:
            there.append(path)
        steps.append(Step(path, number))
    return steps


def act(running, client, steps, first):
    """Does steps of a client, one after the other; the id of a request names client and step."""
    connection = running.connection()
    for at, step in enumerate(steps, first):
        headers = {"X-Request-Id": f"step-{client}-{at}"}
        if step.number is None:
            answer = running.call("DELETE", step.path, headers=headers, connection=connection)
            assert answer[0] == 204, answer
        else:
            store = "if_new" if step.path.endswith(f"-{step.number}") else "always"
            path = f"{CLIENTS[client]}?store={store}"
            answer = running.call("POST", path, step.page(), headers=headers, connection=connection)
            assert answer[0] == 200 and answer[1]["stored"], answer
    connection.close()


def fill(running):
    """Puts as much as makes the store write tables. Nobody asks for these pages again. What is stored of each is less
    than a block: fjall does not open a journal where a lost block lies within one value."""
    pages = ({"id": f"f{number}", "url": "🐝" * 500, "text": f"filling {number}"} for number in range(FILLING))
    body = "\n".join(json.dumps(page, ensure_ascii=False) for page in pages).encode()
    answer = running.call("POST", f"{PAGES}/batch?store=always", body, headers={"Content-Type": "application/x-ndjson"})
    assert answer[0] == 200 and answer[1].count(b'"stored":true') == FILLING


def run(record, steps, is_second):
    """Runs the service while all clients do some of their steps, and adds what happens to the record."""
    log = record.root.parent / "log"
    # With -D, the process that is started is the service itself, and ends as it does.
    trace = ["strace", "-D", "-f", "-y", "-xx", "-s", str(1 << 22), "-o", str(log)]
    trace += ["-e", "trace=" + ",".join(f"?{name}" for name in sorted(TRACED))]
    # Segments are written often, so that failures fall into that, too.
    settings = record.root.parent / "service.toml"
    settings.write_text("memory_rows = 50\n")
    with service(record.root / "index", "--config", settings, wrapper=trace) as running, ThreadPoolExecutor(len(CLIENTS) + 1) as pool:
        if not is_second:
            assert running.call("PUT", NEWS, {}, headers={"X-Request-Id": "made"})[0] == 201
        todo = [all_steps[steps] for all_steps in record.steps]
        jobs = [pool.submit(act, running, client, todo[client], steps.start) for client in range(len(CLIENTS))]
        if is_second:
            jobs.append(pool.submit(fill, running))
        for job in jobs:
            job.result()
        running.stop()
    record.events += read_log(log)


def find_answers(events):
    """Where answers that all is well begin, by the id of the request."""
    answers = {}
    for number, (is_done, call) in enumerate(events):
        if not is_done and call.name in SENDS and call.file[1].startswith("socket:"):
            head = call.data.partition(b"\r\n\r\n")[0]
            asked = re.match(rb"HTTP/1.1 20[014] .*\r\nx-request-id: (made|step-\d+-\d+)(\r|$)", head, re.DOTALL)
            if asked:
                answers[asked[1].decode()] = number
    return answers


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """Two runs of the service, with pages that come and go."""
    need_strace()
    root = Path(os.path.realpath(tmp_path_factory.mktemp("sync"))) / "disk"
    root.mkdir()
    record = Record(root, [plan(client) for client in range(len(CLIENTS))])
    run(record, slice(0, STEPS // 2), is_second=False)
    run(record, slice(STEPS // 2, STEPS), is_second=True)
    record.answers = find_answers(record.events)
    assert len(record.answers) == 1 + len(CLIENTS) * STEPS, "every answer is in the record"
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
    """The disk at some points, each the number of the first event that does not happen any more."""
    disk, done = Disk(record.root, ignored), 0
    for point in sorted(points):
        for event in record.events[done:point]:
            disk.replay(event)
        done = point
        yield point, disk


def choose_points(record, where, seed):
    """Points at which the power fails: right after answers, after changes of directories and syncs, and anywhere."""
    clients = [client for client, place in enumerate(CLIENTS) if place == where]
    answers = sorted(record.answer(client, step) for client in clients for step in range(STEPS))
    anywhere = range(record.made(), len(record.events))
    kinds = [answers, find_changes(record, anywhere), anywhere]
    source = random.Random(seed)
    return {1 + number for kind in kinds for number in source.sample(kind, POINTS)}


def find_changes(record, numbers):
    """The numbers of events, among some, with which directories have changed or something was synced."""
    calls = [(number, call) for number in numbers for is_done, call in [record.events[number]] if is_done]
    return [number for number, call in calls if call.name in CHANGES | {"fsync"} or "O_CREAT" in call.arguments]


def what_is_known(record, point, where):
    """What pages may be at a point: the number of the text, or None where there is no such page; and all that they may
    have been. A request that was not answered may have been carried out or not."""
    may, had = {}, defaultdict(set)
    for client, steps in enumerate(record.steps):
        for at, step in enumerate(steps if CLIENTS[client] == where else []):
            had[step.path].add(step.number)
            if record.answer(client, at) >= point:
                may[step.path] = may.get(step.path, {None}) | {step.number}
                break
            may[step.path] = {step.number}
    return may, had


def look(running, path, numbers, connection):
    """The numbers of the texts by which a page is found; None, if neither its name nor any text finds it."""
    status, answer = running.call("GET", path, connection=connection)
    assert status in (200, 404), answer
    if answer.get("type") == "urn:lookalike:no-such-collection":
        return {None}
    place, _, page = path.rpartition("/")
    found = {None} if status == 404 else set()
    for number in numbers - {None}:
        _, answer = running.call("POST", f"{place}?store=never", {"text": text(number)}, connection=connection)
        if page in [near["id"] for near in answer.get("of", [])]:
            found.add(number)
    return found


def find_losses(directory, may, had):
    """What is wrong with an index after a failure; nothing, if all is well."""
    try:
        running = Service(directory)
    except RuntimeError as error:
        return [f"it does not start: {error}"]
    losses = []
    try:
        connection = running.connection()
        for path, states in may.items():
            found = look(running, path, had[path], connection)
            if len(found) != 1 or not found <= states:
                losses.append(f"{path} is {found}, and should be one of {states}")
        connection.close()
        running.stop()
    finally:
        if running.process.poll() is None:
            running.kill()
    for manifest in directory.rglob("manifest.json"):
        verified = subprocess.run([LOOKALIKE, "index", "verify", str(manifest.parent)], capture_output=True, text=True)
        if verified.returncode != 0:
            losses.append(f"{manifest.parent} is damaged: {verified.stdout} {verified.stderr}")
    return losses


def lose(record, place, points, left, where=PAGES, ignored=frozenset()):
    """Lets the power fail at some points; gives the points where something is wrong then, and what."""

    def check(point, root):
        losses = find_losses(root / "index", *what_is_known(record, point, where))
        shutil.rmtree(root)
        return losses

    with ThreadPoolExecutor(2) as pool:
        jobs = {}
        for point, disk in failures(record, points, ignored):
            materialise(disk.root, place / str(point), left)
            jobs[point] = pool.submit(check, point, place / str(point))
        lost = {point: job.result()[:3] for point, job in jobs.items()}
    return {point: losses for point, losses in lost.items() if losses}


def test_the_record_is_whole(record, tmp_path):
    """Without a failure, the model of the disk is what is on the disk, byte by byte."""
    [(_, disk)] = failures(record, [len(record.events)])
    copy = tmp_path / "copy"
    materialise(disk.root, copy, everything)
    names = sorted(path.relative_to(copy) for path in copy.rglob("*"))
    assert names == sorted(path.relative_to(record.root) for path in record.root.rglob("*"))
    files = [name for name in names if (copy / name).is_file()]
    assert not [name for name in files if not filecmp.cmp(copy / name, record.root / name, shallow=False)]
    assert any(name.match("store/keyspaces/2/tables/*") for name in files), "the store has written a table of pages"


@pytest.mark.parametrize("model", MODELS)
def test_nothing_that_was_acknowledged_is_lost(record, tmp_path, model):
    lost = lose(record, tmp_path, choose_points(record, PAGES, model), MODELS[model])
    assert not lost


@pytest.mark.parametrize("model", ["strict", "ordered", "torn"])
def test_nothing_in_a_collection_is_lost(record, tmp_path, model):
    where = CLIENTS[-1]
    lost = lose(record, tmp_path, choose_points(record, where, model), MODELS[model], where)
    assert not lost


@pytest.mark.parametrize("model", ["strict", "ordered"])
def test_the_service_starts_if_making_an_index_was_cut_short(record, tmp_path, model):
    points = [1 + number for number in find_changes(record, range(record.made()))]
    # Every other one: they are many.
    lost = lose(record, tmp_path, points[::2], MODELS[model])
    assert not lost


@pytest.mark.parametrize("ignored", [SYNCS, {"fdatasync"}], ids=["no syncs", "no syncs of data"])
@pytest.mark.parametrize("model", ["strict", "ordered"])
def test_without_syncs_it_would_be_lost(record, tmp_path, model, ignored):
    """The same with syncs that do nothing: that all is well above is not an accident."""
    points = {1 + record.answer(0, STEPS * part // 8) for part in (1, 2, 3)}
    lost = lose(record, tmp_path, points, MODELS[model], ignored=ignored)
    assert lost.keys() == points
