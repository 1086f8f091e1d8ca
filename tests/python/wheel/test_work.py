"""Sketches, the index, comparisons and folded lists."""

import random

import numpy
import polars
import pyarrow
import pytest

import lookalike
from conftest import documents, story


def test_one_sketch_is_a_row_of_many(texts):
    for sketcher in [lookalike.MinHash(), lookalike.MinHash(64, ngram=2, threads=1), lookalike.Sketcher("bloom"), lookalike.Sketcher("projection")]:
        many = sketcher.sketch_all(texts)
        assert many.shape == (len(texts), sketcher.words) and many.dtype == numpy.uint32
        assert all((sketcher.sketch(text) == row).all() for text, row in zip(texts, many))
    simhash = lookalike.SimHash()
    assert simhash.sketch_all(texts).tolist() == [simhash.sketch(text) for text in texts]


def test_sketches_do_not_depend_on_threads_or_on_where_texts_come_from():
    texts = documents(9000)
    one = lookalike.MinHash(threads=1).sketch_all(texts)
    minhash = lookalike.MinHash(threads=2)
    for source in [texts, iter(texts), tuple(texts), pyarrow.array(texts), pyarrow.chunked_array([texts[:10], texts[10:]]), polars.Series(texts)]:
        assert (minhash.sketch_all(source) == one).all()
    assert minhash.sketch_all([]).shape == (0, 128)


def test_the_estimate_is_near_the_exact_similarity():
    minhash = lookalike.MinHash(num_perm=512, ngram=1)
    words = [f"word{at}" for at in range(300)]
    for shared in [0, 100, 200, 300]:
        left, right = words[:300], words[:shared] + [f"other{at}" for at in range(300 - shared)]
        exact = len({*left} & {*right}) / len({*left} | {*right})
        estimate = minhash.similarity(minhash.sketch(" ".join(left)), minhash.sketch(" ".join(right)))
        # Four standard deviations of a mean of 512.
        assert abs(estimate - exact) < 4 * 0.5 / 512**0.5
    sketches = minhash.sketch_all([story(1), story(2), story(1)])
    assert minhash.similarity(sketches, sketches[[0, 1, 1]]).tolist()[:2] == [1.0, 1.0]


def test_features_are_those_that_dedup_compares(texts):
    sketcher = lookalike.Sketcher("minhash", ngram=3)
    left, right = (set(sketcher.features(text).tolist()) for text in texts[2:4])
    (pair,) = lookalike.dedup(texts[2:4], ngram=3, threshold=0.5).pairs.to_pyarrow().to_pylist()
    assert pair["similarity"] == pytest.approx(len(left & right) / len(left | right))


def test_the_distance_of_arrays():
    left = numpy.array([0, 1, 2**64 - 1], dtype="uint64")
    assert lookalike.SimHash.distance(left, numpy.zeros(3, dtype="uint64")).tolist() == [0, 1, 64]
    assert lookalike.SimHash.distance(0b111, 0b001) == 2


def test_the_index_finds_what_brute_force_finds(tmp_path):
    chosen = random.Random(7)
    fingerprints = numpy.array([chosen.getrandbits(64) for _ in range(70_000)], dtype="uint64")
    near = fingerprints[:50].copy()
    for bit in (3, 40, 63)[:2]:
        near ^= numpy.uint64(1 << bit)
    index = lookalike.HammingIndex.build(tmp_path / "seen", fingerprints, radius=3)
    queries = numpy.concatenate([near, numpy.array([chosen.getrandbits(64) for _ in range(50)], dtype="uint64")])
    expected = {(at, int(row), int(distance)) for at, query in enumerate(queries) for row, distance in enumerate(lookalike.SimHash.distance(fingerprints, query)) if distance <= 3}
    assert len(expected) >= 50
    found = index.query_all(queries).to_pyarrow()
    assert set(zip(*(found[name].to_pylist() for name in ("query", "id", "distance")))) == expected
    for at in range(0, 100, 9):
        assert {(at, match.id, match.distance) for match in index.query(int(queries[at]))} == {row for row in expected if row[0] == at}


def test_an_index_is_added_to_saved_and_opened_again(tmp_path):
    with lookalike.HammingIndex(radius=2) as index:
        index.add([1 << 40], ids=["a"])
        index.add([1 << 41, 1 << 50], ids=["b", "c"])
        index.save(tmp_path / "saved")
        directory = index.directory
    assert not directory.exists(), "without a path, an index is temporary"
    with lookalike.HammingIndex.open(tmp_path / "saved", writable=True) as index:
        index.add([1 << 42], ids=["d"])
        assert [match.id for match in index.query(1 << 42)] == ["d", "a", "b", "c"]
    again = lookalike.HammingIndex.open(tmp_path / "saved", check=True)
    assert len(again) == 4 and again.radius == 2
    assert again.query((1 << 40) | 1, limit=1) == [lookalike.Match("a", 1, 1 << 40)]
    assert again.query_all([0], radius=1).to_pyarrow()["id"].to_pylist() == ["a", "b", "d", "c"]


def test_rows_without_ids_are_numbered(tmp_path):
    index = lookalike.HammingIndex(path=tmp_path / "numbers")
    index.add([1 << 20, 1 << 21])
    index.add(numpy.array([1 << 22], dtype="uint64"))
    index.close()
    index = lookalike.HammingIndex.open(tmp_path / "numbers", writable=True)
    index.add([1 << 23])
    assert sorted(match.id for match in index.query(0)) == [0, 1, 2, 3]


def test_compare():
    found = lookalike.compare(story(1), story(1) + " and a reader sent a photo")
    assert [decision.method for decision in found.methods][:2] == ["minhash", "shingle"]
    assert found.methods[0].near_duplicate and not found.identical
    assert found.left.text == story(1)
    assert "minhash" in repr(found) and "<table>" in found._repr_html_() and found.html.startswith("<!")
    assert lookalike.compare(b"<p>one two three", {"html": "<b>one</b> two three"}).identical
    assert lookalike.compare("Case", "case").identical
    assert not lookalike.compare("Case", "case", keep_case=True).identical


def test_compare_files(tmp_path):
    (tmp_path / "page.html").write_bytes("<title>Größe</title><p>naïve words".encode("latin-1"))
    assert lookalike.compare(tmp_path / "page.html", {"html": "<title>Größe</title><p>naïve words"}).identical


def test_explain(texts):
    result = lookalike.dedup(texts)
    dropped = result.explain("3")
    assert (dropped.is_kept, dropped.kept_page.id, dropped.kind) == (False, "2", "near")
    assert dropped.evidence.score == dropped.similarity >= 0.7
    assert result.explain(1).is_kept
    both = result.explain(2, 3)
    assert both.verdict.right.kept_id == "2" and both.verdict.decision.near_duplicate


def test_recluster(texts):
    result = lookalike.dedup(texts)
    longest = result.recluster(keep="longest")
    assert longest.explain("2").kept_page.id == "3"
    assert longest.keep_mask().sum() == result.keep_mask().sum()
    with pytest.raises(lookalike.InvalidSetting):
        result.recluster(threshold=0.1)


def test_refine_takes_lists_and_responses():
    results = [{"url": f"http://{at}.example/", "title": f"Title {at}", "text": story(at // 2)} for at in range(6)]
    folded = lookalike.refine(results)
    assert folded.best() == [0, 2, 4] and folded.keep_mask().tolist() == [True, False] * 3
    assert folded.groups[0].others[0].relation == "exact"
    response = {"took": 3, "hits": {"hits": [{"_id": str(at), "_source": result} for at, result in enumerate(results)]}}
    assert lookalike.refine(response).best() == [0, 2, 4]
    assert lookalike.refine(results, method="minhash", threshold=0.9).best() == [0, 2, 4]
    renamed = [{"body_text": result["text"]} for result in results]
    assert lookalike.refine(renamed, text_field="body_text").best() == [0, 2, 4]


def test_what_notebooks_show(texts):
    result = lookalike.dedup(texts + texts[:3])
    shown = result._repr_html_()
    assert "<td>33</td>" in shown and str(result.report) in shown
    assert result.report.exists()
    assert repr(result).startswith("<lookalike.Result: 33 documents, ")
    many = lookalike.dedup([{"id": f"<{at}>", "text": texts[0]} for at in range(25)])
    assert "<td>&lt;0&gt;</td><td>25</td><td>1.0000</td>" in many._repr_html_()
    assert "pages" in dir(result.summary)
    with pytest.raises(AttributeError, match="it has "):
        result.summary.nothing_of_this_name


@pytest.mark.parametrize("method", ["minhash", "shingle", "projection", "combined", "routed", "simhash", "bloom", "spotsigs"])
def test_every_method(method):
    spoken = "The ferry is a ship that was at the harbour, and there is nobody who would say that it has been the last. "
    texts = [spoken + story(1), story(2), spoken + story(1) + " again"]
    result = lookalike.dedup(texts, method=method)
    assert result.summary.config.method.name == method and result.summary.pages == 3
    assert result.keep_mask()[:2].all()
