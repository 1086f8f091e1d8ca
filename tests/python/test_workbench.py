"""The workbench in a browser, as a person uses it: look, compare, tag by keyboard, undo, filter, export; two people at once.

LOOKALIKE_SCREENSHOTS=DIR saves a picture of each view.
"""

import csv
import io
import os
import re
import subprocess
import threading
from pathlib import Path

import duckdb
import pandas
import pyarrow.parquet
import pytest
from sklearn.metrics import cohen_kappa_score

from workbench import LOOKALIKE, viewing

ROOT = Path(__file__).resolve().parents[2]
PICTURES = os.environ.get("LOOKALIKE_SCREENSHOTS")


def lookalike(*arguments, code=0):
    ran = subprocess.run([LOOKALIKE, *map(str, arguments)], capture_output=True, text=True)
    assert ran.returncode == code, ran.stderr
    return ran


@pytest.fixture
def result(tmp_path):
    lookalike("dedup", ROOT / "examples/newsroom", "--output", tmp_path / "out", "--quiet")
    return tmp_path / "out"


def clusters_of(bench, path="/clusters"):
    return [int(number) for number in re.findall(r'<li class="item" data-cluster="(\d+)"', bench.get(path))]


def table(result, name="clusters"):
    return pandas.read_parquet(result / f"{name}.parquet")


def tags_of(bench, pages=""):
    """The exported rows."""
    return list(csv.DictReader(io.StringIO(bench.get(f"/export/tags.csv{pages}"))))


def picture(page, name):
    if PICTURES:
        page.screenshot(Path(PICTURES) / f"workbench-{name}.png", whole=False)


def test_a_walk_by_keyboard_from_the_overview_to_the_exported_file(browser, result):
    with viewing(result) as bench:
        bench.wait_for_texts()
        page = browser.visit(bench.address + "/")
        assert "57 of 78 pages are duplicates" in page.run("document.querySelector('h1').textContent")
        picture(page, "overview")

        # The list: search, next, open.
        page.press("g")
        page.wait_until("!!document.getElementById('list')")
        page.press("/")
        page.type("ferry islands")
        page.press("Enter")
        page.wait_until("location.search.includes('ferry')")
        page.wait_until("document.querySelectorAll('.item').length === 1")
        picture(page, "clusters")
        page.press("j")
        page.wait_until("!!document.querySelector('.item.now')")
        page.press("Enter")
        page.wait_until("!!document.body.dataset.cluster")
        cluster = int(page.run("document.body.dataset.cluster"))
        kept = table(result, "pages")["id"][cluster]

        # Tag with a key, take it back, tag otherwise.
        page.press("1")
        page.wait_until("document.querySelector('[data-tag].on')?.textContent.startsWith('relevant')")
        page.press("u")
        page.wait_until("!document.querySelector('[data-tag].on')")
        page.press("2")
        page.wait_until("document.querySelector('[data-tag].on')?.textContent.startsWith('not relevant')")
        # One choice: the first one goes.
        page.press("3")
        page.wait_until("document.querySelector('[data-tag].on')?.textContent.startsWith('unclear')")
        page.press("n")
        page.wait_until("document.activeElement.id === 'note'")
        page.type("=the usual \"ferry\", again")
        page.press("Escape")
        page.wait_until("document.getElementById('toast').textContent === 'Note saved'")
        picture(page, "cluster")

        # The pair page.
        # The last card is the least similar page.
        page.press("ArrowUp")
        page.wait_until("!!document.querySelector('.card.now [data-pair]')")
        page.press("p")
        page.wait_until("'pair' in document.body.dataset")
        assert page.run("document.querySelectorAll('#map rect').length") > 0
        page.press("m")
        page.wait_until("!document.getElementById('methods').hidden")
        assert page.run("document.querySelectorAll('#methods tbody tr').length") == 8
        page.press("m")
        picture(page, "pair")
        page.press("o")
        page.wait_until("!document.getElementById('originals').hidden")
        assert page.run("[...document.querySelectorAll('iframe')].every((frame) => frame.getAttribute('sandbox') === '')")

        # Filter by the tag, and export.
        page.go(bench.address + "/tags")
        picture(page, "tags")
        page.run("[...document.querySelectorAll('td a')].find((link) => link.textContent === '1').click()")
        page.wait_until("!!document.getElementById('list')")
        assert page.run("document.querySelectorAll('.item').length") == 1
        assert page.problems() == []

        rows = tags_of(bench)
        members = table(result)
        expected = set(members.loc[members["kept_id"] == kept, "id"])
        assert {row["id"] for row in rows} == expected and len(rows) == len(expected) == 6
        assert {row["Relevance:Ann"] for row in rows} == {"unclear"}
        assert [row["note:Ann"] for row in rows if row["id"] == kept] == ['=the usual "ferry", again']
        assert {row["cluster"] for row in rows} == {kept}
        path = result.parent / "tags.parquet"
        path.write_bytes(bench.raw("GET", "/export/tags.parquet")[2])
        exported = pyarrow.parquet.read_table(path).to_pandas()
        assert exported["Relevance:Ann"].tolist() == ["unclear"] * 6 and exported["kept"].sum() == 1
        assert duckdb.sql(f"SELECT count(*) FROM '{path}'").fetchall() == [(6,)]
        assert len(tags_of(bench, "?pages=all")) == 78


def test_another_window_and_another_person_see_it_and_both_are_kept(browser, result):
    with viewing(result) as bench:
        first, second = clusters_of(bench)[:2]
        ann = browser.visit(f"{bench.address}/clusters/{first}", context=browser.person())
        window = browser.visit(f"{bench.address}/clusters/{first}")
        bob = browser.visit(f"{bench.address}/clusters/{first}", context=browser.person())
        bob.run("document.querySelector('[data-action=coder]').click()")
        bob.run("const field = document.querySelector('#name input'); field.value = 'Bob'; field.form.requestSubmit()")
        bob.wait_until("document.getElementById('coder')?.textContent === 'Bob'")

        ann.press("1")
        bob.press("2")
        # Nobody reloads: each window sees its own tag, and that of the other one beside it.
        for page, own, other in [(ann, "relevant", "not relevant"), (window, "relevant", "not relevant"), (bob, "not relevant", "relevant")]:
            page.wait_until(f"document.querySelector('[data-tag].on')?.firstChild.textContent === '{own}'")
            page.wait_until(f"document.querySelector('.others .chip')?.firstChild.textContent.trim() === '{other}'")
        rows = tags_of(bench)
        assert {(row["Relevance:Ann"], row["Relevance:Bob"]) for row in rows} == {("relevant", "not relevant")}
        # Each takes back what is theirs.
        bob.press("u")
        bob.wait_until("!document.querySelector('[data-tag].on')")
        assert {(row["Relevance:Ann"], row["Relevance:Bob"]) for row in tags_of(bench)} == {("relevant", "")}
        assert [page.problems() for page in (ann, window, bob)] == [[], [], []]
        assert second in clusters_of(bench, "/clusters?tag=todo") and first not in clusters_of(bench, "/clusters?tag=mine&q=nothing")


def test_many_tags_at_once_are_all_kept_and_agreement_is_cohens_kappa(result):
    with viewing(result) as bench:
        clusters = clusters_of(bench)
        labels = {"Ann": [1 + number % 3 for number in range(len(clusters))], "Bob": [1 + number % 2 for number in range(len(clusters))]}

        def code(name):
            for cluster, tag in zip(clusters, labels[name]):
                bench.post("/api/tag", {"tag": tag, "on": True, "cluster": cluster}, coder=name)

        threads = [threading.Thread(target=code, args=[name]) for name in labels]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        names = {1: "relevant", 2: "not relevant", 3: "unclear"}
        rows = {row["id"]: row for row in tags_of(bench)}
        ids = table(result, "pages")["id"]
        for name, tags in labels.items():
            assert [rows[ids[cluster]][f"Relevance:{name}"] for cluster in clusters] == [names[tag] for tag in tags]
        shown = re.search(r'id="agreement".*?</table>', bench.get("/tags"), re.S).group()
        expected = cohen_kappa_score(labels["Ann"], labels["Bob"])
        assert f"{expected:.3f}" in shown and "Ann" in shown and "Bob" in shown


def test_exceptions_stay_when_the_cluster_is_tagged_again(result):
    with viewing(result) as bench:
        cluster = clusters_of(bench)[0]
        page = int(re.findall(r'<article class="[^"]*" data-page="(\d+)"', bench.get(f"/clusters/{cluster}"))[1])
        bench.post("/api/tag", {"tag": 1, "on": True, "cluster": cluster})
        bench.post("/api/tag", {"tag": 2, "on": True, "page": page})
        bench.post("/api/tag", {"tag": 3, "on": True, "cluster": cluster})
        found = {row["id"]: row["Relevance:Ann"] for row in tags_of(bench)}
        own = table(result, "pages")["id"][page]
        assert found.pop(own) == "not relevant" and set(found.values()) == {"unclear"}
        for _ in range(3):
            bench.post("/api/undo", {})
        assert tags_of(bench) == []
        assert bench.post("/api/undo", {})["undone"] is None


def test_tags_survive_a_kill_and_another_run(result):
    with viewing(result) as bench:
        cluster = clusters_of(bench)[0]
        bench.post("/api/tag", {"tag": 1, "on": True, "cluster": cluster})
        before = {row["id"]: row["Relevance:Ann"] for row in tags_of(bench)}
        bench.kill()
    with viewing(result) as bench:
        assert {row["id"]: row["Relevance:Ann"] for row in tags_of(bench)} == before
        assert bench.stop() == 0
    again = ["dedup", ROOT / "examples/newsroom", "--output", result, "--keep", "longest", "--threshold", "0.9", "--replace", "--quiet"]
    with viewing(result) as bench:
        assert "made again" not in bench.get("/clusters")
        lookalike(*again)
        assert "The result was made again" in bench.get("/clusters")
    with viewing(result) as bench:
        assert {row["id"]: row["Relevance:Ann"] for row in tags_of(bench)} == before
        tagged = set(clusters_of(bench, "/clusters?tag=1&least=1"))
        kept = table(result)
        assert {table(result, "pages")["id"][number] for number in tagged} == set(kept.loc[kept["id"].isin(before), "kept_id"])


def test_recluster_follows_what_was_decided(result):
    before = table(result).set_index("id")
    ids = table(result, "pages")["id"]
    with viewing(result) as bench:
        first, second = clusters_of(bench)[:2]
        number = {id: position for position, id in enumerate(ids)}
        members = lambda cluster: [number[id] for id in before.index[before["kept_id"] == ids[cluster]]]
        new_kept = next(page for page in members(first) if page != first)
        bench.post("/api/decide", {"verdict": "keep", "pages": [new_kept]})
        others = [page for page in members(second) if page != second]
        bench.post("/api/decide", {"verdict": "split", "pages": others[:2]})
        bench.post("/api/decide", {"verdict": "apart", "pages": [others[2]]})
        assert "about pages of this cluster" in bench.get(f"/clusters/{second}")
        # All pages cannot be apart from the rest.
        bench.post("/api/decide", {"verdict": "split", "pages": members(first)}, code=422)
        ran = lookalike("recluster", result, "--decisions", "--output", result.parent / "decided")
        assert "regrouped by people" in ran.stderr
    after = table(result.parent / "decided").set_index("id")
    for page in members(first):
        assert after.loc[ids[page], "kept_id"] == ids[new_kept]
        assert after.loc[ids[page], "kept"] == (page == new_kept)
    split = sorted(others[:2])
    assert [after.loc[ids[page], "kept_id"] for page in split] == [ids[split[0]]] * 2
    assert after.loc[ids[others[2]], "kept"] and after.loc[ids[others[2]], "kind"] == "unique"
    rest = [page for page in members(second) if page not in others[:3]]
    assert {after.loc[ids[page], "kept_id"] for page in rest} == {ids[second]}
    untouched = [id for id in ids if number[id] not in members(first) + members(second)]
    pandas.testing.assert_frame_equal(after.loc[untouched], before.loc[untouched])
    # Similarities are those of the pages themselves.
    for page in members(first):
        compared = lookalike("compare", ids[page], ids[new_kept], "--in", result, "--json").stdout
        similarity = float(re.search(r'"similarity": ([0-9.]+)', compared).group(1))
        assert page == new_kept or abs(after.loc[ids[page], "similarity"] - similarity) < 1e-9
    kept = (result.parent / "decided/kept/kept.txt").read_text().splitlines()
    is_kept = lambda page: any(line.endswith("newsroom/" + ids[page]) for line in kept)
    assert is_kept(new_kept) and not is_kept(first) and is_kept(others[2])
    lookalike("recluster", result.parent / "decided", "--decisions", code=1)


def test_an_audit_is_judged_blindly_and_its_file_is_read_by_evaluate(browser, result):
    lookalike("dedup", ROOT / "examples/newsroom", "--output", result, "--threshold", "0.85", "--replace", "--quiet")
    with viewing(result) as bench:
        page = browser.visit(bench.address + "/audit")
        page.run("const form = document.getElementById('sample-form'); form.pairs.value = '6'; form.requestSubmit()")
        page.wait_until("document.body.dataset.position === '1'")
        shown = page.run("document.getElementById('main').innerText")
        assert not re.search(r"0\.\d\d|similar|near-duplicate|kept|accepted", shown), shown
        picture(page, "audit")
        for position in range(1, 7):
            page.wait_until(f"document.body.dataset.position === '{position}'")
            page.press("1" if position % 3 else "2")
        page.wait_until("location.pathname === '/audit'")
        page.wait_until("document.body.innerText.includes('Precision of the near-duplicates')")
        assert page.problems() == []
        lines = bench.get("/export/judgments.jsonl?sample=1")
        assert lines.count("\n") == 7 and lines.count('"incorrect"') == 2
        path = result.parent / "judgments.jsonl"
        path.write_text(lines)
        assert "precision of the near-duplicates" in lookalike("evaluate", "audit", result, "--judgments", path).stdout


def test_views_fit_their_screens_in_light_and_dark(browser, result):
    with viewing(result) as bench:
        bench.wait_for_texts()
        cluster = clusters_of(bench)[0]
        other = int(re.search(rf"/pair/{cluster}/(\d+)", bench.get(f"/clusters/{cluster}")).group(1))
        bench.post("/api/sample", {"pairs": 3, "seed": 1})
        views = {"overview": "/", "clusters": "/clusters", "cluster": f"/clusters/{cluster}", "pair": f"/pair/{cluster}/{other}", "tags": "/tags", "audit": "/audit", "judge": "/audit/1/1"}
        for name, path in views.items():
            for width, dark in [(1280, False), (1000, True), (1000, False), (400, True)]:
                with browser.visit(bench.address + path, width=width, dark=dark) as page:
                    overflow = page.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                    assert overflow <= 0, (name, width, overflow)
                    assert page.run("[...document.querySelectorAll('button, input, select, textarea, a')].every((item) => (item.textContent + (item.getAttribute('aria-label') || '') + (item.labels?.[0]?.textContent || '')).trim() !== '')"), name
                    picture(page, f"{name}-{width}{'-dark' if dark else ''}")
                    assert page.problems() == [], (name, width)
