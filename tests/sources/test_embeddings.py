"""Embeddings in list columns: the moments are those of the vectors."""

import numpy as np
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest

from fairpca import GroupMoments
from fairpca.sources import embedding_rows, read_embeddings

from texts import refused

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(90, 6)) + 1.0
LANGUAGES = np.repeat(["en", "sw"], [70, 20])


def table(kind=None):
    vectors = pyarrow.array(list(VECTORS), kind or pyarrow.list_(pyarrow.float64()))
    return pyarrow.table({"embedding": vectors, "language": LANGUAGES, "text": ["…"] * 90})


KINDS = {
    "lists": pyarrow.list_(pyarrow.float64()),
    "large lists": pyarrow.large_list(pyarrow.float64()),
    "lists of one size": pyarrow.list_(pyarrow.float64(), 6),
    "single precision": pyarrow.list_(pyarrow.float32()),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit_length", [False, True])
def test_moments_are_those_of_the_vectors(kind, unit_length, tmp_path):
    given = table(KINDS[kind])
    rows = VECTORS.astype(np.float32).astype(float) if kind == "single precision" else VECTORS
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True) if unit_length else rows
    expected = GroupMoments.from_rows(rows, LANGUAGES, folds=True)
    pyarrow.parquet.write_table(given, tmp_path / "one.parquet", row_group_size=17)
    pyarrow.feather.write_feather(given, tmp_path / "one.arrow", compression="uncompressed")
    pieces = pyarrow.Table.from_batches(given.to_batches(max_chunksize=13))
    options = {"sensitive_features": "language", "unit_length": unit_length, "folds": True}
    for source in (
        given,
        pieces,
        given.combine_chunks().to_batches()[0],
        given.to_reader(max_chunksize=11),
        tmp_path / "one.parquet",
        str(tmp_path / "one.arrow"),
        [tmp_path / "one.parquet"],
    ):
        found = read_embeddings(source, **options)
        assert found.labels == expected.labels
        np.testing.assert_array_equal(found.count, expected.count)
        np.testing.assert_allclose(found.mean, expected.mean, atol=1e-12)
        np.testing.assert_allclose(found.scatter, expected.scatter, atol=1e-10)
    np.testing.assert_allclose(embedding_rows(pieces, unit_length=unit_length), rows)
    sliced = given.slice(40, 30)
    np.testing.assert_allclose(embedding_rows(sliced, unit_length=unit_length), rows[40:70])


def test_files_in_a_folder_and_rows_without_a_label(tmp_path):
    given = table()
    labels = pyarrow.array([None, *LANGUAGES[1:]])
    given = given.set_column(1, "language", labels)
    pyarrow.parquet.write_table(given[:50], tmp_path / "a.parquet")
    pyarrow.parquet.write_table(given[50:], tmp_path / "b.parquet")
    options = {"sensitive_features": ["language"]}
    with refused(ValueError, "missing_labels"):
        read_embeddings(tmp_path, **options)
    with pytest.warns(UserWarning, match="1 of 90"):
        found = read_embeddings(tmp_path, **options, missing_labels="drop")
    assert found.n_rows == 89


def test_what_is_no_table_of_vectors_is_refused():
    def of(values, **options):
        return embedding_rows(pyarrow.table({"embedding": values}), **options)

    with refused(ValueError, "same number", "'embedding'"):
        of([[1.0, 2.0], [3.0]])
    with refused(ValueError, "same number", "none missing"):
        of([[1.0, 2.0], None])
    with refused(ValueError, "none missing"):
        of([[1.0, None], [1.0, 2.0]])
    with refused(ValueError, "no lists", "double"):
        of([1.0, 2.0])
    with refused(ValueError, "length 0"):
        of([[0.0, 0.0], [1.0, 2.0]], unit_length=True)
    with refused(ValueError, "'vector'"):
        read_embeddings(table(), "vector")
    with refused(ValueError, "'embedding 0'", "missing"):
        read_embeddings(pyarrow.table({"embedding": [[np.nan, 1.0], [2.0, 3.0]]}))
