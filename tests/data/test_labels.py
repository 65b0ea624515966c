"""Labels: categories, groups that overlap, numbers that are no groups, texts."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairpca.groups import (
    ALL,
    encode_groups,
    grouping_of,
    n_partitions,
    overlapping,
)
from fairpca.text import distinct_texts, label_text

from texts import refused

ORDER = ["low", "middle", "high"]
WORDS = ["high", "low", "high", "middle", "low"]
PAIRS = (("f", "b"), ("f", "w"), ("m", "w"))


def categories(words):
    return pd.Categorical(words, ORDER, ordered=True)


# --- Categories ---------------------------------------------------------------


@pytest.mark.parametrize(
    "convert",
    [
        categories,
        lambda words: pd.Series(categories(words), name="level"),
        lambda words: pd.DataFrame({"level": categories(words)}),
        lambda words: {"level": categories(words)},
        lambda words: pl.Series("level", words, dtype=pl.Enum(ORDER)),
        lambda words: pl.DataFrame({"level": pl.Series(words, dtype=pl.Enum(ORDER))}),
        lambda words: pa.Table.from_pandas(pd.DataFrame({"level": categories(words)})),
        lambda words: pa.Array.from_pandas(categories(words)),
    ],
    ids="Categorical,Series,frame,dict,Enum,polars,arrow table,arrow array".split(","),
)
def test_categories_are_sorted_as_other_labels_are(convert):
    groups = encode_groups(convert(WORDS), 5)
    assert groups.labels == tuple(sorted(ORDER))
    assert [groups.labels[code] for code in groups.codes] == WORDS


def test_bins_of_pandas_become_texts_in_their_order():
    ages = pd.Series([17.0, 90.0, 30.5, 42.0])
    groups = encode_groups(pd.cut(ages, [0, 30, 60, 100]), 4)
    assert groups.labels == ("(0, 30]", "(30, 60]", "(60, 100]")
    assert [groups.labels[code] for code in groups.codes] == [
        "(0, 30]",
        "(60, 100]",
        "(30, 60]",
        "(30, 60]",
    ]


# --- Numbers that are no groups -----------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        np.arange(51),
        list(range(51)),
        pd.Series(range(51)),
        pl.Series(range(51)),
        np.arange(51.0),
        np.arange(21) / 4,
        pd.Series([*np.arange(21) / 4, np.nan]),
        pa.array(range(51)),
    ],
    ids=["array", "list", "Series", "polars", "float", "fractions", "with NaN", "arrow"],
)
def test_many_numbers_are_refused_with_a_way_to_bin_them(values):
    with refused(ValueError, "different numbers", "too many") as error:
        encode_groups(values, len(values), "group")
    assert "pandas.qcut(column, 4)" in str(error.value)
    assert "astype(str)" in str(error.value)


def test_the_sentence_names_the_column():
    frame = pd.DataFrame({"sex": ["f", "m"] * 40, "age": range(80)})
    with refused(ValueError, "80 different", "'age'"):
        encode_groups(frame, 80)


@pytest.mark.parametrize(
    "values",
    [
        np.arange(50),
        np.arange(20) / 4,
        pd.Series(range(60)).astype(str),
        pd.Series(range(60)).astype("category"),
        [*range(60), "other"],
        np.arange(60).astype("datetime64[D]"),
    ],
    ids=["50", "20 fractions", "text", "category", "mixed", "dates"],
)
def test_codes_and_few_numbers_are_groups(values):
    assert len(encode_groups(values, len(values)).labels) == len(values)


# --- Missing labels that are dropped ------------------------------------------


@pytest.mark.parametrize("weights", [None, np.array([2.0, 3.0, 4.0, 5.0])])
def test_dropped_rows_have_no_weight(weights):
    groups = encode_groups(["b", None, "a", None], 4, "drop")
    assert groups.labels == ("a", "b")
    assert groups.n_dropped == 2
    assert groups.kept.tolist() == [True, False, True, False]
    expected = [1.0, 0.0, 1.0, 0.0] if weights is None else [2.0, 0.0, 4.0, 0.0]
    assert groups.weights(weights).tolist() == expected


def test_a_row_is_dropped_if_any_of_its_features_is_missing():
    groups = encode_groups({"u": ["a", None, "c"], "v": ["x", "y", None]}, 3, "drop")
    assert groups.labels == (("a", "x"),)
    assert groups.n_dropped == 2
    assert encode_groups(["a"], 1, "drop").kept is None


def test_every_label_missing_is_refused_unless_it_is_a_part():
    with refused(ValueError, "missing", "all of the 2"):
        encode_groups([None, None], 2, "drop")
    assert encode_groups([None, None], 2, "drop", may_be_empty=True).labels == ()


# --- Groups that overlap ------------------------------------------------------


def test_marginals_are_made_of_intersections():
    labels, parts = overlapping(PAIRS, "marginals")
    assert labels == (("f", ALL), ("m", ALL), (ALL, "b"), (ALL, "w"))
    assert parts.astype(int).tolist() == [[1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 1]]
    assert n_partitions(labels) == 2
    assert grouping_of(labels) == "marginals"


def test_both_has_the_marginals_before_the_intersections():
    labels, parts = overlapping(PAIRS, "both")
    assert labels == (*overlapping(PAIRS, "marginals")[0], *PAIRS)
    np.testing.assert_array_equal(parts[-3:], np.eye(3, dtype=bool))
    assert n_partitions(labels) == 3
    assert grouping_of(labels) == "both"


def test_three_columns():
    labels, parts = overlapping((("a", 1, "x"), ("a", 2, "y")), "marginals")
    assert labels == (
        ("a", ALL, ALL),
        (ALL, 1, ALL),
        (ALL, 2, ALL),
        (ALL, ALL, "x"),
        (ALL, ALL, "y"),
    )
    assert parts.sum(axis=0).tolist() == [3, 3]


@pytest.mark.parametrize("groups", ["intersections", "marginals", "both"])
def test_of_one_column_all_are_the_same(groups):
    assert overlapping(("a", "b"), groups) == (("a", "b"), None)
    assert grouping_of(("a", "b")) == "intersections"


def test_no_groups_at_all():
    labels, parts = overlapping(PAIRS, None)
    assert labels == ("all",)
    assert parts.tolist() == [[True] * 3]
    assert overlapping(("all",), None) == (("all",), None)


def test_groups_that_overlap_already():
    marginal = overlapping(PAIRS, "marginals")[0]
    assert overlapping(marginal, "marginals") == (marginal, None)
    assert overlapping(marginal, "intersections") == (marginal, None)
    for other in ("both", None):
        with refused(ValueError, "overlap already"):
            overlapping(marginal, other)


def test_a_label_that_stands_for_something_else_is_refused():
    with refused(ValueError, "'(all)'"):
        encode_groups({"u": ["a", "(all)"], "v": ["x", "y"]}, 2)
    assert encode_groups(["a", "(all)"], 2).labels == ("(all)", "a")


# --- Texts --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "names", "expected"),
    [
        ("Female", None, "Female"),
        ("Female", ("sex",), "Female"),
        (("Female", "Black"), None, "Female × Black"),  # noqa: RUF001
        (("Female", "Black"), ("sex", "race"), "sex=Female × race=Black"),  # noqa: RUF001
        (("Female", ALL), ("sex", "race"), "sex=Female"),
        ((ALL, "Black"), None, "column 2=Black"),
    ],
)
def test_texts(label, names, expected):
    assert label_text(label, names) == expected


def test_texts_that_are_the_same_become_distinct():
    assert distinct_texts([1, "1"]) == ["1", "'1'"]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (pd.DataFrame({"sex": ["f"], "race": ["b"]}), ("sex", "race")),
        (pl.DataFrame({"sex": ["f"], "race": ["b"]}), ("sex", "race")),
        (pa.table({"sex": ["f"], "race": ["b"]}), ("sex", "race")),
        ({"sex": ["f"], "race": ["b"]}, ("sex", "race")),
        (pd.Series(["f"], name="sex"), ("sex",)),
        (pl.Series("sex", ["f"]), ("sex",)),
        (pd.Series(["f"]), None),
        (pl.Series(["f"]), None),
        (pd.DataFrame([["f", "b"]]), None),
        (np.array([["f", "b"]]), None),
        (pd.DataFrame([["f", "b"]], columns=["g", "g"]), None),
    ],
    ids="pandas,polars,arrow,dict,Series,pl Series,no name,pl no name,numbers,array,twice".split(
        ","
    ),
)
def test_names_of_columns(given, names):
    assert encode_groups(given, 1).names == names
