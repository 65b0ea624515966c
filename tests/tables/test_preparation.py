"""Preparations against scikit-learn's transformers fitted to the same rows."""

import numpy as np
import pandas as pd
import pyarrow
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairpca.tables.columns import TableError, table_columns
from fairpca.tables.preparation import Preparation, Tally

from texts import refused

pytestmark = pytest.mark.contract


def mixed(n=120, seed=0):
    """Numbers and texts by turns, some of both with gaps, and rare categories."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(1e6, 3.0, n),
            "job": rng.choice(["cook", "smith", "nurse"], n).astype(object),
            "b": rng.exponential(size=n),
            "town": np.where(np.arange(n) % 40 == 0, "rare", rng.choice(["x", "y"], n)),
            "c": rng.integers(0, 5, n).astype(float),
        }
    )
    for name in ("b", "job"):
        frame.loc[rng.choice(n, 9, replace=False), name] = None
    return frame


@pytest.mark.parametrize("standardize", ["numbers", "all"])
def test_columns_by_turns_come_out_in_the_order_of_the_table(standardize):
    frame, new = mixed(), mixed(seed=1)
    preparation = Preparation.learn(frame, impute=True, min_rows=5, standardize=standardize)

    def by_hand(table):
        columns = []
        for name in table:
            if name in "abc":
                imputer = SimpleImputer().fit(frame[[name]])
                columns.append(imputer.transform(table[[name]]))
                continue
            known = frame[name].fillna(frame[name].mode()[0])
            texts = table[name].fillna(frame[name].mode()[0])
            # The pool stands behind the others, of which none comes after "z" here.
            known, texts = (t.where(t != "rare", "zz") for t in (known, texts))
            encoder = OneHotEncoder(sparse_output=False)
            columns.append(encoder.fit(known.to_frame()).transform(texts.to_frame()))
        return np.column_stack(columns)

    scaler = StandardScaler().fit(by_hand(frame))
    if standardize == "numbers":  # 0/1 columns stay as they are
        scaler.mean_[[1, 2, 3, 5, 6, 7]], scaler.scale_[[1, 2, 3, 5, 6, 7]] = 0.0, 1.0
    for table in (frame, new):
        expected = scaler.transform(by_hand(table))
        np.testing.assert_allclose(preparation.apply(table), expected, rtol=1e-9, atol=1e-9)
    made = {"a": "a", "job": "job=cook", "b": "b", "town": "town=x", "c": "c"}
    places = [preparation.feature_names.index(name) for name in made.values()]
    assert places == sorted(places)


def test_what_a_model_keeps_of_rare_categories_is_their_pool():
    preparation = Preparation.learn(mixed(), impute=True, min_rows=5)
    encoders = preparation.transformer[0].named_transformers_
    known = [
        text
        for part in encoders.values()
        if hasattr(part, "named_steps")
        for step in part.named_steps.values()
        for texts in getattr(step, "categories_", ())
        for text in texts
    ]
    assert sorted(known) == ["cook", "nurse", "other (rare)", "smith", "x", "y"]


def test_missing_and_unknown_values_are_counted_or_refused():
    frame = mixed().drop(columns=["b"]).dropna()
    preparation = Preparation.learn(frame, min_rows=1)
    odd = frame.assign(a=np.inf, job="poet")
    with refused(TableError, "'job'", "fit", "'poet'"):
        preparation.apply(odd)
    tally = Tally()
    rows = preparation.apply(odd, tally, "ignore")
    assert tally == {("missing", "a"): len(odd), ("unknown", "job"): len(odd)}
    jobs = [i for i, name in enumerate(preparation.feature_names) if name.startswith("job=")]
    encoded = rows[:, jobs] * preparation.scales[jobs] + preparation.means[jobs]
    np.testing.assert_allclose(encoded, 0.0, atol=1e-12)


class Counted(dict):
    """A table that counts how often it is asked for the names of its columns."""

    asked = 0

    @property
    def columns(self):
        self.asked += 1
        return list(self)


@pytest.mark.parametrize("n_columns", [3, 300])
def test_names_are_asked_for_once_however_many_columns_there_are(n_columns):
    """Each time takes as long as there are columns: once for each would be quadratic."""
    rng = np.random.default_rng(0)
    table = Counted({f"x{j}": rng.normal(size=20) for j in range(n_columns)})
    preparation = Preparation.learn(table)
    assert table.asked == 2  # what there is, and its values
    preparation.apply(table)
    assert table.asked == 3


def test_columns_of_every_kind_of_table_are_found():
    frame = mixed().dropna()
    arrow = pyarrow.Table.from_pandas(frame, preserve_index=False)
    tables = [frame, frame.to_dict("list"), arrow, arrow.combine_chunks().to_batches()[0]]
    for table in tables:
        found = table_columns(table)
        assert [*found] == [*frame]
        np.testing.assert_array_equal(np.asarray(found["c"]), frame["c"])
    with refused(ValueError, "same name", "'c'"):
        table_columns(arrow.append_column("c", arrow.column("a")))
