"""Folds by the content of rows: the same for every kind of table and every order."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from fairpca import GroupMoments
from fairpca.folds import MOST_FOLDS, N_FOLDS, in_folds, n_folds, row_folds
from fairpca.groups import Fold, encode_groups, groups_of_parts

from devices import import_torch
from texts import refused

ROWS = np.round(np.random.default_rng(0).normal(size=(500, 7)), 2).astype(np.float32)


def shares(rows):
    """The share of the rows in each fold of a comparison; the finer folds are of equal size too."""
    fine = np.bincount(row_folds(rows), minlength=n_folds(rows.shape[1])) / len(rows)
    assert abs(fine * len(fine) - 1.0).max() < 5.0 * np.sqrt(len(fine) / len(rows))
    return fine.reshape(-1, N_FOLDS).sum(axis=0)


@pytest.mark.parametrize(
    "made",
    [
        np.float64,
        np.asfortranarray,
        scipy.sparse.csr_matrix,
        scipy.sparse.csc_array,
        lambda rows: np.ascontiguousarray(np.repeat(rows, 2, axis=1))[:, ::2],
    ],
)
def test_the_kind_of_table_does_not_matter(made):
    rows = ROWS.astype(np.float64)
    rows[rows < -0.5] = 0.0
    expected = row_folds(rows)
    given = rows.astype(np.float32) if (rows.astype(np.float32) == rows).all() else rows
    assert np.array_equal(row_folds(made(given)), expected)


def test_integers_single_precision_and_the_sign_of_zero_do_not_matter():
    whole = np.random.default_rng(1).integers(-3, 4, size=(300, 4))
    expected = row_folds(whole.astype(np.float64))
    for same in (whole, whole.astype(np.float32), -1.0 * -whole.astype(np.float64)):
        assert np.array_equal(row_folds(same), expected)
    signed = np.where(whole == 0, -0.0, whole)
    assert np.signbit(signed[whole == 0]).all()
    assert np.array_equal(row_folds(signed), expected)


def test_a_device_gives_the_same_folds():
    torch = import_torch()
    chosen = np.arange(3, 500, 7)
    for rows in (ROWS, ROWS.astype(np.float64)):
        there = torch.from_numpy(rows)
        assert np.array_equal(row_folds(there), row_folds(rows))
        assert np.array_equal(row_folds(there, chosen), row_folds(rows)[chosen])


def test_the_fold_goes_with_the_row():
    order = np.random.default_rng(2).permutation(len(ROWS))
    assert np.array_equal(row_folds(ROWS[order]), row_folds(ROWS)[order])
    assert np.array_equal(row_folds(ROWS, order), row_folds(ROWS)[order])
    assert np.array_equal(row_folds(ROWS[100:200]), row_folds(ROWS)[100:200])


@pytest.mark.parametrize(
    "rows",
    [
        np.random.default_rng(3).normal(size=(20_000, 3)),
        np.arange(20_000.0)[:, None],
        1e-8 * np.arange(20_000.0)[:, None],
        1e8 + np.arange(20_000.0)[:, None],
        np.random.default_rng(4).integers(0, 2, size=(20_000, 30)),
        np.random.default_rng(5).integers(0, 10, size=(20_000, 6)) / 10,
        np.random.default_rng(6).random(size=(20_000, 12)).argsort(axis=1),
        np.eye(12)[np.random.default_rng(7).integers(12, size=20_000)]
        + 1e-3 * np.random.default_rng(8).random(size=(20_000, 12)).argsort(axis=1),
    ],
    ids=["normal", "count", "small", "large", "binary", "tenths", "rankings", "quantiles"],
)
def test_folds_are_of_nearly_the_same_size(rows):
    sizes = shares(rows)
    assert sizes.min() > 0.185
    assert sizes.max() < 0.215


def tables(n_tables):
    """Tables of 30 to 3,000 rows: continuous, whole, binary, of mixed scales, sparse."""
    for seed in range(n_tables):
        rng = np.random.default_rng(seed)
        n, d = int(np.exp(rng.uniform(np.log(30), np.log(3000)))), int(rng.integers(2, 30))
        X = rng.normal(size=(n, d)) * np.exp(rng.normal(size=d))
        kind = seed % 5
        if kind == 1:
            X = np.round(5 * X)
        elif kind == 2:
            X = (X > 0).astype(float)
        elif kind == 3:
            X *= 10.0 ** rng.integers(-6, 7, size=d)
        elif kind == 4:
            X[np.abs(X) < 1.5] = 0.0
        yield seed, X


def test_neither_rounding_nor_the_unit_of_the_table_moves_rows():
    for seed, X in tables(60):
        rng, expected = np.random.default_rng(seed), row_folds(X)
        same = [2.0 * X, X * 2.0**-400]
        same += [X * (1.0 + 1e-15 * rng.normal(size=X.shape)) for _ in range(2)]
        for other in same:
            assert np.array_equal(row_folds(other), expected)
        several = np.count_nonzero(X, axis=1) > 1  # others have nothing to be measured against
        for other in (X / 7.0, 2.54 * X, 1e-200 * X, 1e200 * X):
            assert np.array_equal(row_folds(other)[several], expected[several])


def test_rows_with_a_single_value_are_spread_over_all_folds():
    values = np.random.default_rng(5).normal(size=5000)
    for rows in (values[:, None], np.column_stack([values, np.zeros(5000), 1e-16 * values])):
        sizes = shares(rows)
        assert sizes.min() > 0.17
        assert sizes.max() < 0.23
        assert np.array_equal(row_folds(4.0 * rows), row_folds(rows))


def test_what_rounding_leaves_of_zero_is_zero():
    whole = np.random.default_rng(1).integers(0, 5, size=(3000, 6)).astype(np.float64)
    whole[0] += 12.0 - whole.sum(axis=0) % 3000  # means that have no exact difference
    first = (whole - whole.mean(axis=0)) / whole.std(axis=0)
    means = whole.sum(axis=0) / len(whole) * (1.0 + 4e-16)
    second = (whole - means) * (1.0 / whole.std(axis=0))
    assert not np.array_equal(first, second)
    assert np.array_equal(row_folds(first), row_folds(second))
    first = first[np.abs(first).max(axis=1) > 0.5]
    zero = np.where(np.abs(first) < 0.5, 0.0, first)
    tiny = np.where(np.abs(first) < 0.5, 1e-16 * first, first)
    assert np.array_equal(row_folds(zero), row_folds(tiny))


def test_values_that_are_far_from_zero_or_small_beside_others_count():
    rng = np.random.default_rng(7)
    for rows in (
        2020.0 + rng.normal(size=(5000, 3)),
        np.column_stack([np.full(5000, 1e8), rng.normal(size=(5000, 2))]),
    ):
        sizes = shares(rows)
        assert sizes.min() > 0.17
        assert sizes.max() < 0.23


def test_few_columns_have_finer_folds_which_make_up_the_others():
    assert [n_folds(d) for d in (1, 120, 121, 5000)] == [10, 10, 5, 5]
    assert all(n_folds(d) % N_FOLDS == 0 for d in range(1, 200))
    rows = np.random.default_rng(8).normal(size=(400, 40))
    wide = np.hstack([rows, np.zeros((400, 100))])  # zeros add nothing to a row's hash
    assert np.array_equal(row_folds(rows) % N_FOLDS, row_folds(wide))
    few = np.hstack([rows[:, :5], np.zeros((400, 200))])
    assert np.array_equal(row_folds(rows[:, :5]) % N_FOLDS, row_folds(few))


def test_columns_are_told_apart():
    # One-hot rows have the same values in different columns.
    assert len(set(row_folds(np.eye(60)).tolist())) == n_folds(60)


def test_parts_are_labelled_by_group_and_fold():
    groups = encode_groups(pd.Series(["a", "b"] * 250, name="sex"), 500)
    parts = in_folds(groups, ROWS)
    assert parts.names == ("sex", "fold")
    folds = range(MOST_FOLDS)
    assert parts.labels == tuple((label, Fold(fold)) for label in "ab" for fold in folds)
    folds = row_folds(ROWS)
    assert [parts.labels[code] for code in parts.codes] == [
        (label, fold) for label, fold in zip(["a", "b"] * 250, folds, strict=True)
    ]
    few = encode_groups(np.repeat(["a", "b"], [410, 90]), 500)
    some = in_folds(few, ROWS[:, :2], needed=True)  # 200 rows for each column are enough
    there = np.unique(row_folds(ROWS[410:, :2])).tolist()
    assert some.labels == (("a", Fold(-1)), *(("b", Fold(fold)) for fold in there))
    weights = np.repeat([1e-9, 1.0], [400, 100])
    assert in_folds(few, ROWS[:, :2], weights, needed=True).labels[1] == ("a", Fold(1))
    assert in_folds(groups, ROWS[:, :1], needed=True) is groups
    labels, group_of, fold_of = groups_of_parts(some.labels)
    assert labels == ("a", "b")
    assert group_of.tolist() == [0] + [1] * len(there)
    assert fold_of.tolist() == [-1, *there]
    assert groups_of_parts([("f", "old", Fold(1))])[0] == (("f", "old"),)


def assert_same(first, second):
    assert first.labels == second.labels
    assert first.group_names == second.group_names
    assert np.array_equal(first.count, second.count)
    for name in ("weight", "mean", "scatter", "effective_count"):
        np.testing.assert_allclose(
            getattr(first, name), getattr(second, name), rtol=1e-12, atol=1e-12
        )


def test_moments_by_fold_are_those_of_the_rows_and_add_up(tmp_path):
    # Enough rows for each group to have five in each fold.
    rows = np.random.default_rng(4).normal(size=(2000, 7))
    people = pd.DataFrame({"sex": ["f", "m"] * 1000, "age": ["old", "old", "young", "young"] * 500})
    weights = np.random.default_rng(6).integers(0, 4, 2000)
    for weight in (None, weights):
        choices = {"sample_weight": weight}
        moments = GroupMoments.from_rows(rows, people, folds=True, **choices)
        assert moments.has_folds
        plain = GroupMoments.from_rows(rows, people, **choices)
        assert_same(moments.without_folds(), plain)
        assert_same(plain.without_folds(), plain)
        fold, sex = row_folds(rows), people["sex"].to_numpy()
        here = (fold == 2) & (sex == "f") & (people["age"].to_numpy() == "old")
        place = moments.labels.index(("f", "old", Fold(2)))
        alone = GroupMoments.from_rows(
            rows[here], sample_weight=None if weight is None else weight[here]
        )
        np.testing.assert_allclose(moments.scatter[place], alone.scatter[0], atol=1e-10)
        halves = [
            GroupMoments.from_rows(
                rows[i::2],
                people[i::2],
                folds=True,
                sample_weight=None if weight is None else weight[i::2],
            )
            for i in range(2)
        ]
        assert_same(GroupMoments.merge(halves), moments)
        moments.save(tmp_path / "folds.moments")
        loaded = GroupMoments.load(tmp_path / "folds.moments")
        assert_same(loaded, moments)
        assert isinstance(loaded.labels[0][-1], Fold)
        assert_same(GroupMoments.from_bytes(moments.to_bytes()), moments)


def test_effective_rows():
    weights = np.array([1.0, 1.0, 2.0, 4.0, 4.0, 4.0])
    moments = GroupMoments.from_rows(np.eye(6), list("aaabbb"), sample_weight=weights)
    np.testing.assert_allclose(moments.effective_count, [16 / 6, 3.0])
    assert GroupMoments.from_rows(np.eye(6), list("aaabbb")).effective_count.tolist() == [3.0, 3.0]
    both = moments + GroupMoments.from_rows(np.eye(6), list("aaabbb"))
    np.testing.assert_allclose(both.effective_count, [49 / 9, 15.0**2 / 51])
    together = GroupMoments.from_rows(
        np.tile(np.eye(6), (2, 1)), list("aaabbb") * 2, sample_weight=np.append(weights, np.ones(6))
    )
    np.testing.assert_allclose(both.effective_count, together.effective_count)


def test_moments_with_folds_and_without_are_not_added():
    X, labels = np.random.default_rng(0).normal(size=(60, 4)), np.repeat(["a", "b"], 30)
    with_folds, without = (GroupMoments.from_rows(X, labels, folds=f) for f in (True, False))
    named = pd.DataFrame({"clinic": labels})
    of_named = [GroupMoments.from_rows(X, named, folds=f) for f in (True, False)]
    for parts in ((with_folds, without), (without, with_folds), of_named):
        with refused(ValueError, "folds"):
            GroupMoments.merge(parts)
    assert (with_folds.without_folds() + without).count.tolist() == [60, 60]
