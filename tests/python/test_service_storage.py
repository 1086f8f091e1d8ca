"""What the service keeps: after kills and stops, in backups, on a full disk, with damage."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from http.client import HTTPException

import pytest
from service import Service, lookalike, problem, service, text

# Seconds to wait for something: far more than it takes on a slow machine.
LONGEST_WAIT = 120


def test_killed_again_and_again(tmp_path):
    """Whatever was acknowledged is there after SIGKILL, once; nothing else is twice."""
    directory, rounds, writers = tmp_path / "seen", 25, 8
    # Segments are written often, so that kills fall into that, too.
    settings = tmp_path / "service.toml"
    settings.write_text("memory_rows = 400\n")
    wrong = []
    chance = random.Random(7)
    acknowledged, numbers, changed = {}, iter(range(10**9)), threading.Condition()

    def write(running, ended):
        connection = running.connection()
        while True:
            with changed:
                number = next(numbers)
            try:
                answer = running.put({"id": f"p{number}", "text": text(number)}, connection=connection)
            except (OSError, ValueError, HTTPException):
                break
            except AssertionError as refused:
                wrong.append(refused)
                break
            if not answer["stored"]:
                wrong.append(answer)
            with changed:
                acknowledged[number] = answer["id"]
                changed.notify()
        with changed:
            ended.append(running)
            changed.notify()

    for round_number in range(rounds):
        running = Service(directory, "--config", settings)
        # All that was acknowledged in the round before, and some of what was before that.
        known = sorted(acknowledged)
        some = known[-200:] + chance.sample(known, min(50, len(known)))
        connection = running.connection()
        for number in some:
            answer = running.check({"text": text(number)}, connection)
            assert [near["id"] for near in answer["of"]] == [f"p{number}"], (round_number, number, answer)
        wanted = len(acknowledged) + chance.randrange(1, 300)
        ended = []
        threads = [threading.Thread(target=write, args=(running, ended)) for _ in range(writers)]
        [thread.start() for thread in threads]
        with changed:
            changed.wait_for(lambda: len(acknowledged) >= wanted or len(ended) == writers, timeout=LONGEST_WAIT)
            is_enough = len(acknowledged) >= wanted
        running.kill()
        [thread.join() for thread in threads]
        assert not wrong
        assert is_enough, "the service ended by itself, or takes no pages"
        assert running.process.returncode == -signal.SIGKILL, "killed while it was at work"
    with service(directory) as running:
        connection = running.connection()
        for number in acknowledged:
            status, stored = running.call("GET", f"/v1/pages/p{number}", connection=connection)
            assert status == 200 and stored["id"] == f"p{number}"
            answer = running.check({"text": text(number)}, connection)
            assert [near["id"] for near in answer["of"]] == [f"p{number}"], answer
        rows = running.call("GET", "/v1/stats", connection=connection)[1]["rows"]
        assert len(acknowledged) <= rows <= len(acknowledged) + rounds * writers
        connection.close()
        running.stop()
    verified = lookalike("index", "verify", directory)
    assert verified.returncode == 0, verified.stderr
    assert json.loads(lookalike("index", "stats", directory, "--json").stdout)["rows"] == rows


def test_others_keep_out_while_it_is_served(tmp_path):
    directory = tmp_path / "seen"
    with service(directory) as running:
        running.put({"id": "a", "text": text(1)})
        for command in [
            ("index", "stats", directory),
            ("index", "query", directory, "0123456789abcdef"),
            ("index", "verify", directory),
            ("index", "compact", directory),
            ("serve", directory, "--listen", "127.0.0.1:0"),
        ]:
            refused = lookalike(*command)
            assert refused.returncode == 1 and "server" in refused.stderr, (command, refused.stderr)
        running.kill()
    # After a crash, whoever reads sees what the store has.
    assert json.loads(lookalike("index", "stats", directory, "--json").stdout)["rows"] == 1
    assert lookalike("index", "compact", directory).returncode == 0
    with service(directory) as running:
        assert running.check({"text": text(1)})["verdict"] == "exact"


def test_backup_of_an_index_in_use(tmp_path):
    with service(tmp_path / "seen", "--backups", tmp_path / "copies") as running:
        for number in range(300):
            running.put({"id": f"p{number}", "text": text(number)})
        running.call("DELETE", "/v1/pages/p7")
        status, copy = running.call("POST", "/v1/backup")
        assert status == 201 and copy["pages"] == 299, copy
        running.put({"id": "later", "text": text(1000)})
    place = tmp_path / "copies" / copy["name"]
    assert lookalike("index", "verify", place).returncode == 0
    # Copied over an index that is ahead of it, it is what counts.
    restored = tmp_path / "seen"
    shutil.rmtree(restored / "store")
    [segment.unlink() for segment in restored.glob("*.seg")]
    shutil.copytree(place, restored, dirs_exist_ok=True)
    with service(restored) as running:
        assert running.check({"text": text(8)})["of"][0]["id"] == "p8"
        assert running.check({"text": text(1000)})["verdict"] == "new"
    with service(place) as running:
        assert running.check({"text": text(8)})["of"][0]["id"] == "p8"
        assert running.check({"text": text(7)})["verdict"] == "new"
        assert running.check({"text": text(1000)})["verdict"] == "new"


def takes_connections(running):
    try:
        socket.create_connection(running.host.split(":"), timeout=5).close()
    except OSError:
        return False
    return True


def test_a_stop_finishes_what_was_accepted(tmp_path):
    directory = tmp_path / "seen"
    with service(directory) as running:
        with socket.create_connection(running.host.split(":")) as connection:
            body = json.dumps({"id": "a", "text": text(1)}).encode()
            head = (
                "POST /v1/pages?store=if_new HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
            )
            connection.sendall(head.encode())
            assert b"100 Continue" in connection.recv(65536)
            connection.sendall(body[:10])
            assert running.check({"text": "another is served meanwhile"})["verdict"] == "new"
            running.process.terminate()
            # It takes no connections any more, but this one is finished.
            deadline = time.monotonic() + LONGEST_WAIT
            while takes_connections(running):
                assert time.monotonic() < deadline, "it still takes connections"
            connection.sendall(body[10:])
            answer = b""
            while part := connection.recv(65536):
                answer += part
        assert b'"stored":true' in answer, answer
        assert running.process.wait(timeout=60) == 0
    assert json.loads(lookalike("index", "stats", directory, "--json").stdout)["rows"] == 1


def can_mount():
    tried = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True)
    return tried.returncode == 0


def test_a_full_disk(tmp_path):
    """Inserts fail with 507 and questions are answered; when there is room again, inserts work in the same process."""
    if not can_mount():
        pytest.skip("no small file system can be mounted here: unshare -rm is not permitted")
    place = tmp_path / "small"
    place.mkdir()
    # A file system of 24 MiB that only the service sees; it is filled and emptied through /proc.
    wrapper = ("unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=24m tmpfs {place} && exec "$@"', "sh")
    with service(place / "seen", wrapper=wrapper) as running:
        small = f"/proc/{running.process.pid}/root{place}"
        for number in range(50):
            assert running.put({"id": f"p{number}", "text": text(number)})["stored"]
        filler = os.path.join(small, "filler")
        with pytest.raises(OSError):
            with open(filler, "wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 4096)
        refused = 0
        for number in range(50, 200):
            status, answer = running.call("POST", "/v1/pages?store=if_new", {"id": f"p{number}", "text": text(number)})
            assert status in (200, 507), answer
            if status == 507:
                problem((status, answer), 507, "storage-full")
                refused += 1
            assert running.check({"text": text(7)})["of"][0]["id"] == "p7", "questions are answered"
            assert running.call("GET", "/v1/pages/p9")[0] == 200
        assert refused > 50
        assert running.call("GET", "/v1/stats")[1]["problems"]
        body = problem(running.call("GET", "/readyz"), 503, "not-ready")
        assert "the store has failed" in body["detail"] and str(place) not in body["detail"], body
        assert 'lookalike_store_failed{collection="default"} 1' in running.call("GET", "/metrics")[1].decode()
        pid = running.process.pid
        os.remove(filler)
        # It is ready again by itself: whoever watches it has stopped sending pages.
        deadline = time.monotonic() + LONGEST_WAIT
        while running.call("GET", "/readyz")[0] != 200:
            assert time.monotonic() < deadline, "it is not ready again"
            time.sleep(0.05)
        for number in range(200, 260):
            assert running.put({"id": f"p{number}", "text": text(number)})["stored"]
        stats = running.call("GET", "/v1/stats")[1]
        assert stats["reopened"] >= 1 and not stats["problems"] and running.process.pid == pid
        for number in [*range(50), *range(200, 260)]:
            assert [near["id"] for near in running.check({"text": text(number)})["of"]] == [f"p{number}"]
        running.stop()


def test_damage_is_named_and_the_rest_is_served(tmp_path):
    directory = tmp_path / "seen"
    for first in (0, 300):
        with service(directory) as running:
            for number in range(first, first + 300):
                running.put({"id": f"p{number}", "text": text(number)})
            running.stop()
    segment = sorted(directory.glob("bands-*.seg"))[0]
    damaged = bytearray(segment.read_bytes())
    damaged[len(damaged) // 3] ^= 1
    segment.write_bytes(damaged)
    refused = lookalike("serve", directory, "--listen", "127.0.0.1:0")
    assert refused.returncode == 1 and segment.name in refused.stderr and "--skip-damaged" in refused.stderr
    with service(directory, "--skip-damaged") as running:
        assert running.check({"text": text(300)})["verdict"] == "exact"
        problem(running.call("POST", "/v1/pages?store=always", {"text": text(1)}), 503, "read-only")
        assert segment.name in running.call("GET", "/v1/stats")[1]["problems"][0]
