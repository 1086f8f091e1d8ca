"""Pages by their ids: lists in parts, deletes by prefix and pattern; what is stored with a page, and for how long."""

import time
from urllib.parse import quote

import pytest
from lookalike.client import Client
from service import problem, service, text


def ids(running, query=""):
    """All ids, from lists of a few at a time."""
    found, after = [], ""
    while after is not None:
        status, part = running.call("GET", f"/v1/pages?limit=3{query}" + (f"&after={quote(after, safe='')}" if after else ""))
        assert status == 200 and len(part["pages"]) <= 3, part
        found += [page["id"] for page in part["pages"]]
        after = part["next"]
    return found


def test_lists_are_in_the_order_of_ids(tmp_path):
    names = ["b", "a", "a/1", "a/2", "é", "a/10", "http://x.org/?q=1&r=2", "z"]
    with service(tmp_path / "seen") as running:
        assert running.call("GET", "/v1/pages") == (200, {"pages": [], "next": None})
        for number, name in enumerate(names):
            running.put({"id": name, "text": text(number)})
        assert ids(running) == sorted(names, key=str.encode)
        assert ids(running, "&prefix=a/") == ["a/1", "a/10", "a/2"]
        assert ids(running, "&prefix=nothing") == []
        status, one = running.call("GET", "/v1/pages?id=" + quote(names[6], safe=""))
        assert status == 200 and one["id"] == names[6]
        problem(running.call("GET", "/v1/pages?id=a&prefix=a"), 422, "bad-field")
        for limit in ["0", "1001"]:
            problem(running.call("GET", f"/v1/pages?limit={limit}"), 422, "bad-field")
        # After a restart, too, and without what was deleted.
        running.call("DELETE", "/v1/pages?id=b")
        running.stop()
    with service(tmp_path / "seen") as running:
        assert ids(running) == sorted({*names} - {"b"}, key=str.encode)


def test_deletes_by_prefix_and_pattern(tmp_path):
    with service(tmp_path / "seen") as running:
        for number in range(700):
            host = "a.org" if number % 2 else "b.org"
            page = {"id": f"{number % 7}/{number}", "url": f"http://{host}/{number}", "text": text(number, 20)}
            running.put(page, "always")
        for query in ["prefix=3/", "url=http://a.org/*"]:
            refused = problem(running.call("DELETE", f"/v1/pages?{query}"), 422, "bad-field")
            assert "confirm=true" in refused["detail"]
        for query in ["", "?confirm=true", "?confirm=true&prefix=", "?confirm=true&prefix=a&url=b", "?id=a&prefix=a&confirm=true"]:
            problem(running.call("DELETE", f"/v1/pages{query}"), 422, "bad-field")
        assert len(ids(running)) == 700, "nothing is gone yet"
        assert running.call("DELETE", "/v1/pages?prefix=3/&confirm=true") == (200, {"deleted": 100, "complete": True})
        assert running.call("DELETE", "/v1/pages?prefix=3/&confirm=true")[1]["deleted"] == 0, "it can be repeated"
        left = [number for number in range(700) if number % 7 != 3]
        odd = [number for number in left if number % 2]
        assert running.call("DELETE", "/v1/pages?url=http://a.org/*&confirm=true")[1]["deleted"] == len(odd)
        assert running.call("DELETE", "/v1/pages?url=http://?.org/1?&confirm=true")[1]["deleted"] == len([n for n in left if 10 <= n < 20 and n % 2 == 0])
        kept = {f"{n % 7}/{n}" for n in left if n % 2 == 0 and not 10 <= n < 20}
        assert set(ids(running)) == kept
        running.kill()
    with service(tmp_path / "seen") as running:
        assert set(ids(running)) == kept, "what was answered is on disk"


def test_metadata_comes_back(tmp_path):
    metadata = {"crawl": "2026-11", "depth": 3, "tags": ["a", "é"], "big": 12345678901234567890}
    with service(tmp_path / "seen") as running:
        running.put({"id": "a", "text": text(1), "metadata": metadata})
        running.put({"id": "b", "text": text(2)})
        assert running.call("GET", "/v1/pages?id=a")[1]["metadata"] == metadata
        assert running.call("GET", "/v1/pages?id=b")[1]["metadata"] is None
        assert [page["metadata"] for page in running.call("GET", "/v1/pages")[1]["pages"]] == [metadata, None]
        _, plain = running.call("POST", "/v1/pages", {"text": text(1)})
        _, explained = running.call("POST", "/v1/pages?explain=true", {"text": text(1)})
        assert "metadata" not in plain["of"][0] and explained["of"][0]["metadata"] == metadata
        problem(running.call("POST", "/v1/pages", {"text": "x", "metadata": [1]}), 422, "bad-field")
        problem(running.call("POST", "/v1/pages", {"text": "x", "metadata": {"x": "y" * 20_000}}), 413, "too-large")
        running.stop()
    with service(tmp_path / "seen") as running:
        assert running.call("GET", "/v1/pages?id=a")[1]["metadata"] == metadata


def test_pages_expire(tmp_path):
    with service(tmp_path / "seen") as running:
        running.put({"id": "short", "text": text(1), "ttl": 1})
        running.put({"id": "long", "text": text(2), "ttl": 3600})
        running.put({"id": "ever", "text": text(3)})
        stored = running.call("GET", "/v1/pages?id=long")[1]
        assert stored["expires_at"] == pytest.approx(stored["stored_at"] + 3600, abs=1)
        assert running.call("GET", "/v1/pages?id=ever")[1]["expires_at"] is None
        end = time.monotonic() + 60
        while running.call("GET", "/v1/pages?id=short")[0] == 200:
            assert time.monotonic() < end, "it never goes"
            time.sleep(0.1)
        assert running.check({"text": text(1)})["verdict"] == "new", "it is not found any more"
        assert ids(running) == ["ever", "long"]
        problem(running.call("POST", "/v1/pages", {"text": "x", "ttl": 0}), 422, "bad-field")


def test_collections_are_removed(tmp_path):
    with service(tmp_path / "seen") as running, Client(f"http://{running.host}") as client:
        client.create_collection("news")
        client.collection("news").check({"id": "a", "text": text(1)}, store="if_new")
        refused = problem(running.call("DELETE", "/v1/collections/news"), 422, "bad-field")
        assert "confirm=true" in refused["detail"]
        assert client.delete_collection("news") is True
        assert client.delete_collection("news") is False
        assert [each.name for each in client.collections()] == ["default"]
        assert not (tmp_path / "seen" / "collections" / "news").exists()
        # A new one with the same name is empty.
        client.create_collection("news", ngram=3)
        assert client.collection("news").get("a") is None
        problem(running.call("DELETE", "/v1/collections/default?confirm=true"), 409, "conflict")


def test_the_client_lists_and_deletes(tmp_path):
    with service(tmp_path / "seen") as running, Client(f"http://{running.host}") as client:
        for number in range(250):
            client.check({"id": f"{number:03}", "url": f"http://a.org/{number}", "text": text(number, 20), "metadata": {"n": number}}, store="always")
        listed = list(client.pages())
        assert [page.id for page in listed] == [f"{number:03}" for number in range(250)]
        assert listed[7].metadata == {"n": 7} and listed[7].expires_at is None
        assert [page.id for page in client.pages(prefix="24")] == [f"{number}" for number in range(240, 250)]
        assert client.delete_pages(prefix="24") == 10
        assert client.delete_pages(url="http://a.org/1?") == 10
        assert len(list(client.pages())) == 230
        with pytest.raises(ValueError):
            client.delete_pages()
