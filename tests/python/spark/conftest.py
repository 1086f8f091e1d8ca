"""A Spark cluster of several processes on this machine, and corpora to run on it."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed")

ROOT = Path(__file__).parents[3]
#: Real pages that are not part of the repository.
INSTALL_GUIDE = ROOT.parent / "shared/data/install-guide-dev.tar.zst"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found += [int(entry.name), *_children(int(entry.name))]
    return found


class Cluster:
    """A master and two workers, each a process, whose executors are processes of their own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = _free_port()
        self.url = f"spark://127.0.0.1:{self.port}"
        self.master = self._start("org.apache.spark.deploy.master.Master", "--port", str(self.port), "--webui-port", "0")
        self._wait_for_master()
        self.workers = [self._worker(), self._worker()]

    def _start(self, name: str, *arguments: str) -> subprocess.Popen:
        log = open(self.directory / f"{name.rsplit('.', 1)[1]}-{time.monotonic_ns()}.log", "w")
        spark_class = Path(pyspark.__path__[0]) / "bin/spark-class"
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        return subprocess.Popen(
            [str(spark_class), name, "--host", "127.0.0.1", *arguments], stdout=log, stderr=log, env=environment, start_new_session=True
        )

    def _worker(self) -> subprocess.Popen:
        name = "org.apache.spark.deploy.worker.Worker"
        return self._start(
            name, "--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(self.directory / "work"), self.url
        )

    def _wait_for_master(self) -> None:
        for _ in range(600):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        raise RuntimeError("the master did not start")

    def kill_worker(self) -> list[int]:
        """Kills a worker that has an executor, with it; another worker takes its place."""
        for at, worker in enumerate(self.workers):
            killed = [worker.pid, *_children(worker.pid)]
            if len(killed) > 1:
                for pid in killed:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                worker.wait()
                self.workers[at] = self._worker()
                return killed
        raise RuntimeError("no worker has an executor")

    def stop(self) -> None:
        for process in [*self.workers, self.master]:
            for pid in [*_children(process.pid), process.pid]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            process.wait()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def spark(cluster, tmp_path_factory):
    """A session on the cluster. Executors cannot import the package unless it was sent to them."""
    from lookalike import spark as lookalike_spark

    blocked = tmp_path_factory.mktemp("blocked")
    (blocked / "lookalike").mkdir()
    (blocked / "lookalike/__init__.py").write_text("raise ImportError('this is not the package that was sent')\n")
    session = lookalike_spark.session(
        cluster.url,
        spark_executor_memory="900m",
        spark_executorEnv_PYTHONPATH=str(blocked),
        # What is under way can be seen at once.
        spark_ui_liveUpdate_period="0ms",
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


class Killer(threading.Thread):
    """Kills a worker while a stage of the job is at work, once some stages of Spark have begun in it."""

    def __init__(self, monkeypatch, spark, cluster: Cluster, stage: str, begun: int) -> None:
        super().__init__(daemon=True)
        from lookalike.spark._stages import Stages

        self.spark, self.cluster, self.stage, self.begun = spark, cluster, stage, begun
        self.current: list[str] = []
        self.killed: list[int] = []
        self.over = False
        table = Stages.table

        def watched(stages, name, make):
            self.current.append(name)
            try:
                return table(stages, name, make)
            finally:
                self.current.pop()

        monkeypatch.setattr(Stages, "table", watched)
        self.start()

    def run(self) -> None:
        tracker = self.spark.sparkContext.statusTracker()
        seen: set[int] = set()
        while not self.over and not self.killed:
            if self.current and self.current[-1] == self.stage:
                active = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                active = [stage for stage in active if stage is not None and stage.numActiveTasks > 0]
                seen |= {stage.stageId for stage in active}
                if active and len(seen) >= self.begun:
                    self.killed = self.cluster.kill_worker()
            time.sleep(0.002)

    def finish(self) -> None:
        self.over = True
        self.join()


@pytest.fixture
def killer(monkeypatch, spark, cluster):
    made = []

    def make(stage: str, begun: int) -> Killer:
        made.append(Killer(monkeypatch, spark, cluster, stage, begun))
        return made[-1]

    yield make
    for thread in made:
        thread.finish()


@pytest.fixture(scope="session")
def crowded(tmp_path_factory) -> Path:
    """Pages of which hundreds share a key, 20,000 that are empty, near-duplicates, copies, short ones and damage."""
    directory = tmp_path_factory.mktemp("crowded")
    chosen = random.Random(7)
    words = [f"w{number}" for number in range(4000)]

    def text(length: int) -> str:
        # Spot signatures are found at small words.
        return " ".join(chosen.choice(words) if chosen.random() < 0.8 else chosen.choice(["the", "is", "that"]) for _ in range(length))

    template, families = text(300), [text(60) for _ in range(20)]
    pages = [f"{template} {families[number % 20]} {text(8)}" for number in range(800)]
    pages += ["" if number % 2 else "   " for number in range(20_000)]
    for _ in range(300):
        story = text(200).split()
        for _ in range(chosen.choice([1, 1, 2, 3])):
            pages.append(" ".join(story))
            story[chosen.randrange(200)] = "edited"
    pages += [chosen.choice(pages[:800]) for _ in range(100)] + [text(3) for _ in range(100)]
    chosen.shuffle(pages)
    for part in range(4):
        with open(directory / f"part-{part}.jsonl", "w") as file:
            for number, page in enumerate(pages[part::4]):
                # Some ids are taken.
                name = f"{part}-{number}" if number % 50 else "same"
                file.write(json.dumps({"id": name, "text": page}) + "\n")
            file.write("this is no JSON\n")
    return directory


@pytest.fixture(scope="session")
def install_guide(tmp_path_factory) -> Path:
    """Debian's installation guide, several versions, as it is on the web."""
    if not INSTALL_GUIDE.exists():
        reason = "real pages (install-guide-dev) are not on this machine"
        if noted := os.environ.get("LOOKALIKE_SKIPPED_TESTS"):
            with open(noted, "a") as file:
                file.write(f"the installation guide on Spark: {reason}\n")
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp("install-guide")
    subprocess.run(["tar", "--zstd", "-xf", str(INSTALL_GUIDE), "-C", str(directory)], check=True)
    return directory / "debian-install-guide"
