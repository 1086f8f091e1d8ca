"""The description is valid, and a client generated from it works on the real service."""

import importlib
import json
import subprocess
import sys
import urllib.request

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from service import service, text


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with service(tmp_path_factory.mktemp("service") / "seen") as running:
        running.call("PUT", "/v1/collections/news", {"ngram": 3})
        yield running


@pytest.fixture(scope="module")
def description(running):
    status, description = running.call("GET", "/openapi.json")
    assert status == 200
    return description


def operations(description):
    for path, item in description["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


def test_the_description_is_valid(description):
    assert [error.message for error in OpenAPIV31SpecValidator(description).iter_errors()] == []


def test_operations_have_stable_names(description):
    ids = {operation["operationId"] for _, _, operation in operations(description)}
    of_collections = {
        "backup": "makeBackup",
        "batch": "batch",
        "check": "checkPage",
        "compare": "comparePages",
        "delete": "deletePage",
        "deletes": "deletePages",
        "find": "findPages",
        "fingerprints": "queryFingerprints",
        "get": "getPage",
        "refine": "refine",
        "stats": "getStats",
    }
    others = {"createCollection", "deleteCollection", "getCollection", "getMetrics", "isAlive", "isReady", "listCollections"}
    assert ids >= others | set(of_collections.values()) | {f"{id}InCollection" for id in of_collections.values()}
    assert len(ids) == len(list(operations(description)))


def test_every_operation_says_how_it_fails(description):
    problems = description["components"]["responses"]
    for path, method, operation in operations(description):
        for status in ["400", "401", "403", "408", "500", "503", "default"]:
            name = operation["responses"][status]["$ref"].removeprefix("#/components/responses/")
            assert list(problems[name]["content"]) == ["application/problem+json"], (path, method, status)
        if "{name}" in path:
            assert "404" in operation["responses"], (path, method)
            assert operation["parameters"][0]["name"] == "name" and operation["parameters"][0]["schema"]["pattern"]
        if "requestBody" in operation:
            assert {"413", "415", "422"} <= set(operation["responses"]), (path, method)
    assert "Retry-After" in problems["Problem503"]["headers"]
    assert description["components"]["securitySchemes"]["token"] == {"type": "http", "scheme": "bearer"}


@pytest.fixture(scope="module")
def generated(running, tmp_path_factory):
    """A package that was made from the description."""
    directory = tmp_path_factory.mktemp("generated")
    source = directory / "openapi.json"
    source.write_bytes(urllib.request.urlopen(f"http://{running.host}/openapi.json").read())
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--path", source, "--meta", "none"]
    (directory / "config.yml").write_text("post_hooks: []\n")
    command += ["--output-path", directory / "generated_lookalike", "--config", directory / "config.yml"]
    made = subprocess.run([*map(str, command)], capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    # Lines of JSON are not for generated clients; everything else is understood.
    warnings = [line for line in (made.stdout + made.stderr).splitlines() if line.startswith(("WARNING", "ERROR", "Unsupported", "Could not"))]
    assert all(line.startswith("WARNING parsing POST") and "batch" in line or "x-ndjson" in line for line in warnings), warnings
    sys.path.insert(0, str(directory))
    yield importlib.import_module("generated_lookalike")
    sys.path.remove(str(directory))


def call(path, **arguments):
    """Calls an operation of the generated package."""
    group, _, operation = path.partition(".")
    return importlib.import_module(f"generated_lookalike.api.{group}.{operation}").sync(**arguments)


@pytest.mark.parametrize("collection", [None, "news"], ids=["default", "news"])
def test_a_generated_client_works(running, generated, collection):
    models = importlib.import_module("generated_lookalike.models")
    client = generated.Client(base_url=f"http://{running.host}")

    def ask(operation, **arguments):
        if collection is None:
            return call(operation, client=client, **arguments)
        return call(f"{operation}_in_collection", client=client, name=collection, **arguments)

    page = models.Page(url="http://a.org/x?y=1#z", text=text(1))
    checked = ask("pages.check_page", body=page)
    assert (checked.verdict, checked.stored) == (models.VerdictName.NEW, False)
    stored = ask("pages.check_page", body=page, store=models.Store.IF_NEW, explain=True)
    assert (stored.verdict, stored.stored) == (models.VerdictName.NEW, True) and stored.explanation.why
    copy = ask("pages.check_page", body=models.Page(id="copy", html=f"<p>{text(1)}</p>"))
    assert copy.verdict == models.VerdictName.EXACT and copy.of[0].id == "http://a.org/x?y=1#z"

    for found in [ask("pages.get_page", id=stored.id), ask("pages.find_pages", id=stored.id)]:
        assert (found.id, found.url) == (stored.id, stored.id)
    missing = ask("pages.find_pages", id="missing")
    assert isinstance(missing, models.Problem) and (missing.status, missing.type_) == (404, "urn:lookalike:not-found")

    batch = [models.Page(id="a", text=text(2)), models.Page(id="none"), models.Page(id="b", text=text(2))]
    answers = ask("pages.batch", body=batch, store=models.Store.IF_NEW)
    assert [type(answer).__name__ for answer in answers] == ["PageResponse", "ItemProblem", "PageResponse"]
    assert (answers[1].index, answers[1].status, answers[2].of[0].id) == (1, 422, "a")

    listed = ask("pages.find_pages", limit=1)
    assert [found.id for found in listed.pages] == ["a"] and listed.next_ == "a"
    assert [found.id for found in ask("pages.find_pages", prefix="http:").pages] == [stored.id]

    stats = ask("operations.get_stats")
    assert stats.collection == (collection or "default") and stats.rows >= 2 and stats.problems == []
    assert ask("pages.delete_pages", id=stored.id) is None
    gone = ask("pages.find_pages", id=stored.id)
    assert isinstance(gone, models.Problem) and gone.status == 404
    assert ask("pages.delete_pages", prefix="a", confirm=True).deleted == 1
    kept = models.Page(id="kept", text=text(3), metadata=models.PageMetadataType0.from_dict({"n": 1}), ttl=3600)
    ask("pages.check_page", body=kept, store=models.Store.ALWAYS)
    found = ask("pages.find_pages", id="kept")
    assert found.metadata["n"] == 1 and found.expires_at > found.stored_at
    assert ask("pages.delete_page", id="kept") is None

    refused = ask("pages.check_page", body=page, lookalike_config="0" * 16)
    assert isinstance(refused, models.Problem) and refused.status == 409
    fingerprints = ask("search.query_fingerprints", body=models.Fingerprints(fingerprints=["0123456789abcdef"]))
    assert isinstance(fingerprints, models.Problem) and fingerprints.status == 409, "it has none"


def test_a_generated_client_sends_its_token(tmp_path, generated):
    models = importlib.import_module("generated_lookalike.models")
    tokens = tmp_path / "tokens"
    tokens.write_text("write 0123456789abcdef0123456789abcdef\n")
    tokens.chmod(0o600)
    with service(tmp_path / "seen", "--tokens", tokens) as running:
        base = {"base_url": f"http://{running.host}"}
        refused = call("operations.get_stats", client=generated.Client(**base))
        assert isinstance(refused, models.Problem) and refused.status == 401
        known = generated.AuthenticatedClient(token="0123456789abcdef0123456789abcdef", **base)
        assert call("operations.get_stats", client=known).rows == 0


def test_arrays_beside_lines(running):
    pages = [{"id": f"array {number}", "text": text(500 + number % 3)} for number in range(6)]
    status, answers = running.call("POST", "/v1/pages/batch?store=if_new", pages)
    assert status == 200
    assert [answer["verdict"] for answer in answers] == ["new"] * 3 + ["exact"] * 3
    assert [answer["id"] for answer in answers] == [page["id"] for page in pages]
    assert running.call("POST", "/v1/pages/batch", []) == (200, [])
    # An element that is wrong has a problem in its place.
    for wrong, kind in [(1, "bad-json"), ("x", "bad-json"), ([pages[0]], "bad-json"), ({"id": "x"}, "bad-field")]:
        status, answers = running.call("POST", "/v1/pages/batch", [pages[0], wrong, pages[1]])
        assert status == 200 and [answer.get("verdict") for answer in answers] == ["exact", None, "exact"]
        assert (answers[1]["index"], answers[1]["type"]) == (1, f"urn:lookalike:{kind}")
    # An array that is not one is refused, or answered as far as it goes.
    headers = {"Content-Type": "application/json"}
    status, refused = running.call("POST", "/v1/pages/batch", b'{"pages": []}', headers)
    assert status == 400 and refused["type"] == "urn:lookalike:bad-json"
    cut = json.dumps(pages)[:-20].encode()
    status, answers = running.call("POST", "/v1/pages/batch", cut, headers)
    assert status == 200 and len(answers) == 6 and answers[-1]["type"] == "urn:lookalike:bad-json"


def test_arrays_have_the_limits_of_lines(tmp_path):
    limits = tmp_path / "service.toml"
    limits.write_text('[limits]\nbatch_lines = 3\nbody = "20 kB"\npage = "10 kB"\n')
    with service(tmp_path / "seen", "--config", limits) as running:
        long = {"text": "word " * 2500}
        longer = {"text": "word " * 5000}
        status, answers = running.call("POST", "/v1/pages/batch", [{"text": text(1)}, long, {"text": text(2)}])
        assert status == 200 and [answer.get("status") for answer in answers] == [None, 413, None]
        status, answers = running.call("POST", "/v1/pages/batch", [{"text": text(1)}, longer, {"text": text(2)}])
        assert status == 200 and [answer.get("index") for answer in answers] == [None, 1], "the rest is not read"
        status, answers = running.call("POST", "/v1/pages/batch", [{"text": text(number)} for number in range(5)])
        assert status == 200 and len(answers) == 4 and answers[3]["status"] == 413


def test_arrays_are_answered_while_they_arrive(running):
    connection = running.connection()
    connection.putrequest("POST", "/v1/pages/batch?store=if_new")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()

    def send(part):
        connection.send(f"{len(part):x}\r\n".encode() + part + b"\r\n")

    send(b"[" + json.dumps({"id": "early", "text": text(900)}).encode() + b",")
    answer = connection.getresponse()
    first = answer.readline() if answer.chunked is False else answer.read1()
    assert first.startswith(b'[{"id":"early"'), "the first is answered before the second is sent"
    send(json.dumps({"id": "late", "text": text(900)}).encode() + b"]")
    connection.send(b"0\r\n\r\n")
    answers = json.loads(first + answer.read())
    assert [answer["verdict"] for answer in answers] == ["new", "exact"]
    connection.close()


def test_collections_are_listed_in_parts(tmp_path):
    names = ["default", *(f"c{number}" for number in range(5))]
    with service(tmp_path / "seen") as running:
        for name in names[1:]:
            running.call("PUT", f"/v1/collections/{name}", {})
        found, after, parts = [], "", 0
        while after is not None:
            status, part = running.call("GET", f"/v1/collections?limit=2&after={after}")
            assert status == 200 and len(part["collections"]) <= 2
            found += [collection["name"] for collection in part["collections"]]
            after, parts = part["next"], parts + 1
        assert found == sorted(names) and parts == 3, "the last part says that it is the last"
        assert running.call("GET", "/v1/collections")[1]["next"] is None
        for limit in ["0", "1001"]:
            status, refused = running.call("GET", f"/v1/collections?limit={limit}")
            assert status == 422 and "1 to 1000" in refused["detail"]
