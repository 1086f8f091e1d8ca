"""More than one machine: a primary ships to a real S3 server, followers read from there, and one of them takes over."""

import json
import os
import subprocess
import threading
import time

import boto3
import pytest
from moto.server import ThreadedMotoServer

from service import LOOKALIKE, Service, problem, service, text

BUCKET = "seen"


class Store:
    """An S3 server that can go away and come back with what it has."""

    def __init__(self):
        self.port = 0
        self.start()
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
        }
        self.client = boto3.client(
            "s3",
            endpoint_url=self.environment["AWS_ENDPOINT_URL"],
            aws_access_key_id="key",
            aws_secret_access_key="secret",
            region_name="us-east-1",
        )
        self.client.create_bucket(Bucket=BUCKET)

    def start(self):
        self.server = ThreadedMotoServer(ip_address="127.0.0.1", port=self.port, verbose=False)
        self.server.start()
        self.port = self.server.get_host_and_port()[1]

    def stop(self):
        self.server.stop()

    def names(self, prefix):
        listed = self.client.list_objects_v2(Bucket=BUCKET, Prefix=prefix)
        return [found["Key"] for found in listed.get("Contents", [])]


@pytest.fixture(scope="module")
def store():
    store = Store()
    yield store
    store.stop()


@pytest.fixture
def url(request):
    """A folder for each test."""
    return f"s3://{BUCKET}/{request.node.name}"


def page(number):
    return {"id": f"page-{number}", "text": text(number, 40)}


def put(running, number, ack="shipped"):
    return running.call("POST", f"/v1/pages?store=if_new&ack={ack}", page(number))


def replication(running, collection=""):
    return running.call("GET", f"/v1{collection}/stats")[1]["replication"]


def until(is_so, seconds=90):
    end = time.monotonic() + seconds
    while not (found := is_so()):
        assert time.monotonic() < end, "it does not come about"
        time.sleep(0.05)
    return found


def until_follows(follower, primary):
    """Waits until a follower has all that its primary has."""
    group = replication(primary)["group"]
    until(lambda: replication(follower)["group"] >= group)
    assert replication(follower)["group"] <= replication(primary)["group"]


def verdicts(running, numbers):
    return [running.check(page(number))["verdict"] for number in numbers]


def test_a_follower_answers_what_the_primary_stored(store, url, tmp_path):
    with service(tmp_path / "one", "--ship", url, environment=store.environment) as primary:
        for number in range(20):
            primary.put(page(number))
        status, answer = put(primary, 20)
        assert status == 200 and answer["verdict"] == "new", answer
        with service(tmp_path / "two", "--follow", url, environment=store.environment) as follower:
            until_follows(follower, primary)
            assert verdicts(follower, range(21)) == ["exact"] * 21
            for number in range(30, 40):
                primary.put(page(number))
            assert primary.call("DELETE", "/v1/pages/page-3")[0] == 204
            lines = "".join(json.dumps(page(number)) + "\n" for number in range(50, 150))
            status, answers = primary.call(
                "POST", "/v1/pages/batch?store=if_new&ack=shipped", lines, {"Content-Type": "application/x-ndjson"}
            )
            answers = [json.loads(line) for line in answers.splitlines()]
            assert [answer["verdict"] for answer in answers] == ["new"] * 100
            until_follows(follower, primary)
            numbers = [3, 4, *range(30, 40), *range(50, 151)]
            assert verdicts(follower, numbers) == verdicts(primary, numbers)
            assert verdicts(follower, [3, 149, 150]) == ["new", "exact", "new"]
            # It says whom to ask, and how far behind it is.
            refused = problem(put(follower, 200), 503, "read-only")
            assert "follows" in refused["detail"] and replication(primary)["primary"] in refused["detail"]
            problem(follower.call("DELETE", "/v1/pages/page-4"), 503, "read-only")
            problem(follower.call("PUT", "/v1/collections/other", {}), 503, "read-only")
            metrics = follower.call("GET", "/metrics")[1].decode()
            assert 'lookalike_replication_lag_groups{collection="default"} 0' in metrics
            assert 'lookalike_replication_primary{collection="default"} 0' in metrics
            # The primary goes; the follower stays, also after a restart.
            primary.stop()
            assert verdicts(follower, [3, 149]) == ["new", "exact"]
            follower.stop()
        with service(tmp_path / "two", "--follow", url, environment=store.environment) as follower:
            assert verdicts(follower, [3, 149]) == ["new", "exact"]


def test_nothing_acknowledged_as_shipped_is_lost_and_the_old_primary_is_fenced_off(store, url, tmp_path):
    acknowledged = set()

    def write(primary, start):
        for number in range(start, start + 100_000):
            try:
                status, _ = put(primary, number)
            except OSError:
                return
            if status == 200:
                acknowledged.add(number)

    primary = Service(tmp_path / "one", "--ship", url, environment=store.environment)
    with service(tmp_path / "two", "--follow", url, environment=store.environment) as follower:
        writers = [threading.Thread(target=write, args=(primary, start * 100_000)) for start in range(1, 5)]
        for writer in writers:
            writer.start()
        until(lambda: len(acknowledged) >= 60)
        primary.kill()
        for writer in writers:
            writer.join()
        status, promoted = follower.call("POST", "/v1/promote", headers={"X-Lookalike": "1"})
        assert status == 200 and promoted["collections"] == [{"name": "default", "epoch": 2}], promoted
        assert verdicts(follower, sorted(acknowledged)) == ["exact"] * len(acknowledged)
        assert put(follower, 1)[0] == 200
        # The old primary comes back. It takes nothing, and says why.
        back = subprocess.Popen(
            [LOOKALIKE, "serve", str(tmp_path / "one"), "--listen", "127.0.0.1:0", "--no-access-log", "--ship", url],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **store.environment},
        )
        try:
            old = Service.__new__(Service)
            old.host = back.stdout.readline().strip().removeprefix("http://")
            until(lambda: "fenced off: another primary has epoch 2" in str(old.call("GET", "/readyz")[1]))
            assert old.call("GET", "/readyz")[0] == 503
            refused = problem(put(old, 2, "stored"), 503, "read-only")
            assert "fenced off" in refused["detail"]
            problem(put(old, 2), 503, "read-only")
            assert verdicts(old, sorted(acknowledged)[:3]) == ["exact"] * 3, "it still answers"
        finally:
            back.kill()
            back.communicate()
        # A new reader follows through both epochs.
        with service(tmp_path / "three", "--follow", url, environment=store.environment) as third:
            until_follows(third, follower)
            assert verdicts(third, [1, *sorted(acknowledged)]) == ["exact"] * (1 + len(acknowledged))
        follower.stop()
    # What was promoted is the primary after a restart, too.
    with service(tmp_path / "two", "--ship", url, environment=store.environment) as again:
        assert put(again, 3)[0] == 200
        assert replication(again)["role"] == "primary" and replication(again)["epoch"] == 3


def test_a_primary_that_is_still_there_stops_when_another_takes_over(store, url, tmp_path):
    with service(tmp_path / "one", "--ship", url, environment=store.environment) as primary:
        assert put(primary, 1)[0] == 200
        # The directory is new: it is downloaded first.
        with service(tmp_path / "two", "--ship", url, "--promote", environment=store.environment) as other:
            assert verdicts(other, [1]) == ["exact"]
            until(lambda: primary.call("GET", "/readyz")[0] == 503)
            problem(put(primary, 2), 503, "read-only")
            assert put(other, 2)[0] == 200


def test_pages_are_stored_while_the_object_store_is_away_and_shipped_when_it_is_back(store, url, tmp_path):
    config = tmp_path / "service.toml"
    config.write_text("[limits]\nrequest_seconds = 4\n")
    with (
        service(tmp_path / "one", "--ship", url, "--config", config, environment=store.environment) as primary,
        service(tmp_path / "two", "--follow", url, environment=store.environment) as follower,
    ):
        assert put(primary, 1)[0] == 200
        until_follows(follower, primary)
        store.stop()
        try:
            assert put(primary, 2, "stored")[0] == 200
            late = problem(put(primary, 3), 503, "not-shipped")
            assert "stored here" in late["detail"]
            assert verdicts(primary, [2, 3]) == ["exact", "exact"]
            assert replication(primary)["lag_groups"] >= 1
            assert verdicts(follower, [1, 2]) == ["exact", "new"]
            assert follower.call("GET", "/readyz")[0] == 200
        finally:
            store.start()
        until_follows(follower, primary)
        until(lambda: replication(primary)["lag_groups"] == 0)
        assert verdicts(follower, [2, 3]) == ["exact", "exact"]
        assert put(primary, 4)[0] == 200


def test_a_damaged_base_is_refused(store, url, tmp_path, request):
    with service(tmp_path / "one", "--ship", url, environment=store.environment) as primary:
        assert put(primary, 1)[0] == 200
        primary.stop()
    folder = request.node.name
    largest = max(
        store.client.list_objects_v2(Bucket=BUCKET, Prefix=f"{folder}/files/")["Contents"], key=lambda found: found["Size"]
    )["Key"]
    whole = store.client.get_object(Bucket=BUCKET, Key=largest)["Body"].read()
    store.client.put_object(Bucket=BUCKET, Key=largest, Body=whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(RuntimeError, match="is damaged: it is not what the base of group"):
        Service(tmp_path / "two", "--follow", url, environment=store.environment)
    assert not (tmp_path / "two" / "manifest.json").exists()
    store.client.put_object(Bucket=BUCKET, Key=largest, Body=whole)
    with service(tmp_path / "two", "--follow", url, environment=store.environment) as follower:
        assert until(lambda: verdicts(follower, [1]) == ["exact"])


def test_collections_are_shipped_and_promoted_with_the_rest(store, url, tmp_path):
    with service(tmp_path / "one", "--ship", url, environment=store.environment) as primary:
        assert primary.call("PUT", "/v1/collections/news", {})[0] == 201
        path = "/v1/collections/news/pages?store=if_new&ack=shipped"
        assert primary.call("POST", path, page(1))[0] == 200
        with service(tmp_path / "two", "--follow", url, environment=store.environment) as follower:
            check = "/v1/collections/news/pages"
            until(lambda: follower.call("POST", check, page(1))[1]["verdict"] == "exact")
            primary.kill()
            status, promoted = follower.call("POST", "/v1/promote", headers={"X-Lookalike": "1"})
            assert status == 200 and [one["name"] for one in promoted["collections"]] == ["default", "news"], promoted
            assert follower.call("POST", path, page(2))[0] == 200


def test_what_does_not_go_together_is_refused(store, url, tmp_path):
    with service(tmp_path / "one", "--ship", url, environment=store.environment) as primary:
        assert put(primary, 1)[0] == 200
        primary.stop()
    for directory, arguments, word in [
        ("one", ["--follow", url], "is not a copy of"),
        ("two", ["--follow", url, "--read-only"], "--read-only"),
        ("two", ["--ship", "s3//nothing"], "s3//nothing"),
    ]:
        with pytest.raises(RuntimeError, match=word):
            Service(tmp_path / directory, *arguments, environment=store.environment)
    with service(tmp_path / "alone") as alone:
        assert "ship" in problem(put(alone, 1), 409, "conflict")["detail"]


def test_an_index_on_a_read_only_file_system_is_served(tmp_path):
    directory = tmp_path / "seen"
    with service(directory) as writer:
        for number in range(5):
            writer.put(page(number))
        writer.stop()

    def state():
        return {
            str(path.relative_to(directory)): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else None)
            for path in sorted(directory.rglob("*"))
        }

    before = state()
    for path in [directory, *directory.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    # Two at once, and nothing is written.
    with service(directory, "--read-only") as first, service(directory, "--read-only") as second:
        for running in (first, second):
            assert verdicts(running, [0, 4, 9]) == ["exact", "exact", "new"]
            refused = problem(put(running, 9, "stored"), 503, "read-only")
            assert "read_only" in refused["detail"]
        first.stop()
    assert state() == before
    with pytest.raises(RuntimeError, match="holds no index"):
        Service(tmp_path / "nothing", "--read-only")
    assert not (tmp_path / "nothing").exists()
