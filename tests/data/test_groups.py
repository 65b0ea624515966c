"""encode_groups: every kind of label, intersections, missing values and errors."""

import datetime
import unicodedata
from datetime import date
from enum import Enum

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from fairpca import AtMost, FairnessWarning, GroupMoments, Problem
from fairpca.groups import MISSING, encode_groups, sorted_labels
from fairpca.text import label_text

from devices import import_torch
from texts import refused, warned

pytestmark = [pytest.mark.contract, pytest.mark.untraced]  # labels of pandas, Polars and NumPy

repeatable = settings(max_examples=100, derandomize=True, deadline=None)
WORDS = ["north", "south", "east", "south", "north"]


def encode(*given_labels, **options):
    groups = encode_groups(*given_labels, **options)
    return groups.labels, groups.codes


def decoded(labels, codes):
    return [labels[code] for code in np.asarray(codes).tolist()]


def assert_encodes(given_labels, expected, **options):
    """The codes give the labels back row by row, and each label occurs, once, in order."""
    labels, codes = encode(given_labels, len(expected), **options)
    assert decoded(labels, codes) == expected
    assert len(set(labels)) == len(labels) == len(set(expected))
    present = [label for label in labels if label is not MISSING]
    assert present == sorted(present)
    return labels


# --- One column ---------------------------------------------------------------


@pytest.mark.parametrize(
    "convert",
    [
        list,
        tuple,
        np.array,
        lambda words: np.array(words, dtype=object),
        lambda words: np.array([words]).T[:, 0],
        pd.Series,
        pd.Index,
        pd.Categorical,
        lambda words: pd.Series(words, index=[9, 8, 7, 6, 5]),
        lambda words: pd.Series(words, dtype=object),
        lambda words: pd.Series(words, dtype="string"),
        lambda words: pd.Series(words, dtype="category"),
        lambda words: pd.Series(words, dtype=pd.CategoricalDtype(["west", *set(words), "up"])),
        pl.Series,
        lambda words: pl.Series(words, dtype=pl.Categorical),
    ],
    ids=(
        "list,tuple,str array,object array,strided array,Series,Index,Categorical,odd index,"
        "object Series,string Series,category,unused levels,polars,polars categorical"
    ).split(","),
)
def test_words(convert):
    assert assert_encodes(convert(WORDS), WORDS) == ("east", "north", "south")


@pytest.mark.parametrize(
    "values",
    [
        [0, 1, 1, 0],
        [7, 3, 3, 7],
        [-2, -1, -2, 5],
        [0, 4095, 2, 2],
        [0, 4096, 2, 2],
        [-(10**12), 10**12, 3],
        [-(2**63), 2**63 - 1, 0],
        [2**63 - 1, 2**63 - 3],
        [5],
    ],
)
def test_integers_close_and_far_apart(values):
    for given_labels in (values, np.array(values), pd.Series(values), pl.Series(values)):
        labels = assert_encodes(given_labels, values)
        assert all(type(label) is int for label in labels)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64"])
def test_integers_at_the_ends_of_their_type(dtype):
    info = np.iinfo(dtype)
    for values in (
        [info.min, info.max, info.min],
        [info.min, info.min + 1, info.min + 3],
        [info.max, info.max - 5, info.max],
        [0, 1, 1],
    ):
        assert_encodes(np.array(values, dtype=dtype), values)


@repeatable
@given(st.lists(st.integers(-128, 127), min_size=1, max_size=30))
def test_any_small_integers(values):
    assert_encodes(np.array(values, dtype=np.int8), values)


@repeatable
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30))
def test_any_integers(values):
    assert_encodes(np.array(values, dtype=np.int64), values)


@repeatable
@given(st.lists(st.text(max_size=5), min_size=1, max_size=30))
@pytest.mark.filterwarnings("ignore:Group names differ only:fairpca.FairnessWarning")
def test_any_words(values):
    expected = [unicodedata.normalize("NFC", value) for value in values]
    assert_encodes(values, expected)
    assert_encodes(pd.Series(values, dtype=object), expected)


def test_booleans():
    values = [True, False, True]
    for given_labels in (values, np.array(values), pd.Series(values), pl.Series(values)):
        labels = assert_encodes(given_labels, values)
        assert all(type(label) is bool for label in labels)
    assert assert_encodes(np.array([True, True]), [True, True]) == (True,)


def test_floats_and_dates():
    assert_encodes(np.array([0.5, -1.5, 0.5]), [0.5, -1.5, 0.5])
    days = [datetime.date(2020, 5, 1), datetime.date(1999, 1, 1)]
    for given_labels in (days, np.array(days, dtype="datetime64[D]"), pl.Series(days)):
        assert_encodes(given_labels, days)


@pytest.mark.parametrize(
    "convert", [list, lambda v: np.array(v, dtype=object), lambda v: pd.Series(v, dtype=object)]
)
def test_labels_of_mixed_types(convert):
    values = ["b", 2, "a", 2.5, 10, 2]
    labels, codes = encode(convert(values), len(values))
    assert decoded(labels, codes) == values
    assert sorted(map(str, labels)) == sorted({str(value) for value in values})
    assert labels == encode(convert(values[::-1]), len(values))[0]


def test_input_is_left_alone():
    for values in (np.array([3, 1, 2, 3]), np.array([True, False]), np.array(["b", "a"])):
        values.setflags(write=False)
        before = values.copy()
        _, codes = encode(values, len(values))
        np.bincount(codes)
        np.testing.assert_array_equal(values, before)


def test_no_labels_make_one_group():
    labels, codes = encode(None, 4)
    assert len(labels) == 1
    assert codes.tolist() == [0, 0, 0, 0]


# --- Intersections ------------------------------------------------------------

PAIRS = [("f", 2), ("m", 1), ("f", 1), ("f", 2), ("m", 1)]


@pytest.mark.parametrize(
    "convert",
    [
        list,
        lambda pairs: [list(pair) for pair in pairs],
        lambda pairs: np.array([*pairs, None], dtype=object)[:-1],
        lambda pairs: np.array([list(pair) for pair in pairs], dtype=object),
        lambda pairs: pd.DataFrame(pairs, columns=["sex", "part"]),
        lambda pairs: pd.DataFrame(pairs, columns=["same", "same"]),
        lambda pairs: pd.DataFrame(pairs, columns=["sex", "part"]).astype("category"),
        lambda pairs: pl.DataFrame(pairs, schema=["sex", "part"], orient="row"),
    ],
    ids=("tuples,lists,array of tuples,2-D array,pandas,same column names,categories,polars").split(
        ","
    ),
)
def test_intersections_that_occur(convert):
    labels = assert_encodes(convert(PAIRS), PAIRS)
    assert labels == (("f", 1), ("f", 2), ("m", 1))


def test_one_column_of_two_dimensions_gives_plain_labels():
    for given_labels in (np.array([[2], [1]]), pd.DataFrame({"g": [2, 1]}), [[2], [1]]):
        assert assert_encodes(given_labels, [2, 1]) == (1, 2)


@repeatable
@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.integers(0, 5000), st.integers(0, 2)),
        min_size=1,
        max_size=40,
    )
)
def test_intersections_of_integers(rows):
    assert_encodes(np.array(rows), rows)


def test_intersections_of_strings_stay_strings():
    rows = [("f", "b"), ("m", "a"), ("f", "a")]
    assert_encodes(np.array(rows), rows)


def test_text_of_labels():
    assert label_text(("f", 2)) == "f × 2"  # noqa: RUF001
    assert label_text(3) == "3"


def test_labels_are_sorted_with_the_missing_ones_last():
    assert sorted_labels({"b", MISSING, "a"}) == ("a", "b", MISSING)
    assert sorted_labels([MISSING, 3, 1]) == (1, 3, MISSING)


# --- Missing values -----------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "n_missing", "expected"),
    [
        (["a", None, "b"], 1, ["a", MISSING, "b"]),
        (["a", float("nan"), None, "a"], 2, ["a", MISSING, MISSING, "a"]),
        ([1.0, np.nan, np.nan], 2, [1.0, MISSING, MISSING]),
        (np.array([1.0, np.nan, -float("nan")]), 2, [1.0, MISSING, MISSING]),
        (np.array([None, "b"], dtype=object), 1, [MISSING, "b"]),
        (np.array([pd.NA, pd.NaT, np.nan, None, 7], dtype=object), 4, [MISSING] * 4 + [7]),
        (
            np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
            1,
            [datetime.date(2020, 1, 1), MISSING],
        ),
        (pd.Series(["a", None, np.nan], dtype=object), 2, ["a", MISSING, MISSING]),
        (pd.Series(["a", None], dtype="string"), 1, ["a", MISSING]),
        (pd.Series(["b", None, "a"], dtype="category"), 1, ["b", MISSING, "a"]),
        (pd.Series([3, None, 1], dtype="Int64"), 1, [3, MISSING, 1]),
        (pd.Series([True, None], dtype="boolean"), 1, [True, MISSING]),
        (pd.Series([1.5, np.nan]), 1, [1.5, MISSING]),
        (
            pd.Series(pd.to_datetime(["2020-01-01", None])),
            1,
            [pd.Timestamp("2020-01-01"), MISSING],
        ),
        (pl.Series(["a", None]), 1, ["a", MISSING]),
        (pl.Series([2, None, 1]), 1, [2, MISSING, 1]),
        (pl.Series([True, None]), 1, [True, MISSING]),
        (pl.Series(["a", None], dtype=pl.Categorical), 1, ["a", MISSING]),
        (pd.DataFrame({"g": ["a", None]}), 1, ["a", MISSING]),
        (pd.Series([None, None], dtype=object), 2, [MISSING, MISSING]),
    ],
)
def test_missing_values_of_every_kind(column, n_missing, expected):
    n = len(expected)
    with refused(ValueError, f"{n_missing} missing", f"{n} rows", "drop", "missing_labels='group'"):
        encode(column, n)
    labels = assert_encodes(column, expected, missing_labels="group")
    assert labels[-1] == "(missing)"


@pytest.mark.parametrize(
    "convert",
    [
        list,
        lambda v: np.array(v, dtype=object),
        lambda v: pd.Series(v, dtype=object),
        pl.Series,
    ],
    ids=["list", "array", "pandas", "polars"],
)
def test_a_label_that_reads_like_the_missing_group_hides_no_missing_value(convert):
    for values in (["(missing)", None, "a"], ["a", None, "(missing)"], [None, "(missing)", "a"]):
        column = convert(values * 3)
        with refused(ValueError, "3 missing", "9 rows"):
            encode(column, 9)
        labels, codes = encode(column, 9, "group")
        assert len(labels) == len(np.unique(codes)) == codes.max() + 1


def test_missing_parts_of_intersections():
    frame = pd.DataFrame({"sex": ["f", None, "m", None], "part": [1.0, 2.0, np.nan, np.nan]})
    with refused(ValueError, "3 missing", "4 rows"):
        encode(frame, 4)
    polars = pl.DataFrame({"sex": ["f", None, "m", None], "part": [1.0, 2.0, None, None]})
    for given_labels in (frame, polars, frame.to_numpy(dtype=object)):
        labels, codes = encode(given_labels, 4, "group")
        assert decoded(labels, codes) == [
            ("f", 1.0),
            (MISSING, 2.0),
            ("m", MISSING),
            (MISSING, MISSING),
        ]


def test_masked_values_are_missing():
    for values in ([1, 2, 3], [1.0, 2.0, 3.0], ["a", "b", "c"]):
        column = np.ma.array(values, mask=[False, True, False])
        with refused(ValueError, "1 missing", "3 rows"):
            encode(column, 3)


# --- Errors -------------------------------------------------------------------


@pytest.mark.parametrize("labels", [["a"] * 4, ["a"] * 6, [], [["a", "b"]] * 4])
def test_wrong_length(labels):
    with refused(ValueError, "inconsistent numbers", "[5, " if labels else "[5"):
        encode(labels, 5)


@pytest.mark.parametrize("labels", [np.zeros((5, 1, 1)), np.array("a"), np.zeros((5, 0))])
def test_wrong_dimensions(labels):
    with refused(ValueError, "dimensions"):
        encode(labels, 5)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("abcde", "labels themselves"),
        (iter("abcde"), "labels themselves"),
        ([["a"], ["b", "c"], ["d"], ["e"], ["f"]], "same number labels"),
        (np.array([["a"], {}, 1, 2, 3], dtype=object), "plain labels"),
        (pd.Series([*"aaaa", np.array(["a", "b"])], dtype=object), "plain labels"),
        (pd.Series([*"aaaa", np.array(["a"])], dtype=object), "plain labels"),
    ],
)
def test_what_is_no_list_of_labels(labels, words):
    with refused((ValueError, TypeError), *words.split()):
        encode(labels, 5)


def test_a_dictionary_of_columns():
    labels, codes = encode({"sex": ["f", "m", "f"], "old": [True, True, False]}, 3)
    assert [labels[code] for code in codes] == [("f", True), ("m", True), ("f", False)]


def test_sparse_labels_are_refused():
    with refused(ValueError, "dense"):
        encode(scipy.sparse.csr_matrix(np.eye(5)), 5)


def test_unknown_choice_for_missing_labels():
    with refused(ValueError, "missing_labels", "'error'", "'group'", "'drop'"):
        encode(None, 5, "ignore")


@pytest.mark.parametrize("convert", [np.array, pd.Series, pl.Series, pd.Categorical, list])
def test_more_than_a_thousand_groups(convert):
    labels, _ = encode(convert(list(map(str, range(1000)))), 1000)
    assert len(labels) == 1000
    with refused(ValueError, "1,001 different", "bin"):
        encode(convert(list(map(str, range(1001)))), 1001)


def test_more_than_a_thousand_intersections():
    columns = np.array([(i, j) for i in range(40) for j in range(40)])
    with refused(ValueError, "1,600 different"):
        encode(columns, 1600)


# --- Spellings and types of one label -----------------------------------------

COMPOSED, DECOMPOSED = "Andr\N{LATIN SMALL LETTER E WITH ACUTE}", "Andre\N{COMBINING ACUTE ACCENT}"


@pytest.mark.parametrize(
    "convert",
    [
        list,
        np.array,
        lambda words: np.array(words, dtype=object),
        pd.Series,
        pd.Categorical,
        lambda words: pd.Categorical(words, ["Zoe", DECOMPOSED, COMPOSED], ordered=True),
        pl.Series,
        pa.array,
        lambda words: pa.array(words).dictionary_encode(),
        lambda words: {"name": words},
    ],
)
def test_encodings_of_an_accent_are_one_group(convert):
    words = [COMPOSED, DECOMPOSED, "Zoe", DECOMPOSED]
    labels, codes = encode(convert(words), 4)
    assert [labels[code] for code in codes] == [COMPOSED, COMPOSED, "Zoe", COMPOSED]
    assert set(labels) == {COMPOSED, "Zoe"}


def test_parts_of_a_stream_agree_on_an_accent():
    parts = [GroupMoments.from_rows(np.eye(2), [word, "Zoe"]) for word in (COMPOSED, DECOMPOSED)]
    assert (parts[0] + parts[1]).labels == (COMPOSED, "Zoe")


def test_bounds_are_found_by_either_spelling():
    moments = GroupMoments.from_rows(np.eye(4), [DECOMPOSED, "Zoe"] * 2)
    for spelled in (COMPOSED, DECOMPOSED):
        problem = Problem(moments, 1, AtMost({spelled: 0.25}))
        first, second = problem.goal.upper_bounds
        assert first == 0.25
        assert second > problem.affine.constants[1]  # nothing is larger


MIXED = [[1, "1", 1], [True, "True", False], [1.5, "1.5", 2]]


@pytest.mark.parametrize("labels", MIXED, ids=str)
def test_types_of_one_text_are_refused(labels):
    for column in (labels, np.array(labels, dtype=object), pd.Series(labels, dtype=object)):
        with refused(ValueError, "same name", "astype(str)"):
            encode(column, 3)


def test_types_of_one_text_are_refused_in_parts_of_a_stream():
    parts = [GroupMoments.from_rows(np.eye(2), [label, "a"]) for label in (1, "1")]
    with refused(ValueError, "same name"):
        parts[0] + parts[1]


@pytest.mark.parametrize("labels", [[True, 1, 2], [0.0, False, 2.0], [1, 2, True, None]], ids=str)
def test_truth_values_are_no_numbers(labels):
    for column in (labels, np.array(labels, dtype=object), pd.Series(labels, dtype=object)):
        with refused(ValueError, "convert", "one type"):
            encode(column, len(labels), "group")


def test_truth_values_and_numbers_in_different_columns():
    labels, _ = encode([[1, True], [0, False]], 2)
    assert repr(labels) == "((0, False), (1, True))"


def test_large_whole_numbers_beside_fractions_are_exact():
    labels, codes = encode([2**53, 2**53 + 1, 0.5], 3)
    assert labels == (0.5, 2**53, 2**53 + 1)
    assert codes.tolist() == [1, 2, 0]


def test_names_that_differ_in_case_or_spaces_are_named():
    with warned(FairnessWarning, "'Female'", "'female '") as caught:
        labels, _ = encode(["Female", "female ", "Male"], 3)
    assert len(labels) == 3
    assert len(caught) == 1
    encode({"sex": ["f", "m"], "mark": ["F", "A"]}, 2)  # in different columns: no warning


def test_lists_of_array_scalars_are_lists_of_numbers():
    codes = np.arange(60) % 2
    for labels in ([np.array(code) for code in codes], list(codes.astype(np.int8))):
        assert encode_groups(labels, 60).labels == (0, 1)
    dates = list(np.array(["2020-01-01", "2021-01-01"], "M8[D]")[codes])
    assert encode_groups(dates, 60).labels == (date(2020, 1, 1), date(2021, 1, 1))
    torch = import_torch()
    assert encode_groups([torch.tensor(int(code)) for code in codes], 60).labels == (0, 1)


def test_labels_without_an_order_are_sorted_by_their_text():
    kind = Enum("kind", "b a")
    labels = [list(kind)[code] for code in np.arange(60) % 2]
    assert encode_groups(labels, 60).labels == (kind.a, kind.b)
    labels[-1] = None
    grouped = encode_groups(labels, 60, missing_labels="group")
    assert grouped.labels == (kind.a, kind.b, MISSING)
