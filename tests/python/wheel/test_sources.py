"""The same rows from every library that people have them in, and back."""

import datetime
import pathlib
import sys

import datasets
import duckdb
import numpy
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import lookalike
from conftest import documents


def table_of(texts):
    return pyarrow.table({"number": range(len(texts)), "text": texts, "vector": [[0.5, 1.5]] * len(texts)})


def test_a_list_of_texts(texts, expected):
    result = lookalike.dedup(texts)
    assert result.keep_mask().tolist() == expected
    assert result.pages.to_pyarrow()["id"].to_pylist() == [str(at) for at in range(len(texts))]


def test_a_generator_of_texts(texts, expected):
    assert lookalike.dedup(text for text in texts).keep_mask().tolist() == expected


def test_dicts_with_and_without_ids(texts, expected):
    pages = [{"text": text, "date": datetime.date(2026, 1, 1), "score": numpy.float32(0.5)} for text in texts]
    pages[3]["id"] = "the fourth"
    result = lookalike.dedup(pages)
    assert result.keep_mask().tolist() == expected
    assert result.pages.to_pyarrow()["id"].to_pylist()[2:5] == ["2", "the fourth", "4"]


def test_dicts_inside_dicts(texts, expected):
    pages = [{"doc": {"body": text, "key": f"k{at}"}} for at, text in enumerate(texts)]
    result = lookalike.dedup(pages, text_field="doc.body", id_field="doc.key")
    assert result.keep_mask().tolist() == expected
    assert result.pages.to_pyarrow()["id"][7].as_py() == "k7"


def test_a_pyarrow_table(texts, expected):
    table = table_of(texts)
    kept = table.filter(lookalike.dedup(table).keep_mask())
    assert kept["number"].to_pylist() == [at for at, keep in enumerate(expected) if keep]


@pytest.mark.parametrize("kind", [pyarrow.string(), pyarrow.large_string(), pyarrow.string_view(), pyarrow.dictionary(pyarrow.int32(), pyarrow.string())], ids=str)
def test_every_type_of_string(texts, expected, kind):
    column = pyarrow.array(texts).cast(kind) if kind != pyarrow.string_view() else pyarrow.array(texts, kind)
    assert lookalike.dedup(pyarrow.table({"text": column})).keep_mask().tolist() == expected


def test_slices_of_a_table(texts, expected):
    table = pyarrow.concat_tables([table_of(texts)] * 3).slice(30, 30)
    assert lookalike.dedup(table).keep_mask().tolist() == expected


def test_a_record_batch_reader_is_read_once_and_never_whole(texts, expected):
    made = []

    def batches():
        for batch in table_of(texts).to_batches(max_chunksize=7):
            made.append(batch.num_rows)
            yield batch

    reader = pyarrow.RecordBatchReader.from_batches(table_of(texts).schema, batches())
    assert lookalike.dedup(reader).keep_mask().tolist() == expected
    assert made == [7, 7, 7, 7, 2]


def test_arrays_of_texts(texts, expected):
    for array in [pyarrow.array(texts), pyarrow.chunked_array([texts[:7], texts[7:]]), polars.Series(texts)]:
        assert lookalike.dedup(array).keep_mask().tolist() == expected


def test_polars(texts, expected):
    frame = polars.DataFrame({"text": texts}).with_row_index()
    result = lookalike.dedup(frame)
    kept = frame.filter(result.keep_mask())
    assert kept["index"].to_list() == [at for at, keep in enumerate(expected) if keep]
    assert polars.DataFrame(result.clusters).shape == (len(texts), 8)
    assert result.clusters.to_polars()["kept"].to_list() == expected


def test_polars_slices_are_written_once(tmp_path):
    # A slice of a column of views refers to all that it was cut from.
    texts = documents(20_000)
    frame = polars.DataFrame({"text": texts})
    rows = lookalike._lookalike.spool_arrow(frame, tmp_path / "table.arrows", {}, False)
    assert rows == len(texts)
    assert (tmp_path / "table.arrows").stat().st_size < 1.2 * sum(len(text) + 24 for text in texts)


def test_pandas(texts, expected):
    frame = pandas.DataFrame({"text": texts}, index=[f"row {at}" for at in range(len(texts))])
    result = lookalike.dedup(frame)
    assert frame[result.keep_mask()].index.tolist() == [f"row {at}" for at, keep in enumerate(expected) if keep]
    back = result.clusters.to_pandas()
    assert back["kept"].tolist() == expected
    assert back["id"].tolist() == result.pages.to_pandas()["id"].tolist()


def test_duckdb(texts, expected):
    rows = table_of(texts)  # noqa: F841, DuckDB finds it by its name
    relation = duckdb.sql("SELECT number, text FROM rows ORDER BY number")
    result = lookalike.dedup(relation)
    assert result.keep_mask().tolist() == expected
    clusters = result.clusters.to_pyarrow()  # noqa: F841
    assert duckdb.sql("SELECT count(*) FROM clusters WHERE kept").fetchall() == [(sum(expected),)]


def test_hugging_face_datasets(texts, expected):
    dataset = datasets.Dataset.from_dict({"number": range(len(texts)), "text": texts})
    result = lookalike.dedup(dataset)
    kept = dataset.select(numpy.flatnonzero(result.keep_mask()))
    assert kept["number"][:] == [at for at, keep in enumerate(expected) if keep]
    back = datasets.Dataset(result.clusters.to_pyarrow())
    assert back["kept"][:] == expected


def test_a_selection_of_a_dataset_is_read_in_its_order(texts):
    dataset = datasets.Dataset.from_dict({"number": range(len(texts)), "text": texts}).select([5, 3, 2])
    result = lookalike.dedup(dataset)
    assert result.keep_mask().tolist() == [True, True, False], "3 is a near-duplicate of 2, and comes first here"


def test_a_streamed_dataset(texts, expected):
    dataset = datasets.Dataset.from_dict({"text": texts}).to_iterable_dataset()
    assert lookalike.dedup(dataset).keep_mask().tolist() == expected


def test_paths(texts, expected, tmp_path):
    for name, part in {"a": slice(0, 15), "b": slice(15, 30)}.items():
        pyarrow.parquet.write_table(table_of(texts).slice(part.start, 15), tmp_path / f"{name}.parquet")
    both = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for source in [str(tmp_path / "*.parquet"), tmp_path, both, tuple(both)]:
        result = lookalike.dedup(source)
        assert result.keep_mask().tolist() == expected
        assert result.summary.pages == len(texts)


def test_a_result_directory_has_the_kept_rows_with_all_columns(texts, expected, tmp_path):
    table = table_of(texts)
    result = lookalike.dedup(table, output=tmp_path / "out", kept_format="parquet")
    assert result.directory == tmp_path / "out"
    (kept,) = (tmp_path / "out/kept").glob("*.parquet")
    back = pyarrow.parquet.read_table(kept)
    assert {"number", "text", "vector"} <= set(back.column_names)
    assert back["number"].to_pylist() == [at for at, keep in enumerate(expected) if keep]
    again = lookalike.Result.open(tmp_path / "out")
    assert again.keep_mask().tolist() == expected
    assert again.summary == result.summary


def test_a_temporary_result_goes_with_its_object(texts):
    result = lookalike.dedup(texts)
    directory = result.directory
    strict = result.recluster(threshold=0.99)
    assert directory.exists()
    del result
    assert directory.exists(), "the texts are needed by the other result"
    assert strict.explain("3").page.id == "3"
    del strict
    assert not directory.exists() and not directory.parent.exists()


def test_the_result_does_not_depend_on_where_rows_come_from(texts, tmp_path):
    path = tmp_path / "pages.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"id": [str(at) for at in range(len(texts))], "text": texts}), path)
    tables = [lookalike.dedup(source, threads=threads).clusters.to_pyarrow() for source in (texts, path) for threads in (1, 2)]
    assert all(table == tables[0] for table in tables)


def test_tables_are_handed_over_without_copying(texts):
    result = lookalike.dedup(texts)
    first, second = pyarrow.table(result.clusters), pyarrow.table(result.clusters)
    address = lambda table: table["similarity"].chunk(0).buffers()[1].address
    assert address(first) == address(second)
    assert len(result.clusters) == result.clusters.num_rows == len(texts)
    assert result.clusters.column_names[:3] == ["id", "cluster", "kept"]


@pytest.mark.skipif(sys.platform != "linux", reason="the path cannot be written elsewhere")
def test_a_path_that_is_not_unicode(texts, tmp_path):
    path = pathlib.Path(str(tmp_path / "caf\udce9.txt"))
    path.write_text(texts[0])
    with pytest.raises((UnicodeEncodeError, lookalike.LookalikeError)):
        lookalike.dedup(path)
