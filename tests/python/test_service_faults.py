"""The service when something hangs or breaks, or when clients take more than their share."""

import json
import os
import re
import resource
import socket
import subprocess
import threading
import time

import pytest
from preload import OLD_CLOCK, HangingSync, compiled
from service import LOOKALIKE, problem, service, text

# Seconds to wait for something: far more than it takes on a slow machine.
LONGEST_WAIT = 120
NDJSON = {"Content-Type": "application/x-ndjson"}


def until(is_so, what):
    deadline = time.monotonic() + LONGEST_WAIT
    while not is_so():
        assert time.monotonic() < deadline, f"it did not come: {what}"
        time.sleep(0.02)


def metric(running, name, **labels):
    wanted = name + ("{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}" if labels else "")
    status, body = running.call("GET", "/metrics")
    assert status == 200, body
    values = [line.split(" ")[1] for line in body.decode().splitlines() if line.split(" ")[0] == wanted]
    assert len(values) == 1, (name, values)
    return float(values[0])


def of_process(running, name):
    """A number of /proc/PID/status."""
    with open(f"/proc/{running.process.pid}/status") as status:
        return int(re.search(rf"^{name}:\s+(\d+)", status.read(), re.M)[1])


def settings(tmp_path, **limits):
    path = tmp_path / "service.toml"
    path.write_text("[limits]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in limits.items()))
    return "--config", path


def many_files():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def connect(running):
    return socket.create_connection(running.host.split(":"), timeout=LONGEST_WAIT)


def in_background(work):
    """Starts a call; what it gives is in the list that is returned, when the thread is done."""
    results = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    return thread, results


def test_probes_are_red_while_a_sync_hangs_and_green_again_after_it(tmp_path):
    hang = HangingSync(tmp_path)
    limits = settings(tmp_path, stall_seconds=1)
    with service(tmp_path / "seen", *limits, environment=hang.environment) as running:
        running.put({"id": "a", "text": text(1)})
        assert metric(running, "lookalike_store_failed", collection="default") == 0
        hang.start()
        waiting, answers = in_background(
            lambda: running.call("POST", "/v1/pages?store=if_new", {"id": "b", "text": text(2)})
        )
        until(lambda: running.call("GET", "/readyz")[0] == 503, "/readyz is red")
        body = problem(running.call("GET", "/readyz"), 503, "not-ready")
        assert "default" in body["detail"] and "sync hangs" in body["detail"]
        assert running.call("GET", "/healthz")[0] == 200, "a restart would not help"
        assert metric(running, "lookalike_store_failed", collection="default") == 1
        # The log says so with the next heartbeat.
        until(lambda: metric(running, "lookalike_writer_busy_seconds", collection="default") > 3, "heartbeats")
        # What would be stored is refused, what waits is told, and pages are looked up as ever.
        refused = [
            running.call("POST", "/v1/pages?store=if_new", {"id": "c", "text": text(3)}),
            running.call("POST", "/v1/pages/batch?store=always", json.dumps({"text": text(3)}), NDJSON),
            running.call("DELETE", "/v1/pages/a"),
        ]
        waiting.join()
        for answer in [*refused, *answers]:
            assert "sync hangs" in problem(answer, 503, "store-failed")["detail"]
        assert running.check({"text": text(1)})["verdict"] == "exact"
        assert "sync hangs" in running.call("GET", "/v1/stats")[1]["problems"][0]
        hang.end()
        until(lambda: running.call("GET", "/readyz")[0] == 200, "/readyz is green")
        assert metric(running, "lookalike_store_failed", collection="default") == 0
        assert running.put({"id": "c", "text": text(3)})["stored"]
        assert running.check({"text": text(2)})["verdict"] == "exact", "it was stored in the end"
        assert "nothing can be stored: collection default" in running.stop()


def test_a_stop_ends_though_a_sync_hangs(tmp_path):
    hang = HangingSync(tmp_path)
    limits = settings(tmp_path, stop_seconds=1, stall_seconds=1)
    with service(tmp_path / "seen", *limits, environment=hang.environment) as running:
        running.put({"id": "a", "text": text(1)})
        hang.start()
        waiting, answers = in_background(
            lambda: running.call("POST", "/v1/pages?store=if_new", {"id": "b", "text": text(2)})
        )
        until(lambda: metric(running, "lookalike_writer_busy_seconds", collection="default") > 0, "the sync hangs")
        running.process.terminate()
        said = running.process.communicate(timeout=LONGEST_WAIT)[1]
        assert running.process.returncode == 1 and "did not stop in time" in said, said
        waiting.join()
        assert answers[0][0] == 503
        hang.end()
    with service(tmp_path / "seen") as running:
        assert running.check({"text": text(1)})["verdict"] == "exact"


def test_a_log_that_nobody_reads_stops_nothing(tmp_path):
    with service(tmp_path / "seen", quiet=False) as running:
        connection = running.connection()
        # Much more than a pipe and the service hold.
        for _ in range(900):
            assert running.call("GET", "/" + "x" * 8000, connection=connection)[0] == 404
        assert metric(running, "lookalike_log_lines_dropped_total") > 0
        assert running.put({"id": "a", "text": text(1)})["stored"]
        running.process.terminate()
        assert running.process.wait(timeout=LONGEST_WAIT) == 0, "nobody has read anything yet"


def test_probes_are_red_before_connections_are_refused(tmp_path):
    with service(tmp_path / "seen", *settings(tmp_path, drain_seconds=5)) as running:
        running.process.terminate()
        seen = set()

        def ended():
            try:
                seen.add(running.call("GET", "/readyz")[0])
                if 503 in seen:
                    assert running.put({"id": "a", "text": text(1)}), "all is served until the delay is over"
            except OSError:
                return True

        until(ended, "no connections are taken any more")
        assert 503 in seen
        assert running.process.wait(timeout=LONGEST_WAIT) == 0


def test_a_panic_of_the_thread_that_stores(tmp_path):
    """Needs a build with the feature `faults`."""
    environment = {"LOOKALIKE_FAULT": "panic-writer"}
    with service(tmp_path / "seen", environment=environment) as running:
        running.put({"id": "a", "text": text(1)})
        status, answer = running.call("POST", "/v1/pages?store=if_new", {"id": "panic-now", "text": text(2)})
        if status == 200:
            pytest.skip("this program was built without the feature `faults`")
        problem((status, answer), 503, "store-failed")
        assert running.check({"text": text(1)})["verdict"] == "exact"
        until(lambda: running.call("GET", "/readyz")[0] == 200, "/readyz is green")
        assert metric(running, "lookalike_writer_restarted_total", collection="default") == 1
        assert running.put({"id": "b", "text": text(3)})["stored"]
        assert "panicked" in running.stop()
    with service(tmp_path / "seen") as running:
        assert [running.check({"text": text(number)})["verdict"] for number in (1, 2, 3)] == ["exact", "new", "exact"]


def test_batches_wait_while_nothing_is_stored(tmp_path):
    """No line is refused because the thread that stores was busy for a while."""
    hang = HangingSync(tmp_path)
    clients, lines = 40, 250
    limits = settings(tmp_path, stall_seconds=600)
    with service(tmp_path / "seen", *limits, environment=hang.environment) as running:
        hang.start()

        def send(client):
            pages = [json.dumps({"id": f"{client}-{n}", "text": text(client * lines + n, 20)}) for n in range(lines)]
            return running.call("POST", "/v1/pages/batch?store=always", "\n".join(pages), NDJSON)

        started = [in_background(lambda client=client: send(client)) for client in range(clients)]
        until(lambda: metric(running, "lookalike_writer_queue", collection="default") >= 4096, "many pages wait")
        hang.end()
        for thread, answers in started:
            thread.join()
            answered = [json.loads(line) for line in answers[0][1].splitlines()]
            assert len(answered) == lines and all(line.get("stored") for line in answered), answered
        assert running.call("GET", "/v1/stats")[1]["rows"] == clients * lines


def test_batches_end_when_their_time_is_over(tmp_path):
    with service(tmp_path / "seen", *settings(tmp_path, batch_seconds=2, least_rate="1B")) as running:
        with connect(running) as client:
            client.sendall(
                b"POST /v1/pages/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n"
            )
            line = json.dumps({"text": text(1)}).encode() + b"\n"
            chunk = b"%x\r\n%s\r\n" % (len(line), line)
            received = b""
            try:
                while b"urn:lookalike:timeout" not in received:
                    client.sendall(chunk)
                    part = client.recv(65536)
                    assert part, received
                    received += part
            except ConnectionError:
                pass
            assert b'"verdict":"new"' in received and b"2 seconds" in received


def test_a_batch_ends_though_its_answers_are_read_slowly(tmp_path):
    """Each read is in time, and all of them together would take for ever."""
    limits = settings(tmp_path, batch_seconds=6, idle_seconds=4, batch_lines=10**6)
    with service(tmp_path / "seen", *limits) as running:
        line = json.dumps({"text": "the same few words " * 3}).encode() + b"\n"
        over, received = threading.Event(), []
        with connect(running) as client:

            def read():
                # The system lets the service write again when a good part of its buffer was read.
                try:
                    while not over.wait(0.25) and (part := client.recv(1 << 18)):
                        received.append(part)
                except OSError:
                    pass

            reading = threading.Thread(target=read)
            reading.start()
            body = line * 60_000
            client.sendall(
                b"POST /v1/pages/batch?explain=true HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
                b"Content-Length: %d\r\n\r\n" % len(body)
            )
            try:
                client.sendall(body)
            except OSError:
                pass
            try:
                until(lambda: metric(running, "lookalike_batches_active") == 0, "its place is free")
                until(lambda: metric(running, "lookalike_body_memory_bytes") == 0, "its memory is free")
                assert not b"".join(received).endswith(b"0\r\n\r\n"), "the client has read everything"
            finally:
                over.set()
                reading.join()


def zstd(*arguments, data):
    return subprocess.run(["zstd", "-c", *arguments], input=data, capture_output=True, check=True).stdout


def test_windows_and_bodies_share_one_budget(tmp_path):
    """A few bytes can ask for a window of 128 MiB; many can ask for one that is allowed."""
    many_files()
    head = "POST /v1/pages{} HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: zstd\r\nContent-Type: application/{}\r\n"
    with service(tmp_path / "seen", *settings(tmp_path, body_memory="64MiB")) as running:
        bomb = zstd("--ultra", "--long=27", data=b"a" * 1000)
        for path, kind in [("", "json"), ("/batch", "x-ndjson")]:
            with connect(running) as client:
                client.sendall((head.format(path, kind) + f"Content-Length: {len(bomb)}\r\n\r\n").encode() + bomb)
                received = b""
                while b"too-large" not in received:
                    part = client.recv(65536)
                    assert part, received
                    received += part
        # 8 MiB each, filled, and never finished.
        window = zstd("-19", "--zstd=wlog=23", data=b'{"text": "' + os.urandom(64) * (160 << 10) + b'"}')
        held = [connect(running) for _ in range(100)]
        for client in held:
            client.sendall((head.format("", "json") + f"Content-Length: {len(window)}\r\n\r\n").encode() + window[:-1])
        until(lambda: metric(running, "lookalike_body_memory_bytes") > 8 << 20, "windows are held")
        refused = [received for received in map(first_bytes, held) if received]
        assert len(refused) > 80
        assert all(b"too-busy" in received and b"retry-after: 1" in received for received in refused)
        assert metric(running, "lookalike_body_memory_bytes") <= 64 << 20
        assert of_process(running, "VmHWM") < 300 << 10, "kilobytes, the program itself included"
        # There is always room for small ones.
        assert running.put({"id": "small", "text": text(7)})["stored"]
        [client.close() for client in held]
        until(lambda: metric(running, "lookalike_body_memory_bytes") == 0, "memory is given back")
        running.put({"id": "a", "text": text(1)})


def first_bytes(client):
    """What a client has received so far."""
    client.settimeout(0.2)
    try:
        return client.recv(65536)
    except TimeoutError:
        return b""


@pytest.mark.parametrize("kind", ["head", "body", "batch"])
def test_1024_tricklers_are_cut_off_and_others_are_served_meanwhile(tmp_path, kind):
    many_files()
    begin = {
        "head": b"POST /v1/pages HTTP/1.1\r\nHost: localhost\r\nX: ",
        "body": b"POST /v1/pages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10000\r\n\r\n{",
        "batch": b"POST /v1/pages/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
        b"Content-Length: 1000000\r\n\r\n{",
    }[kind]
    # All 1,024 are there before the first is cut off.
    with service(tmp_path / "seen", *settings(tmp_path, request_seconds=8, batches=1024)) as running:
        tricklers = [connect(running) for _ in range(1024)]
        [client.sendall(begin) for client in tricklers]
        over = threading.Event()

        def trickle():
            while not over.wait(0.5):
                for client in tricklers:
                    try:
                        client.send(b" ")
                    except OSError:
                        pass

        trickling = threading.Thread(target=trickle)
        trickling.start()
        try:
            for number in range(100):
                assert running.put({"id": str(number), "text": text(number)})["stored"]
            assert metric(running, "lookalike_connections") > 1000
            assert running.call("GET", "/healthz")[0] == 200
            for client in tricklers:
                try:
                    while client.recv(65536):
                        pass
                except ConnectionError:
                    pass
        finally:
            over.set()
            trickling.join()
        assert running.check({"text": text(5)})["verdict"] == "exact"


def test_probes_are_answered_when_there_is_no_connection_left(tmp_path):
    with service(tmp_path / "seen", *settings(tmp_path, connections=20)) as running:
        idle = [connect(running) for _ in range(30)]
        until(lambda: metric(running, "lookalike_connections") > 20, "all places are taken")
        assert running.call("GET", "/healthz")[0] == 200 and running.call("GET", "/readyz")[0] == 200
        problem(running.call("GET", "/v1/stats"), 503, "too-busy")
        [client.close() for client in idle]
        until(lambda: running.call("GET", "/v1/stats")[0] == 200, "there is a place again")


def test_a_second_address_for_probes(tmp_path):
    (tmp_path / "tokens").write_text("read reader-reader-reader\n")
    arguments = ("--admin-listen", "127.0.0.1:0", "--tokens", tmp_path / "tokens")
    with service(tmp_path / "seen", *arguments) as running:
        line = running.process.stderr.readline()
        running.host = re.search(r"probes and metrics at http://(\S+)", line)[1]
        assert running.call("GET", "/readyz")[0] == 200
        assert metric(running, "lookalike_ready") == 1
        problem(running.call("GET", "/v1/stats"), 404, "not-found")


def test_connections_are_kept_longer_than_a_request_may_take(tmp_path):
    with service(tmp_path / "seen", *settings(tmp_path, request_seconds=1)) as running:
        connection = running.connection()
        connection.connect()
        for _ in range(3):
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            first = connection.sock.getsockname()
            time.sleep(1.5)
        connection.auto_open = False
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200 and connection.sock.getsockname() == first


def test_a_clock_before_1970_is_reported(tmp_path):
    """The store cannot work with such a time."""
    environment = {**os.environ, "LD_PRELOAD": str(compiled(tmp_path, OLD_CLOCK))}
    command = [LOOKALIKE, "serve", tmp_path / "seen", "--listen", "127.0.0.1:0"]
    refused = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONGEST_WAIT)
    assert refused.returncode == 2 and "before 1970" in refused.stderr, refused
    with service(tmp_path / "seen") as running:
        assert running.put({"id": "a", "text": text(1)})["stored"]


def test_many_collections_need_few_threads_and_files(tmp_path):
    names = [f"c{number}" for number in range(40)]
    limits = settings(tmp_path, open_collections=4)
    for is_again in (False, True):
        with service(tmp_path / "seen", *limits) as running:
            for number, name in enumerate(names):
                if not is_again:
                    assert running.call("PUT", f"/v1/collections/{name}", {})[0] == 201
                path = f"/v1/collections/{name}/pages?store=if_new"
                status, answer = running.call("POST", path, {"id": "a", "text": text(number)})
                assert status == 200 and answer["verdict"] == ("exact" if is_again else "new"), answer
                assert metric(running, "lookalike_collections_open") <= 4
            assert of_process(running, "Threads") < 60
            listed = running.call("GET", "/v1/collections")[1]["collections"]
            assert [one["name"] for one in listed] == sorted([*names, "default"])
            assert [one["rows"] for one in listed] == [1] * 40 + [0]
            running.stop()


def test_requests_that_are_worked_on_are_limited(tmp_path):
    hang = HangingSync(tmp_path)
    limits = settings(tmp_path, requests=2, stall_seconds=600)
    with service(tmp_path / "seen", *limits, environment=hang.environment) as running:
        hang.start()
        page = lambda number: {"id": str(number), "text": text(number)}
        held = [in_background(lambda n=n: running.call("POST", "/v1/pages?store=always", page(n))) for n in range(2)]
        until(lambda: metric(running, "lookalike_requests_active") == 2, "both are worked on")
        problem(running.call("GET", "/v1/stats"), 503, "too-busy")
        assert running.headers["retry-after"] == "1"
        assert running.call("GET", "/healthz")[0] == 200
        hang.end()
        for thread, answers in held:
            thread.join()
            assert answers[0][0] == 200
        assert running.call("GET", "/v1/stats")[0] == 200
