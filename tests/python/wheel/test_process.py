"""The process around the engine: Ctrl-C, other threads, progress, memory, the command line."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import sysconfig
import threading
import time

import pyarrow
import pytest

import lookalike
from conftest import documents

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = pathlib.Path(sysconfig.get_path("scripts")) / "lookalike"

LONG_RUN = """
import sys, threading, time
import lookalike
sys.path.insert(0, {directory!r})
from conftest import story

seen = threading.Event()

def say(stage, done, total, pages):
    if not seen.is_set() and stage == {stage!r} and done < total:
        seen.set()
        print("running", flush=True)

texts = [story(at % 9000, words=300) + " " + str(at) for at in range(120_000)]
try:
    lookalike.dedup(texts, threads=1, progress=say, method={method!r})
    print("done")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("stage, method", [("read", "minhash"), ("verify", "minhash")])
def test_ctrl_c_ends_a_run(tmp_path, stage, method):
    script = LONG_RUN.format(directory=str(pathlib.Path(__file__).parent), stage=stage, method=method)
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        process.wait()
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_other_threads_go_on():
    counted, is_over = [0], threading.Event()

    def count():
        while not is_over.is_set():
            counted[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    texts = documents(3000)
    thread.start()
    before = counted[0]
    lookalike.dedup(pyarrow.table({"text": texts}), threads=1)
    during = counted[0] - before
    is_over.set()
    thread.join()
    assert during > 10


def test_runs_side_by_side():
    texts = documents(300)
    masks = [None] * 4

    def run(at):
        masks[at] = lookalike.dedup(texts, threads=1).keep_mask().tolist()

    threads = [threading.Thread(target=run, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert masks[0] and all(mask == masks[0] for mask in masks)


def test_progress_is_reported():
    seen = []
    lookalike.dedup(documents(3000), threads=1, progress=lambda *report: seen.append(report))
    # Also of stages that are over in no time.
    assert list(dict.fromkeys(stage for stage, *_ in seen)) == ["read", "candidates", "verify", "cluster", "write"]
    read = [report[1:] for report in seen if report[0] == "read"]
    assert sorted(read) == read and read[-1][0] <= read[-1][1] and read[-1][2] == 3000


def test_an_error_of_the_progress_function_ends_the_run():
    def fail(*_):
        raise ZeroDivisionError("a fault in the caller")

    with pytest.raises(ZeroDivisionError):
        lookalike.dedup(documents(30), threads=1, progress=fail)


def test_bars_are_shown_with_tqdm(capsys):
    lookalike.dedup(documents(30), progress=True)
    said = capsys.readouterr().err
    assert "read" in said and "write" in said


def resident() -> int:
    return int(re.search(r"VmRSS:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_over_a_thousand_calls(monkeypatch):
    if os.path.isdir("/dev/shm"):
        # Where nothing waits for a disk.
        monkeypatch.setattr("tempfile.tempdir", "/dev/shm")
    texts = documents(12)
    table = pyarrow.table({"text": texts})
    minhash = lookalike.MinHash(threads=1)

    def use():
        result = lookalike.dedup(table, threads=1)
        pyarrow.table(result.clusters)
        result.keep_mask()
        minhash.sketch_all(texts)
        lookalike.compare(texts[0], texts[1])
        index = lookalike.HammingIndex()
        index.add([1, 2, 3])
        index.query(1)

    for _ in range(200):
        use()
    before = resident()
    files = len(os.listdir("/proc/self/fd"))
    for _ in range(1000):
        use()
    assert len(os.listdir("/proc/self/fd")) <= files + 2
    # A leak of one small document for each call would be more than this.
    assert resident() - before < 16 << 20


def program(*arguments, **options):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, **options)


def test_the_command_line_is_installed(tmp_path):
    done = program("dedup", ROOT / "examples/newsroom", "--output", tmp_path / "out")
    assert done.returncode == 0 and "near-duplicates" in done.stderr
    result = lookalike.Result.open(tmp_path / "out")
    assert (result.summary.pages, result.summary.kept) == (78, 21)
    assert result.keep_mask().sum() == 21
    again = subprocess.run([sys.executable, "-m", "lookalike", "--version"], capture_output=True, text=True, check=True)
    assert again.stdout == program("--version").stdout == f"lookalike {lookalike.__version__}\n"


def test_the_same_result_as_the_command_line(tmp_path):
    assert program("dedup", ROOT / "examples/newsroom", "--output", tmp_path / "program", "--quiet").returncode == 0
    made = lookalike.dedup(ROOT / "examples/newsroom", output=tmp_path / "python")
    for name in ["clusters", "pairs", "pages", "near_misses"]:
        path = f"{name}.parquet"
        assert (tmp_path / "program" / path).read_bytes() == (made.directory / path).read_bytes(), name


def test_exit_codes_of_the_command_line(tmp_path):
    wrong = program("dedup")
    assert wrong.returncode == 2 and "--output" in wrong.stderr
    assert program("dedup", tmp_path / "nowhere", "--output", tmp_path / "out").returncode == 1
    (tmp_path / "some.jsonl").write_text('{"text": "one two three"}\nnot JSON\n')
    skipped = program("dedup", tmp_path / "some.jsonl", "--output", tmp_path / "some")
    assert skipped.returncode == 3
    assert program("help").returncode == 0


@pytest.mark.parametrize("command", [["dedup", "-", "--format", "jsonl", "--output", "out"], ["refine", "-"]], ids=str)
def test_ctrl_c_ends_the_command_line(tmp_path, command):
    # Both read from a pipe that nobody writes to.
    with subprocess.Popen([PROGRAM, *command], cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        status = pathlib.Path(f"/proc/{process.pid}/wchan")
        deadline = time.monotonic() + 60
        while "pipe" not in status.read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        code = process.wait()
    assert code == 130 and "interrupted" in said or code == -signal.SIGINT and "Traceback" not in said, (code, said)


def test_output_that_nobody_reads_is_no_error():
    command = f"'{PROGRAM}' help dedup | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
