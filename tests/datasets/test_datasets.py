"""The packaged data sets: their bytes, their counts and every option of the loaders."""

import csv
import doctest
import gzip
import hashlib
import importlib
import sys
from collections import Counter
from importlib import resources

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import Bunch

from fairpca.datasets import load_adult, load_credit

from texts import refused

LOADERS = [load_adult, load_credit]
SUBSETS = ["train", "test", "all"]
ENCODINGS = ["codes", "onehot", "numeric"]

ADULT_COLUMNS = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
    "capital-gain capital-loss hours-per-week native-country"
).split()
ADULT_NUMERIC = "age fnlwgt education-num capital-gain capital-loss hours-per-week".split()
CREDIT_CATEGORICAL = ["SEX", "EDUCATION", "MARRIAGE"]


def unpacked(name):
    packed = (resources.files("fairpca.datasets") / "data" / name).read_bytes()
    return gzip.decompress(packed)


def adult_rows(name):
    """The cells of an Adult file, read apart from the library."""
    lines = unpacked(name).decode().splitlines()
    return [line.split(", ") for line in lines if line and not line.startswith("|")]


def credit_rows():
    return list(csv.DictReader(unpacked("UCI_Credit_Card.csv.gz").decode().splitlines()))


# --- The files ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("adult.data.gz", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
        ("adult.test.gz", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
        (
            "UCI_Credit_Card.csv.gz",
            "9e5c04a4331d1e7b7d11b5ce881f550d55c1932292eacfe3734dd4546888ddec",
        ),
    ],
)
def test_packaged_files_are_the_published_ones(name, digest):
    assert hashlib.sha256(unpacked(name)).hexdigest() == digest
    attribution = (resources.files("fairpca.datasets") / "data" / "ATTRIBUTION.md").read_text()
    assert digest in attribution
    assert name in attribution


# --- Counts -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subset", "n", "positives", "sex", "race"),
    [
        (
            "train",
            32561,
            7841,
            {"Male": 21790, "Female": 10771},
            {
                "White": 27816,
                "Black": 3124,
                "Asian-Pac-Islander": 1039,
                "Amer-Indian-Eskimo": 311,
                "Other": 271,
            },
        ),
        (
            "test",
            16281,
            3846,
            {"Male": 10860, "Female": 5421},
            {
                "White": 13946,
                "Black": 1561,
                "Asian-Pac-Islander": 480,
                "Amer-Indian-Eskimo": 159,
                "Other": 135,
            },
        ),
    ],
)
def test_adult_counts(subset, n, positives, sex, race):
    adult = load_adult(subset=subset, sensitive=("sex", "race"))
    assert len(adult.data) == len(adult.target) == len(adult.sensitive_features) == n
    assert adult.target.sum() == positives
    assert Counter(adult.sensitive_features["sex"]) == sex
    assert Counter(adult.sensitive_features["race"]) == race


def test_adult_intersections():
    groups = Counter(map(tuple, load_adult(sensitive=("sex", "race")).sensitive_features.values))
    assert len(groups) == 10
    assert groups["Female", "Black"] == 1555
    assert groups["Male", "White"] == 19174
    assert groups["Female", "Other"] == 109


def test_credit_counts():
    credit = load_credit(sensitive=("sex", "marriage", "education"))
    groups = credit.sensitive_features
    assert len(credit.data) == len(credit.target) == len(groups) == 30000
    assert credit.target.sum() == 6636
    assert Counter(groups["sex"]) == {"female": 18112, "male": 11888}
    assert Counter(groups["marriage"]) == {"married": 13659, "single": 15964, "other": 323 + 54}
    assert Counter(groups["education"]) == {
        "graduate school": 10585,
        "university": 14030,
        "high school": 4917,
        "other": 123 + 280 + 51 + 14,
    }


def test_credit_groups_follow_the_codes():
    credit = load_credit(sensitive=("sex", "marriage", "education"))
    pairs = {
        column: set(zip(credit.data[column], credit.sensitive_features[name], strict=True))
        for column, name in [("SEX", "sex"), ("MARRIAGE", "marriage"), ("EDUCATION", "education")]
    }
    assert pairs["SEX"] == {(1, "male"), (2, "female")}
    assert pairs["MARRIAGE"] == {(0, "other"), (1, "married"), (2, "single"), (3, "other")}
    assert pairs["EDUCATION"] == {
        (1, "graduate school"),
        (2, "university"),
        (3, "high school"),
        *((code, "other") for code in (0, 4, 5, 6)),
    }


# --- Encodings, checked against the raw lines ---------------------------------


def test_adult_codes_stand_for_the_levels_of_the_file():
    rows = adult_rows("adult.data.gz") + adult_rows("adult.test.gz")
    adult = load_adult(subset="all")
    assert adult.feature_names == list(adult.data.columns) == ADULT_COLUMNS
    assert adult.data.shape == (48842, 14)
    for j, name in enumerate(ADULT_COLUMNS):
        cells = [row[j] for row in rows]
        if name not in ADULT_NUMERIC:
            levels = sorted(set(cells))
            cells = [levels.index(cell) for cell in cells]
        np.testing.assert_array_equal(adult.data[name], np.array(cells, dtype=float))
    assert list(adult.target) == [int(row[-1].startswith(">")) for row in rows]
    assert list(adult.sensitive_features) == [row[9] for row in rows]
    assert adult.data["workclass"].min() == 0  # "?", the first level in alphabetical order


def test_adult_onehot_columns_mark_the_levels_of_the_file():
    rows = adult_rows("adult.test.gz")
    adult = load_adult(subset="test", encoding="onehot")
    assert adult.data.shape == (16281, 108)
    assert adult.feature_names == list(adult.data.columns)
    assert adult.feature_names[:3] == ["age", "workclass=?", "workclass=Federal-gov"]
    assert len(set(adult.feature_names)) == 108
    for name in adult.feature_names:
        if "=" in name:
            column, level = name.split("=")
            j = ADULT_COLUMNS.index(column)
            np.testing.assert_array_equal(adult.data[name], [row[j] == level for row in rows])
    # A level of the training part alone has its column all the same.
    assert adult.data["native-country=Holand-Netherlands"].sum() == 0


def test_adult_numeric():
    adult = load_adult(encoding="numeric")
    assert adult.feature_names == list(adult.data.columns) == ADULT_NUMERIC
    assert adult.data.shape == (32561, 6)
    assert adult.data.iloc[0].tolist() == [39, 77516, 13, 2174, 0, 40]


def test_credit_codes_are_the_values_of_the_file():
    rows = credit_rows()
    credit = load_credit()
    expected = [name for name in rows[0] if name not in ("ID", "default.payment.next.month")]
    assert credit.feature_names == list(credit.data.columns) == expected
    assert credit.data.shape == (30000, 23)
    np.testing.assert_array_equal(
        credit.data, np.array([[row[name] for name in expected] for row in rows], dtype=float)
    )
    assert list(credit.target) == [int(row["default.payment.next.month"]) for row in rows]


def test_credit_onehot():
    codes = load_credit().data
    credit = load_credit(encoding="onehot")
    assert credit.data.shape == (30000, 33)
    assert credit.feature_names == list(credit.data.columns)
    assert credit.feature_names[:4] == ["LIMIT_BAL", "SEX=1", "SEX=2", "EDUCATION=0"]
    marked = [name for name in credit.feature_names if "=" in name]
    assert len(marked) == 2 + 7 + 4
    for name in marked:
        column, code = name.split("=")
        np.testing.assert_array_equal(credit.data[name], codes[column] == int(code))


def test_credit_numeric():
    codes = load_credit().data
    credit = load_credit(encoding="numeric")
    assert credit.data.shape == (30000, 20)
    pd.testing.assert_frame_equal(credit.data, codes.drop(columns=CREDIT_CATEGORICAL))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("loader", LOADERS)
def test_columns_do_not_depend_on_the_rows(loader, encoding):
    train, test, both = (loader(subset=subset, encoding=encoding) for subset in SUBSETS)
    assert train.feature_names == test.feature_names == both.feature_names
    assert (both.data.dtypes == np.float64).all()


# --- Rows: subsets -------------------------------------------------------------


def test_adult_all_is_train_then_test():
    train, test, both = (load_adult(subset=subset) for subset in SUBSETS)
    for part in ("data", "target", "sensitive_features"):
        joined = pd.concat([train[part], test[part]], ignore_index=True)
        assert joined.equals(both[part])


def test_credit_split():
    everything = load_credit(as_frame=False)
    parts = [load_credit(subset=subset, as_frame=False) for subset in ("train", "test")]
    assert [len(part.data) for part in parts] == [21000, 9000]
    rates = [part.target.mean() for part in parts]
    np.testing.assert_allclose(rates, everything.target.mean(), atol=1e-4)

    # Disjoint and complete, by the rule itself: no key identifies the rows of the data.
    seen = {0: 0, 1: 0}
    is_test = []
    for label in everything.target:
        is_test.append(seen[label] % 10 in (2, 5, 8))
        seen[label] += 1
    for part, rows in zip(parts, [~np.array(is_test), np.array(is_test)], strict=True):
        for key in ("data", "target", "sensitive_features"):
            np.testing.assert_array_equal(part[key], everything[key][rows])


# --- Sensitive features -------------------------------------------------------


@pytest.mark.parametrize(
    ("loader", "sensitive", "encoding", "hidden"),
    [
        (load_adult, "sex", "codes", ["sex"]),
        (load_adult, ("sex", "race"), "codes", ["sex", "race"]),
        (load_adult, "race", "onehot", ["race"]),
        (load_adult, "sex", "numeric", []),
        (load_credit, "education", "codes", ["EDUCATION"]),
        (load_credit, ("sex", "marriage"), "onehot", ["SEX", "MARRIAGE"]),
        (load_credit, "sex", "numeric", []),
    ],
)
def test_keep_sensitive(loader, sensitive, encoding, hidden):
    kept = loader(sensitive=sensitive, encoding=encoding)
    without = loader(sensitive=sensitive, encoding=encoding, keep_sensitive=False)
    remaining = [name for name in kept.feature_names if name.split("=")[0] not in hidden]
    assert without.feature_names == list(without.data.columns) == remaining
    assert (len(remaining) < len(kept.feature_names)) == bool(hidden)
    assert without.data.equals(kept.data[remaining])
    assert without.sensitive_features.equals(kept.sensitive_features)


@pytest.mark.parametrize(
    ("loader", "names", "target"),
    [(load_adult, ["race", "sex"], "income"), (load_credit, ["education", "sex"], "default")],
)
def test_kinds_of_output(loader, names, target):
    bunch = loader(sensitive=names)
    assert isinstance(bunch, Bunch)
    assert isinstance(bunch.data, pd.DataFrame)
    assert isinstance(bunch.target, pd.Series)
    assert bunch.target.name == target
    assert bunch.target.dtype == np.int64
    assert isinstance(bunch.sensitive_features, pd.DataFrame)
    assert list(bunch.sensitive_features.columns) == names  # in the order asked for
    for one in ("sex", ["sex"]):
        single = loader(sensitive=one).sensitive_features
        assert isinstance(single, pd.Series)
        assert single.name == "sex"
        assert single.equals(bunch.sensitive_features["sex"])
    assert len(bunch.target_names) == 2
    assert "CC BY 4.0" in bunch.DESCR
    assert "https://doi.org/10.24432/" in bunch.DESCR


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    ("loader", "sensitive"),
    [
        (load_adult, "sex"),
        (load_adult, ("sex", "race")),
        (load_credit, "marriage"),
        (load_credit, ("education", "sex")),
    ],
)
def test_arrays_equal_frames(loader, sensitive, encoding):
    frames = loader(sensitive=sensitive, encoding=encoding)
    arrays = loader(sensitive=sensitive, encoding=encoding, as_frame=False)
    for key in ("data", "target", "sensitive_features"):
        assert type(arrays[key]) is np.ndarray
        assert arrays[key].shape == frames[key].shape
        np.testing.assert_array_equal(arrays[key], frames[key].to_numpy())
    assert arrays.data.dtype == np.float64
    assert arrays.target.dtype == np.int64
    assert arrays.sensitive_features.dtype == object
    assert arrays.feature_names == frames.feature_names


# --- Caching, imports and errors ----------------------------------------------


@pytest.mark.parametrize("as_frame", [True, False])
@pytest.mark.parametrize("loader", LOADERS)
def test_results_are_independent_copies(loader, as_frame):
    options = {"subset": "all", "as_frame": as_frame}
    first, reference = loader(**options), loader(**options)
    for key, value in [("data", -7.0), ("target", 5), ("sensitive_features", "nobody")]:
        if as_frame:
            first[key].iloc[:] = value
        else:
            first[key][:] = value
    first.feature_names.clear()
    first.target_names.clear()

    again = loader(**options)
    for key in ("data", "target", "sensitive_features"):
        np.testing.assert_array_equal(again[key], reference[key])
        assert not (np.asarray(first[key]) == np.asarray(again[key])).all()
    assert again.feature_names == reference.feature_names != []
    assert again.target_names == reference.target_names != []


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    ("option", "value", "known"),
    [
        ("subset", "validation", "'train', 'test', 'all'"),
        ("encoding", "ordinal", "'codes', 'onehot', 'numeric'"),
        ("keep_sensitive", "no", "True, False"),
        ("as_frame", "pandas", "True, False"),
        ("sensitive", "age", "'sex', "),
        ("sensitive", ("sex", "age"), "'sex', "),
        ("sensitive", ("sex", "sex"), "without repeats"),
        ("sensitive", (), "'sex', "),
        ("sensitive", None, "'sex', "),
        ("sensitive", [["sex"]], "'sex', "),
    ],
)
def test_unknown_options(loader, option, value, known):
    with refused(ValueError, option, known, repr(value)):
        loader(**{option: value})


def test_unknown_options_of_one_data_set():
    with refused(ValueError, "sensitive", "'sex'", "'race'"):
        load_adult(sensitive="marriage")
    with refused(ValueError, "sensitive", "'marriage'", "'education'"):
        load_credit(sensitive="race")


def test_options_are_keyword_only():
    for loader in LOADERS:
        with pytest.raises(TypeError):
            loader("train")


@pytest.mark.parametrize("loader", LOADERS)
def test_frames_without_pandas(loader, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)  # makes the import fail
    with refused(ImportError, "fairpca[frames]"):
        loader()
    assert loader(as_frame=False).data.dtype == np.float64


@pytest.mark.parametrize("name", ["_adult", "_credit"])
def test_examples(name):
    result = doctest.testmod(importlib.import_module(f"fairpca.datasets.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
