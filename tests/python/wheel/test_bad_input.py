"""What goes wrong, and what the exception says about it."""

import json
import pickle
import shutil

import numpy
import pandas
import polars
import pyarrow
import pytest

import lookalike
from conftest import story


def error_of(kind, call, *parts):
    with pytest.raises(kind) as caught:
        call()
    assert isinstance(caught.value, lookalike.LookalikeError)
    message = str(caught.value)
    for part in parts:
        assert part in message, message
    return message


def test_a_text_column_of_another_type():
    table = pyarrow.table({"text": [1, 2, 3]})
    error_of(lookalike.InputError, lambda: lookalike.dedup(table), "the source", "'text'", "Int64", "not a string")


def test_no_text_column_at_all():
    table = pyarrow.table({"raw": ["a", "b"], "n": [1, 2]})
    message = error_of(lookalike.InputError, lambda: lookalike.dedup(table), "text", "raw", "text_field")
    assert "--" not in message


def test_a_column_that_is_not_there():
    table = pyarrow.table({"text": ["a"]})
    for field in ["id_field", "text_field"]:
        error_of(ValueError, lambda: lookalike.dedup(table, **{field: "raw"}), f'{field}="raw"', "it has text")


def test_an_array_of_numbers():
    error_of(lookalike.InputError, lambda: lookalike.dedup(pyarrow.array([1, 2])), "Int64", "cast it to strings")


def test_nulls_are_skipped_counted_and_not_kept():
    texts = [None, story(1), None, story(1) + " and more", story(2)]
    for source in [texts, pyarrow.table({"text": texts}), polars.Series(texts), [text and {"text": text} for text in texts]]:
        result = lookalike.dedup(source)
        assert result.keep_mask().tolist() == [False, True, False, False, True]
        assert sum(result.summary.skipped.values()) == 2
    error_of(lookalike.InputError, lambda: lookalike.dedup(texts, strict=True), "strict", "null")


@pytest.mark.parametrize("source", [[], (), iter([]), pyarrow.table({"text": pyarrow.array([], pyarrow.string())})], ids=repr)
def test_nothing_to_compare(source):
    error_of(lookalike.InputError, lambda: lookalike.dedup(source))


def test_nothing_but_nulls():
    error_of(lookalike.InputError, lambda: lookalike.dedup([None, None]), "None")


def test_a_generator_that_raises_in_the_middle(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def broken():
        for at in range(2000):
            yield story(at, words=10)
        raise ConnectionError("the network is gone")

    with pytest.raises(ConnectionError, match="the network is gone"):
        lookalike.dedup(broken())
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_a_stream_that_breaks_in_the_middle(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    schema = pyarrow.schema({"text": pyarrow.string()})

    def broken():
        yield pyarrow.record_batch({"text": ["a"]})
        raise ConnectionError("the network is gone")

    reader = pyarrow.RecordBatchReader.from_batches(schema, broken())
    error_of(lookalike.InputError, lambda: lookalike.dedup(reader), "the network is gone")
    assert list(tmp_path.iterdir()) == []


def test_items_of_different_types():
    error_of(lookalike.InputError, lambda: lookalike.dedup(["a text", 7]), "item 1", "int", "a string")
    error_of(lookalike.InputError, lambda: lookalike.dedup([{"text": "a"}, "b"]), "item 1", "str", "a dict")
    error_of(lookalike.InputError, lambda: lookalike.dedup([7, 8]), "item 0", "int")


def test_what_is_not_unicode():
    error_of(lookalike.InputError, lambda: lookalike.dedup(["fine", "half of a pair: \ud800"]), "item 1", "encode")
    error_of(lookalike.InputError, lambda: lookalike.dedup([{"text": "\ud800"}]), "item 0", "encode")


@pytest.mark.parametrize("source", [7, None, b"bytes", {"text": "one page"}, object()], ids=repr)
def test_what_is_no_source(source):
    error_of(lookalike.InputError, lambda: lookalike.dedup(source), type(source).__name__)


def test_names_of_files_are_not_taken_for_texts(tmp_path):
    (tmp_path / "a.txt").write_text("a text")
    error_of(lookalike.InputError, lambda: lookalike.dedup([str(tmp_path / "a.txt")]), "pathlib.Path")


def test_a_lazy_frame_is_to_be_collected():
    error_of(lookalike.InputError, lambda: lookalike.dedup(polars.LazyFrame({"text": ["a"]})), "collect()")


def test_a_path_that_is_not_there(tmp_path):
    error_of(FileNotFoundError, lambda: lookalike.dedup(tmp_path / "nowhere.jsonl"), "nowhere.jsonl", "no such file")


@pytest.mark.parametrize(
    "settings, parts",
    [
        ({"threshold": 2}, ["threshold=2", "at most 1"]),
        ({"threshold": "high"}, ["threshold=high", "must be a"]),
        ({"method": "simhush"}, ["method=simhush", "minhash, shingle"]),
        ({"method": "simhash", "threshold": 0.5}, ["`threshold`", "`radius`"]),
        ({"treshold": 0.5}, ["`treshold`", "threshold"]),
        ({"keep": "best"}, ['keep="best"', "first"]),
        ({"cluster": "chain"}, ['cluster="chain"', "star, components"]),
        ({"keep": 3}, ["keep=3", "must be a string"]),
        ({"threads": 0}, ["threads=0", "1 to 1024"]),
        ({"threads": True}, ["threads=True"]),
        ({"memory": "lots"}, ["memory='lots'", "4GB"]),
        ({"memory": "1MB"}, ["`memory`", "at least"]),
        ({"exact_only": "yes"}, ["exact_only='yes'", "True or False"]),
        ({"min_tokens": -1}, ["min_tokens=-1"]),
        ({"sample": 7}, ["sample=7"]),
        ({"mask": "dates"}, ["mask='dates'", "volatile"]),
        ({"format": "docx"}, ['format="docx"', "jsonl"]),
        ({"language": "klingon"}, ["language=klingon"]),
    ],
    ids=str,
)
def test_settings_that_cannot_be(settings, parts):
    message = error_of(ValueError, lambda: lookalike.dedup([story(1), story(2)], **settings), *parts)
    assert "--" not in message, "settings are named as they are written in Python"


def test_an_output_that_holds_something_else(tmp_path):
    texts = [story(1), story(2)]
    (tmp_path / "notes.txt").write_text("mine")
    error_of(FileExistsError, lambda: lookalike.dedup(texts, output=tmp_path), "force")
    lookalike.dedup(texts, output=tmp_path / "out")
    error_of(lookalike.OutputExists, lambda: lookalike.dedup(texts[:1], output=tmp_path / "out"), "replace")
    lookalike.dedup(texts[:1], output=tmp_path / "out", replace=True)


def test_a_damaged_result(tmp_path):
    lookalike.dedup([story(1), story(2)], output=tmp_path / "out")
    (tmp_path / "out/clusters.parquet").write_bytes(b"PAR1 is not enough")
    error_of(lookalike.CorruptFile, lambda: lookalike.Result.open(tmp_path / "out").clusters, "clusters.parquet")
    error_of(lookalike.InputError, lambda: lookalike.Result.open(tmp_path), "summary.json")


def test_a_page_that_is_not_in_the_result():
    result = lookalike.dedup([story(1), story(2)])
    error_of(lookalike.LookalikeError, lambda: result.explain("17"), "17")
    error_of(lookalike.LookalikeError, lambda: result.explain("0", "17"), "17")


def test_fingerprints_of_another_type():
    index = lookalike.HammingIndex()
    for wrong, part in [
        (numpy.array([1, 2]), 'astype("uint64")'),
        (numpy.array([1.5]), "float64"),
        (numpy.array(["a"]), "uint64"),
        (numpy.zeros((2, 2), dtype="uint64"), "reshape(-1)"),
        (7, "[ ]"),
    ]:
        with pytest.raises(TypeError) as caught:
            index.add(wrong)
        assert part in str(caught.value)
    error_of(lookalike.InputError, lambda: index.add([1, -1]), "fingerprint 1 is -1")
    error_of(lookalike.InputError, lambda: index.add([1, "a"]), "fingerprint 1")
    error_of(lookalike.InputError, lambda: index.add([1, 2], ids=[1]), "1 ids for 2 fingerprints")
    with pytest.raises(OverflowError):
        index.query(-1)


def test_arrays_with_gaps_between_their_values_are_read_as_they_are():
    every = numpy.arange(100, dtype="uint64") << numpy.uint64(20)
    index = lookalike.HammingIndex(radius=0)
    index.add(every[::2])
    index.add(every[:10][::-1])
    assert len(index) == 60
    assert [match.id for match in index.query(int(every[4]))] == [2, 55]
    assert index.query_all(every[1::2], limit=1).to_pyarrow()["query"].to_pylist() == [0, 1, 2, 3, 4]


def test_ids_of_the_other_kind():
    index = lookalike.HammingIndex(ids="number")
    with pytest.raises(TypeError, match="numbers"):
        index.add([1], ids=["one"])
    index = lookalike.HammingIndex(ids="text")
    with pytest.raises(TypeError, match="strings"):
        index.add([1], ids=[1])
    error_of(ValueError, lambda: lookalike.HammingIndex(ids="words"), "number, text")


def test_a_radius_that_the_tables_do_not_serve():
    index = lookalike.HammingIndex(radius=2)
    index.add(range(1000))
    index.flush()
    error_of(ValueError, lambda: index.query(0, radius=5), "radius=5", "at most 2")


def test_an_index_of_another_version(tmp_path):
    index = lookalike.HammingIndex.build(tmp_path / "seen", range(1000))
    index.close()
    (segment,) = (tmp_path / "seen").glob("*.seg*")
    right = segment.read_bytes()
    assert right[8] < 100
    segment.write_bytes(right[:8] + bytes([right[8] + 100]) + right[9:])
    parts = [segment.name, "the format 101", "use the version of lookalike that wrote it"]
    error_of(lookalike.CorruptFile, lambda: lookalike.HammingIndex.open(tmp_path / "seen"), *parts)
    assert len(lookalike.HammingIndex.open(tmp_path / "seen", skip_damaged=True)) == 0
    manifest = tmp_path / "seen/manifest.json"
    value = json.loads(manifest.read_text())
    value["format"] = 99
    manifest.write_text(json.dumps(value))
    error_of(lookalike.CorruptFile, lambda: lookalike.HammingIndex.open(tmp_path / "seen"), "99")


def test_an_index_that_is_not_there_read_only_or_closed(tmp_path):
    error_of(lookalike.LookalikeError, lambda: lookalike.HammingIndex.open(tmp_path / "nowhere"), "nowhere")
    index = lookalike.HammingIndex.build(tmp_path / "seen", range(10))
    error_of(lookalike.Locked, lambda: lookalike.HammingIndex.open(tmp_path / "seen", writable=True), "another")
    index.close()
    error_of(lookalike.InputError, lambda: lookalike.HammingIndex(path=tmp_path / "seen", ids="number"), "force")
    with pytest.raises(ValueError, match="closed"):
        index.query(1)
    reading = lookalike.HammingIndex.open(tmp_path / "seen")
    error_of(OSError, lambda: reading.add([1]), "opened for reading")
    reading.close()
    shutil.rmtree(tmp_path / "seen")


def test_sketches_of_what_is_no_text():
    minhash = lookalike.MinHash()
    for source in [["a", None], pyarrow.array(["a", None])]:
        error_of(lookalike.InputError, lambda: minhash.sketch_all(source), "text 1 is null")
    error_of(lookalike.InputError, lambda: minhash.sketch_all(["a", 7]), "text 1", "int")
    error_of(lookalike.InputError, lambda: minhash.sketch_all("a single text"), "sketch(text)")
    error_of(lookalike.InputError, lambda: minhash.sketch_all(pyarrow.array([1])), "Int64")
    with pytest.raises(TypeError):
        minhash.sketch(7)
    error_of(ValueError, lambda: lookalike.MinHash(ngram=0), "ngram=0")
    for count in [0, -1, 257, 5000]:
        error_of(ValueError, lambda: lookalike.MinHash(count), f"num_perm={count}")
    error_of(ValueError, lambda: lookalike.Sketcher("simhash", weights="tf-idf"), "corpus")


def test_documents_that_are_none():
    error_of(lookalike.InputError, lambda: lookalike.compare("a", 7), "int")
    error_of(lookalike.InputError, lambda: lookalike.compare("a", {"body": "b"}), "text", "body")
    error_of(lookalike.InputError, lambda: lookalike.refine([{"title": 7}]), "text")
    error_of(ValueError, lambda: lookalike.refine([{"text": "a"}], evidence="title"), "evidence", "text")


def test_a_pandas_column_with_gaps():
    frame = pandas.DataFrame({"text": [story(1), None, float("nan"), story(1)]})
    assert lookalike.dedup(frame).keep_mask().tolist() == [True, False, False, False]


def test_exceptions_are_found_where_they_are_shown():
    assert pickle.loads(pickle.dumps(lookalike.InputError("x"))).args == ("x",)
    assert repr(lookalike.InputError).endswith("'lookalike.InputError'>")
