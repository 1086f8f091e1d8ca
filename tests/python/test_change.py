"""Collections that get other settings while they are in use."""

import json
import threading
import time

from service import lookalike, problem, service, text


def edited(number, words=40):
    """A text of which the last words are others: half of its runs of five words are left."""
    return " ".join([*text(number).split()[: 120 - words], *text(number + 10_000).split()[:words]])


def settled(running, name="default"):
    """The collection when it has all that was asked for."""
    deadline = time.monotonic() + 120
    while True:
        status, collection = running.call("GET", f"/v1/collections/{name}")
        assert status == 200, collection
        if collection["rebuild"] is None or collection["rebuild"]["failed"]:
            return collection
        assert time.monotonic() < deadline, collection


def change(running, patch, name="default"):
    return running.call("PATCH", f"/v1/collections/{name}", patch)


def test_a_lower_threshold_and_another_method_while_clients_write(tmp_path):
    directory = tmp_path / "seen"
    with service(directory) as running:
        for number in range(300):
            running.put({"id": f"page-{number}", "text": text(number), "metadata": {"number": number}})
        assert running.check({"text": edited(7)})["verdict"] == "new"
        before = running.call("GET", "/v1/collections/default")[1]
        acknowledged, stopping, wrong = [], threading.Event(), []

        def write(writer):
            connection = running.connection()
            number = 0
            while not stopping.is_set():
                identifier = f"late-{writer}-{number}"
                answer = running.put({"id": identifier, "text": text(100_000 * (writer + 1) + number)}, connection=connection)
                acknowledged.append(identifier)
                if answer["verdict"] != "new" or running.check({"text": text(5)}, connection)["verdict"] != "exact":
                    wrong.append(answer)
                number += 1

        def batches():
            connection = running.connection()
            number = 0
            while not stopping.is_set():
                pages = [{"id": f"batch-{number + at}", "text": text(900_000 + number + at)} for at in range(50)]
                body = "".join(json.dumps(page) + "\n" for page in pages)
                headers = {"Content-Type": "application/x-ndjson"}
                status, answers = running.call("POST", "/v1/pages/batch?store=if_new", body, headers, connection)
                lines = [json.loads(line) for line in answers.splitlines()]
                if status != 200 or any(line.get("verdict") != "new" for line in lines):
                    wrong.append(lines)
                acknowledged.extend(line["id"] for line in lines if "id" in line)
                number += 50

        threads = [threading.Thread(target=write, args=(number,)) for number in range(2)] + [threading.Thread(target=batches)]
        for thread in threads:
            thread.start()
        try:
            for patch, is_found in [({"threshold": 0.3}, True), ({"method": "simhash"}, None), ({"method": "minhash"}, False)]:
                status, begun = change(running, patch)
                assert status == 202, begun
                collection = settled(running)
                assert collection["rebuild"] is None, collection
                assert all(collection["config"][name] == value for name, value in patch.items())
                if is_found is not None:
                    found = running.check({"text": edited(7)})
                    assert (found["verdict"] == "near") == is_found, found
                    assert not is_found or found["of"][0]["id"] == "page-7"
                assert running.call("GET", "/v1/pages/page-7")[1]["metadata"] == {"number": 7}
                assert running.check({"text": text(11)})["verdict"] == "exact"
        finally:
            stopping.set()
            for thread in threads:
                thread.join()
        assert not wrong, wrong[:3]
        assert collection["config"] == before["config"] and collection["config_hash"] == before["config_hash"]
        assert change(running, {"threshold": 0.7}) == (200, running.call("GET", "/v1/collections/default")[1])
        running.kill()
    with service(directory) as running:
        missing = [identifier for identifier in acknowledged if running.call("GET", f"/v1/pages/{identifier}")[0] != 200]
        assert len(acknowledged) > 100 and not missing
        running.stop()
    assert sorted(entry.name for entry in directory.iterdir()) == ["lock", "manifest.json", "rebuilt-3"]
    verified = lookalike("index", "verify", directory)
    assert verified.returncode == 0, verified.stderr


def test_a_kill_in_the_midst_leaves_the_collection_as_it_was(tmp_path):
    directory = tmp_path / "seen"
    with service(directory) as running:
        pages = "".join(json.dumps({"id": str(number), "text": text(number)}) + "\n" for number in range(3000))
        running.call("POST", "/v1/pages/batch?store=always", pages, {"Content-Type": "application/x-ndjson"})
        assert change(running, {"threshold": 0.5})[0] == 202
        problem(change(running, {"threshold": 0.6}), 409, "conflict")
        running.kill()
    for _ in range(2):
        with service(directory) as running:
            collection = running.call("GET", "/v1/collections/default")[1]
            # The last step may have been done before the kill, never half of it.
            assert collection["config"]["threshold"] in (0.5, 0.7) and collection["rebuild"] is None
            assert collection["rows"] == 3000
            assert running.check({"text": text(2999)})["of"][0]["id"] == "2999"
            assert change(running, {"threshold": 0.4})[0] == 202
            running.stop()


def test_what_cannot_be_changed_says_why(tmp_path):
    with service(tmp_path / "seen", "--no-text") as running:
        running.put({"id": "a", "text": text(1)})
        assert "not kept" in problem(change(running, {"threshold": 0.5}), 409, "conflict")["detail"]
        assert change(running, {"thresold": 0.5})[0] >= 400
        assert change(running, {"threshold": 7})[0] >= 400
        problem(change(running, {"threshold": 0.5}, "missing"), 404, "no-such-collection")
        assert running.call("GET", "/v1/collections/default")[1]["rebuild"] is None
        assert running.check({"text": text(1)})["verdict"] == "exact"
