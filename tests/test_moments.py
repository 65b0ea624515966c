"""GroupMoments: every kind of input, weights, sums of parts, precision and memory."""

import pickle
import tracemalloc
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from fairpca import FairnessWarning, GroupMoments, Problem
from fairpca.moments import sums

from texts import refused, warned

repeatable = settings(max_examples=60, derandomize=True, deadline=None)


def rows_and_groups(n=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.arange(1, d + 1) + rng.normal(size=d)
    return X, rng.choice(["a", "b", "c"], size=n)


def assert_moments_of(moments, X, groups, weights=None, rtol=1e-12):
    """Compare with numpy's average and cov on the raw rows of each group."""
    X, groups = np.asarray(X, dtype=np.float64), np.asarray(groups)
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    there = sorted({g for g, w in zip(groups.tolist(), weights, strict=True) if w > 0})
    assert list(moments.labels) == there
    for i, label in enumerate(there):
        rows, w = X[groups == label], weights[groups == label]
        size = np.sqrt(w @ rows**2)
        assert moments.count[i] == np.count_nonzero(w)
        np.testing.assert_allclose(moments.weight[i], w.sum(), rtol=rtol)
        np.testing.assert_allclose(
            moments.mean[i], np.average(rows, axis=0, weights=w), rtol=rtol, atol=1e-13
        )
        scatter = np.atleast_2d(np.cov(rows.T, aweights=w, ddof=0)) * w.sum()
        assert (np.abs(moments.scatter[i] - scatter) <= rtol * np.outer(size, size)).all()


def assert_same(left, right, rtol=1e-12):
    assert left.labels == right.labels
    np.testing.assert_array_equal(left.count, right.count)
    np.testing.assert_allclose(left.weight, right.weight, rtol=rtol)
    for i in range(len(left.labels)):
        second = np.diag(right.scatter[i]) / right.weight[i] + right.mean[i] ** 2
        size = np.sqrt(second)  # root mean square of each column
        assert (np.abs(left.mean[i] - right.mean[i]) <= rtol * size).all()
        off = np.abs(left.scatter[i] - right.scatter[i])
        assert (off <= rtol * right.weight[i] * np.outer(size, size)).all()


# --- Kinds of input -----------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_float_arrays_in_both_orders(dtype, order):
    X, groups = rows_and_groups()
    X = np.asarray(X, dtype=dtype, order=order)
    moments = GroupMoments.from_rows(X, groups)
    assert moments.scatter.dtype == moments.mean.dtype == np.float64
    assert_moments_of(moments, X, groups)


def test_float32_rows_are_summed_in_double_precision():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(20_000, 2)) + 1000.0).astype(np.float32)
    for groups in (["a"] * 20_000, ["a", "b"] * 10_000):
        assert_moments_of(GroupMoments.from_rows(X, groups), X, groups)


@pytest.mark.parametrize(
    "cut",
    [
        lambda X: X[::2],
        lambda X: X[::-1],
        lambda X: X[:, ::2],
        lambda X: X[5:50:3, 1:],
        lambda X: X.T[:, :4],
    ],
    ids=["every second row", "backwards", "every second column", "both", "transposed"],
)
def test_slices_that_are_not_contiguous(cut):
    X, groups = rows_and_groups()
    part = cut(X)
    labels = groups[: len(part)]
    assert_moments_of(GroupMoments.from_rows(part, labels), part.copy(), labels)


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.tolist(),
        lambda X: X,
        lambda X: X.astype(np.int8),
        lambda X: X.astype(object),
        lambda X: pd.DataFrame(X),
        lambda X: pd.DataFrame(X.astype(float), columns=list("wxyz")),
        lambda X: pd.DataFrame(
            {
                "i8": X[:, 0].astype(np.int8),
                "f4": X[:, 1].astype(np.float32),
                "f8": X[:, 2].astype(float),
                "object": pd.Series(X[:, 3].tolist(), dtype=object),
            }
        ),
        lambda X: pd.DataFrame(X).astype("Int64"),
        lambda X: pd.DataFrame(X).astype({0: "Float32", 1: "Int8", 2: "float64", 3: "Float64"}),
        lambda X: pl.DataFrame(X, schema=list("wxyz"), orient="row"),
        lambda X: pl.DataFrame({"i": X[:, 0], "f": X[:, 1:2].ravel() * 1.0, "g": X[:, 2]}),
        scipy.sparse.csr_matrix,
        scipy.sparse.csc_matrix,
        scipy.sparse.coo_matrix,
        scipy.sparse.csr_array,
        lambda X: scipy.sparse.csr_matrix(X, dtype=np.float32),
    ],
    ids=(
        "list,integers,int8,object,pandas int,pandas float,pandas mixed,pandas Int64,"
        "pandas mixed nullable,polars,polars mixed,csr,csc,coo,csr array,csr float32"
    ).split(","),
)
def test_other_kinds_of_input(convert):
    X, groups = rows_and_groups()
    X = X.round().astype(np.int64)
    given_rows = convert(X)
    expected = X[:, : np.shape(given_rows)[1]]
    assert_moments_of(GroupMoments.from_rows(given_rows, groups), expected, groups)


def test_booleans_are_numbers():
    X, groups = rows_and_groups()
    for flags in (X > 0, pd.DataFrame(X > 0), pl.DataFrame({"p": X[:, 0] > 0, "q": X[:, 1] > 0})):
        expected = (X > 0)[:, : flags.shape[1]]
        assert_moments_of(GroupMoments.from_rows(flags, groups), expected, groups)


def test_without_groups_all_rows_are_one():
    X, _ = rows_and_groups()
    moments = GroupMoments.from_rows(X)
    assert len(moments.labels) == 1
    assert_moments_of(moments, X, [moments.labels[0]] * len(X))


def test_totals_and_second_moments_match_raw_rows():
    X, groups = rows_and_groups()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    moments = GroupMoments.from_rows(X, groups, sample_weight=weights)
    mean = np.average(X, axis=0, weights=weights)
    np.testing.assert_allclose(moments.total_mean, mean, rtol=1e-12)
    np.testing.assert_allclose(
        moments.total_covariance(), np.cov(X.T, aweights=weights, ddof=0), rtol=1e-10, atol=1e-12
    )
    for centering in ("global", "group"):
        matrices = Problem(moments, 1, centering=centering).matrices
        for matrix, label in zip(matrices, "abc", strict=True):
            rows, w = X[groups == label], weights[groups == label]
            center = mean if centering == "global" else np.average(rows, axis=0, weights=w)
            centred = np.sqrt(w)[:, None] * (rows - center)
            np.testing.assert_allclose(matrix, centred.T @ centred / w.sum(), atol=1e-12)


@pytest.mark.parametrize("sample_weight", [False, True])
def test_inputs_are_left_alone_even_when_read_only(sample_weight):
    X, groups = rows_and_groups()
    weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    for order in "CF":
        for labels in (groups, ["a"] * len(X)):
            rows = np.array(X, order=order)
            sparse = scipy.sparse.csr_matrix(X)
            rows.setflags(write=False)
            weights.setflags(write=False)
            before = weights.copy()
            for data in (rows, sparse):
                GroupMoments.from_rows(
                    data, labels, sample_weight=weights if sample_weight else None
                )
            np.testing.assert_array_equal(rows, X)
            np.testing.assert_array_equal(sparse.toarray(), X)
            np.testing.assert_array_equal(weights, before)


def test_adding_leaves_both_parts_alone():
    X, groups = rows_and_groups()
    left, right = (GroupMoments.from_rows(X[s], groups[s]) for s in (slice(20), slice(20, 60)))
    before = [m.scatter.copy() for m in (left, right)] + [left.mean.copy(), right.mean.copy()]
    left + right
    for now, then in zip([left.scatter, right.scatter, left.mean, right.mean], before, strict=True):
        np.testing.assert_array_equal(now, then)


# --- Weights ------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:No row of:fairpca.FairnessWarning")
@repeatable
@given(st.lists(st.integers(0, 4), min_size=30, max_size=30).filter(any))
def test_integer_weights_are_repeated_rows(weights):
    X, groups = rows_and_groups(n=30)
    weighted = GroupMoments.from_rows(X, groups, sample_weight=weights)
    repeated = GroupMoments.from_rows(np.repeat(X, weights, 0), np.repeat(groups, weights))
    assert weighted.labels == repeated.labels
    np.testing.assert_array_equal(weighted.weight, repeated.count)
    np.testing.assert_allclose(weighted.mean, repeated.mean, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(weighted.scatter, repeated.scatter, rtol=1e-11, atol=1e-11)


def test_rows_without_weight_are_left_out_and_so_is_a_group_of_them():
    X, groups = rows_and_groups()
    weights = np.random.default_rng(0).uniform(1.0, 2.0, len(X))
    weights[::3] = 0.0
    weights[groups == "b"] = 0.0
    with warned(FairnessWarning, "'b'", "left out"):
        moments = GroupMoments.from_rows(X, groups, sample_weight=weights)
    assert moments.labels == ("a", "c")
    assert_moments_of(moments, X, groups, weights)
    some = weights > 0
    assert_same(moments, GroupMoments.from_rows(X[some], groups[some], sample_weight=weights[some]))


def test_one_weight_for_all_rows():
    X, groups = rows_and_groups()
    moments = GroupMoments.from_rows(X, groups, sample_weight=2.5)
    assert_moments_of(moments, X, groups, np.full(len(X), 2.5))


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0] * 59, "sample_weight"),
        ([[1.0]] * 60, "1D array"),
        ([1.0] * 59 + [np.nan], "NaN"),
        ([1.0] * 59 + [np.inf], "infinity"),
        ([1.0] * 59 + [-1.0], "Negative values"),
        ([0.0] * 60, "zero every row"),
    ],
)
def test_wrong_weights(weights, words):
    X, groups = rows_and_groups()
    with refused(ValueError, *words.split()):
        GroupMoments.from_rows(X, groups, sample_weight=weights)


# --- Sums of parts ------------------------------------------------------------


@st.composite
def split_rows(draw):
    """Rows with columns of very different size, groups, weights, and three parts."""
    n, d = draw(st.integers(3, 40)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    exponents = draw(st.lists(st.integers(-8, 8), min_size=d, max_size=d))
    shift = draw(st.sampled_from([0.0, 1.0, 10.0]))
    X = (rng.normal(size=(n, d)) + shift) * 10.0 ** np.array(exponents)
    groups = np.array(draw(st.lists(st.sampled_from("abcde"), min_size=n, max_size=n)))
    weights = rng.uniform(0.1, 3.0, n) if draw(st.booleans()) else None
    part = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    return X, groups, weights, part


@repeatable
@given(split_rows())
def test_parts_add_to_the_moments_of_all_rows(split):
    X, groups, weights, part = split

    def moments(some):
        w = None if weights is None else weights[some]
        return GroupMoments.from_rows(X[some], groups[some], sample_weight=w)

    parts = [moments(part == i) for i in range(3) if (part == i).any()]
    total = parts[0]
    for other in parts[1:]:
        total = total + other
    assert_same(total, moments(np.ones(len(X), dtype=bool)))
    if len(parts) > 1:
        assert_same(parts[0] + parts[1], parts[1] + parts[0])
    if len(parts) == 3:
        a, b, c = parts
        assert_same((a + b) + c, a + (b + c))


def test_groups_of_only_one_part_are_kept_in_order():
    X, _ = rows_and_groups(n=6)
    total = GroupMoments.from_rows(X[:3], ["d", "b", "d"]) + GroupMoments.from_rows(
        X[3:], ["a", "c", "c"]
    )
    assert total.labels == ("a", "b", "c", "d")
    assert_moments_of(total, X, list("dbdacc"))


def test_missing_labels_come_last_in_a_sum_also_after_pickling():
    X, _ = rows_and_groups(n=4)
    part = GroupMoments.from_rows(X, ["a", None, "b", "b"], missing_labels="group")
    again = pickle.loads(pickle.dumps(part))
    assert again.labels == part.labels
    assert (part + part).labels == part.labels
    assert (again + again).labels == part.labels
    assert (again + part).labels == (part + again).labels == part.labels


def test_different_columns_cannot_be_added():
    X, groups = rows_and_groups()
    with refused(ValueError, "4 and of 3 columns"):
        GroupMoments.from_rows(X, groups) + GroupMoments.from_rows(X[:, :3], groups)
    with refused(TypeError, "unsupported operand"):
        GroupMoments.from_rows(X, groups) + 1


# --- Precision ----------------------------------------------------------------


def exact_variances(X):
    """Variance of each column of these very doubles, in rational arithmetic."""
    variances = []
    for column in X.T.tolist():
        values = [Fraction(v) for v in column]
        mean = sum(values) / len(values)
        variances.append(sum((v - mean) ** 2 for v in values) / len(values))
    return variances


def relative_errors(computed, exact):
    return [abs(Fraction(float(c)) - e) / e for c, e in zip(computed, exact, strict=True)]


@pytest.mark.parametrize("apart", [0.0, 1e8], ids=["same means", "means differ by 1e8"])
@pytest.mark.parametrize("pieces", [1, 7])
def test_variance_survives_a_large_mean(apart, pieces):
    # Measured: the relative error of each group's variance about its own mean, against exact
    # rational arithmetic on the same doubles. Sums of squares would lose all 16 digits here.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2)) + 1e8
    groups = np.array(["a", "b"] * 300)
    X[groups == "b"] += apart
    total = GroupMoments.from_rows(X[: 600 // pieces], groups[: 600 // pieces])
    for i in range(1, pieces):
        part = slice(i * 600 // pieces, (i + 1) * 600 // pieces)
        total = total + GroupMoments.from_rows(X[part], groups[part])
    for i, label in enumerate("ab"):
        variances = np.diag(total.scatter[i]) / total.weight[i]
        errors = relative_errors(variances, exact_variances(X[groups == label]))
        assert max(errors) <= 1e-8


def test_variance_survives_a_large_mean_over_many_blocks():
    # Measured: as above, against a two-pass computation in extended precision.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400_000, 3)) + 1e8
    groups = rng.integers(0, 2, len(X))
    X[groups == 1] -= 1e8
    moments = GroupMoments.from_rows(X, groups)
    for g in range(2):
        rows = X[groups == g].astype(np.longdouble)
        exact = np.square(rows - rows.mean(axis=0)).mean(axis=0).astype(float)
        np.testing.assert_allclose(np.diag(moments.scatter[g]) / moments.weight[g], exact, 1e-8)


def awkward(kind):
    """Rows, groups and weights whose first, or evenly spaced, rows mislead about the rest."""
    rng = np.random.default_rng(0)
    n = 2000
    X = rng.normal(size=(n, 3))
    groups = rng.choice(["a", "b"], size=n)
    weights = np.ones(n)
    if kind == "sorted by group":
        groups = np.array(["a"] * (n // 2) + ["b"] * (n // 2))
        X[n // 2 :] += 1e8
    elif kind == "rare group far away":
        groups = np.array(["a"] * n)
        groups[[3, 1001, 1733]] = "b"
        X[groups == "b"] += 1e8
    elif kind == "every seventh row far away, without weight":
        X += 1e8
        X[::7] -= 3e8
        weights[::7] = 0.0
    elif kind == "steady drift":
        X += np.linspace(0, 1e8, n)[:, None]
    elif kind == "one column far away":
        X[:, 1] += 1e8
        X[:, 2] *= 1e-8
    elif kind == "one wild row":
        X += 1e6
        X[500] = 1e8
        groups[500] = "c"
    elif kind == "few rows that vary far more":
        groups = np.where(np.arange(n) % 20, "a", "b")
        X[groups == "b"] *= 1e8
    return X, groups, weights


@pytest.mark.parametrize(
    "kind",
    [
        "few rows that vary far more",
        "sorted by group",
        "rare group far away",
        "every seventh row far away, without weight",
        "steady drift",
        "one column far away",
        "one wild row",
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_variance_survives_awkward_rows(kind, weighted):
    # Measured: as above, in rational arithmetic on the rows that count.
    X, groups, weights = awkward(kind)
    if not weighted:
        X, groups, weights = X[weights > 0], groups[weights > 0], None
    moments = GroupMoments.from_rows(X, groups, sample_weight=weights)
    for i, label in enumerate(moments.labels):
        members = groups == label
        if weighted:
            members &= weights > 0
        if members.sum() > 1:
            variances = np.diag(moments.scatter[i]) / moments.weight[i]
            assert max(relative_errors(variances, exact_variances(X[members]))) <= 1e-8
        else:
            np.testing.assert_allclose(moments.scatter[i], 0.0, atol=1e-8)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_column_that_is_constant_in_each_group_costs_no_second_pass(monkeypatch, order):
    # As the sensitive column itself does. Nothing varies there: no rounding is left.
    rng, n_passes = np.random.default_rng(0), []
    X = rng.normal(size=(3000, 4))
    groups = (np.arange(3000) % 3 > 0).astype(int)
    X[:, 2] = np.array([-1.1, 0.7])[groups]
    counted = sums._pass
    monkeypatch.setattr(sums, "_pass", lambda *a: n_passes.append(1) or counted(*a))
    moments = GroupMoments.from_rows(np.asarray(X, order=order), groups)
    assert len(n_passes) == 1
    assert moments.mean[:, 2].tolist() == [-1.1, 0.7]
    assert not moments.scatter[:, 2].any()
    assert not moments.scatter[:, :, 2].any()
    others = [0, 1, 3]
    for group in range(2):
        rows = X[groups == group][:, others]
        expected = np.cov(rows.T, bias=True) * len(rows)
        found = moments.scatter[group][np.ix_(others, others)]
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11 * expected.max())


@pytest.mark.parametrize("varying", [0, 1, 2])
def test_a_column_that_is_constant_in_all_groups_but_one(varying):
    # Far from all others, so that a shift common to all groups costs digits.
    rng = np.random.default_rng(1)
    X, codes = rng.normal(size=(3000, 3)), rng.integers(0, 4, 3000)  # of 3 is no group
    X[:, 1] = np.array([1e7, -1e7, 0.0, 5.0])[codes]
    X[codes == varying, 1] += 1e-3 * rng.normal(size=int((codes == varying).sum()))
    count, _, mean, scatter = sums.group_sums(X, codes, 3, None)
    for group in range(3):
        rows = X[codes == group]
        assert count[group] == len(rows)
        columns = [0, 1, 2] if group == varying else [0, 2]
        exact = exact_variances(rows[:, columns])
        found = np.diag(scatter[group])[columns] / len(rows)
        assert max(relative_errors(found, exact)) <= 1e-10
        if group == varying:
            continue
        assert scatter[group, 1, 1] <= 1e-12 * len(rows)
        assert mean[group, 1] == pytest.approx(rows[0, 1], rel=1e-15)


@pytest.mark.parametrize("d", [3, 400])
def test_groups_without_rows_have_sums_of_zero(d):
    X = np.random.default_rng(0).normal(size=(20, d)) + 1e3
    count, weight, mean, scatter = sums.group_sums(X, np.repeat([0, 2], 10), 3, None)
    assert count.tolist() == weight.tolist() == [10, 0, 10]
    assert not mean[1].any()
    assert not np.asarray(scatter)[1].any()
    np.testing.assert_allclose(mean[2], X[10:].mean(axis=0))


# --- Large tables, which may be shared out to threads --------------------------


@pytest.mark.parametrize(
    "convert",
    [
        np.ascontiguousarray,
        np.asfortranarray,
        lambda X: X.astype(np.float32),
        lambda X: np.asfortranarray(X, dtype=np.float32),
        scipy.sparse.csr_matrix,
        lambda X: X[::-1],
    ],
    ids=["C", "F", "float32", "float32 F", "csr", "backwards"],
)
@pytest.mark.parametrize(("k", "mean"), [(1, 0.0), (3, 1e4)])
def test_large_tables(convert, k, mean):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(140_000, 31)) * np.linspace(1, 2, 31) + mean  # more than 2**22 values
    data = convert(X)
    dense = data.toarray() if scipy.sparse.issparse(data) else data
    groups = rng.integers(0, k, len(X))
    before = dense[::1000].copy()
    assert_moments_of(GroupMoments.from_rows(data, groups), dense, groups, rtol=1e-11)
    weights = rng.integers(0, 3, len(X))
    weighted = GroupMoments.from_rows(data, groups, sample_weight=weights)
    assert_moments_of(weighted, dense, groups, weights, rtol=1e-11)
    after = data.toarray() if scipy.sparse.issparse(data) else data
    np.testing.assert_array_equal(after[::1000], before)


def test_large_tables_give_the_same_every_time():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(140_000, 31)), rng.integers(0, 3, 140_000)
    first, second = (GroupMoments.from_rows(X, groups) for _ in range(2))
    np.testing.assert_array_equal(first.scatter, second.scatter)
    np.testing.assert_array_equal(first.mean, second.mean)


# --- Memory -------------------------------------------------------------------


def extra_memory(X, groups):
    """Most bytes, beyond its inputs, that are held while moments are taken."""
    GroupMoments.from_rows(X[:100], groups[:100])  # what is imported on first use
    tracemalloc.start()
    try:
        GroupMoments.from_rows(X, groups)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_rows_are_read_in_blocks():
    rng = np.random.default_rng(0)
    X = rng.random((60_000, 173))  # 83 MB
    assert extra_memory(X, rng.integers(0, 2, len(X))) <= 40e6


@pytest.mark.parametrize("order", ["C", "F"])
def test_large_data_are_read_in_blocks(order):
    rng = np.random.default_rng(0)
    shape = (325_834, 173)
    X = rng.random(shape) if order == "C" else rng.random(shape[::-1]).T  # 451 MB
    groups = np.array(["men", "women"])[rng.integers(0, 2, len(X))]
    assert extra_memory(X, groups) <= 100e6
    assert extra_memory(X, groups.astype(object)) <= 100e6


# --- Values that cannot be used -----------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("value", "words"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_values_that_are_not_finite(dtype, sparse, value, words):
    X, groups = rows_and_groups()
    X = X.astype(dtype)
    X[17, 2] = value
    with refused(ValueError, *words.split()):
        GroupMoments.from_rows(scipy.sparse.csr_matrix(X) if sparse else X, groups)


def test_missing_values_of_data_frames():
    X, groups = rows_and_groups()
    frame = pd.DataFrame(X).astype("Float64")
    frame.iloc[3, 1] = pd.NA
    columns = [*X[:, 0].tolist()[:-1], None]
    for data in (frame, pl.DataFrame({"x": columns, "y": X[:, 1]})):
        with refused(ValueError, "NaN"):
            GroupMoments.from_rows(data, groups)


@pytest.mark.parametrize("value", [1e200, -1e300])
def test_values_too_large_to_be_squared(value):
    X, groups = rows_and_groups()
    X[17, 2] = value
    with refused(ValueError, "squared"):
        GroupMoments.from_rows(X, groups)


def test_opposite_infinities_are_called_infinity():
    X, groups = rows_and_groups()
    X[3:5, 0] = np.inf, -np.inf
    with refused(ValueError, "infinity"):
        GroupMoments.from_rows(X, groups)


def test_columns_of_other_names_do_not_add():
    frame = pd.DataFrame({"u": [1.0, 2.0], "v": [3.0, 5.0]})
    first, second = (GroupMoments.from_rows(f) for f in (frame, frame[["v", "u"]]))
    with refused(ValueError, "named columns"):
        first + second
    nameless = GroupMoments.from_rows(frame.to_numpy())
    assert (first + nameless).feature_names == (nameless + first).feature_names == ("u", "v")


# --- Groups that overlap, names and dropped rows ------------------------------


def people(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [3, 2, 1] + [1e3, 0, -50]
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "race": rng.choice(["b", "n", "w"], n)})
    return X, frame, rng.choice([0.0, 0.5, 2.0], n)


@repeatable
@given(st.integers(0, 10_000), st.integers(2, 4), st.booleans(), st.sampled_from([0.0, 1e4]))
def test_marginals_are_those_of_the_rows(seed, n_columns, weighted, mean):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3)) + mean
    columns = rng.integers(0, 3, size=(40, n_columns))
    weights = rng.choice([0.5, 1.0, 3.0], 40) if weighted else None
    rows = GroupMoments.from_rows(X, columns, sample_weight=weights)
    for groups, n_partitions in (("marginals", n_columns), ("both", n_columns + 1)):
        moments = rows.overlapping(groups)
        assert moments.n_partitions == n_partitions
        assert moments.n_rows == 40
        assert len(set(moments.labels)) == len(moments.labels)
        for i, label in enumerate(moments.labels):
            fits = np.ones(40, dtype=bool)
            for part, column in zip(label, columns.T, strict=True):
                fits &= part == "(all)" or column == part
            w = np.ones(fits.sum()) if weights is None else weights[fits]
            direct = GroupMoments.from_rows(X[fits], sample_weight=w)
            assert moments.count[i] == fits.sum()
            size = np.sqrt(w @ X[fits] ** 2)
            np.testing.assert_allclose(moments.weight[i], w.sum(), rtol=1e-12)
            np.testing.assert_allclose(moments.mean[i], direct.mean[0], rtol=1e-12, atol=1e-12)
            off = np.abs(moments.scatter[i] - direct.scatter[0])
            assert (off <= 1e-12 * np.outer(size, size)).all()
        np.testing.assert_allclose(moments.total_mean, rows.total_mean, rtol=1e-12, atol=1e-12)
        total = np.average(X, axis=0, weights=weights)
        expected = np.cov(X.T, aweights=weights, ddof=0)
        np.testing.assert_allclose(moments.total_mean, total, rtol=1e-12, atol=1e-12)
        scale = 1e-12 * np.square(X).max()
        np.testing.assert_allclose(moments.total_covariance(), expected, rtol=1e-11, atol=scale)
        np.testing.assert_allclose(
            moments.standardized().total_covariance(),
            rows.standardized().total_covariance(),
            atol=1e-9,
        )


@pytest.mark.parametrize("groups", ["intersections", "marginals", "both"])
def test_of_one_column_all_groups_are_the_same(groups):
    X, frame, _ = people()
    moments = GroupMoments.from_rows(X, frame["sex"])
    assert moments.overlapping(groups) is moments
    assert moments.n_partitions == 1


def test_all_rows_in_one_group():
    X, frame, weights = people()
    one = GroupMoments.from_rows(X, frame, sample_weight=weights).overlapping(None)
    assert_same(one, GroupMoments.from_rows(X, sample_weight=weights))
    plain = GroupMoments.from_rows(X)
    assert plain.overlapping(None) is plain


def test_overlapping_groups_of_parts_add_but_only_with_their_like():
    X, frame, _ = people()
    parts = [GroupMoments.from_rows(X[i::3], frame[i::3]) for i in range(3)]
    whole = GroupMoments.merge(parts).overlapping("both")
    assert_same(GroupMoments.merge([part.overlapping("both") for part in parts]), whole)
    assert whole.group_names == ("sex", "race")
    for other in ("intersections", "marginals"):
        with refused(ValueError, "overlap", "cannot be added"):
            whole + parts[0].overlapping(other)


def test_names_and_texts_of_groups_survive_sums_files_and_pickles(tmp_path):
    X, frame, _ = people()
    moments = GroupMoments.merge(GroupMoments.from_rows(X[i::2], frame[i::2]) for i in (0, 1))
    moments.save(tmp_path / "people.moments")
    for same in (
        moments,
        GroupMoments.load(tmp_path / "people.moments"),
        GroupMoments.from_bytes(moments.to_bytes()),
        pickle.loads(pickle.dumps(moments)),
        moments.standardized(),
    ):
        assert same.group_names == ("sex", "race")
        assert same.group_texts[0] == "sex=f × race=b"  # noqa: RUF001
        assert same.overlapping("marginals").group_texts == [
            "sex=f",
            "sex=m",
            "race=b",
            "race=n",
            "race=w",
        ]


def test_differently_named_sensitive_columns_cannot_be_added():
    X, frame, _ = people()
    moments = GroupMoments.from_rows(X, frame)
    with refused(ValueError, "named sensitive columns"):
        moments + GroupMoments.from_rows(X, frame[["race", "sex"]])
    assert (moments + GroupMoments.from_rows(X, frame.to_numpy())).group_names == ("sex", "race")


def test_rows_without_labels_are_left_out_and_counted(tmp_path):
    X, frame, weights = people()
    labels = frame["race"].mask(frame["race"] == "n")
    some = labels.notna().to_numpy()
    with warned(FairnessWarning, f"{(~some).sum()} of 80", "left out") as caught:
        found = GroupMoments.from_rows(X, labels, sample_weight=weights, missing_labels="drop")
    assert caught[0].filename == __file__
    assert_same(found, GroupMoments.from_rows(X[some], labels[some], sample_weight=weights[some]))
    assert found.n_dropped == (~some).sum()
    assert (found + found).n_dropped == 2 * (~some).sum()
    assert GroupMoments.from_bytes(found.to_bytes()).n_dropped == (~some).sum()


@pytest.mark.parametrize("weight", [1e200, 1e-200])
def test_weights_that_cannot_be_squared_are_refused(weight):
    X, weights = np.random.default_rng(0).normal(size=(9, 2)), np.ones(9)
    weights[3] = weight
    with refused(ValueError, "too small", "squared"):
        GroupMoments.from_rows(X, [0, 1, 2] * 3, sample_weight=weights)
    weights[3] = 0.0
    assert GroupMoments.from_rows(X, [0, 1, 2] * 3, sample_weight=weights).effective_count[0] == 2


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_columns_with_many_entries_beside_others(weighted):
    rng = np.random.default_rng(3)
    often = np.where(rng.random(60) < 0.1, 0.6, 0.01)
    X = rng.exponential(size=(500, 60)) * (rng.random((500, 60)) < often)
    groups = np.repeat(["a", "b", "c"], [300, 190, 10])
    weights = rng.uniform(0.5, 2.0, 500) if weighted else None
    dense = GroupMoments.from_rows(X, groups, sample_weight=weights)
    given = scipy.sparse.csr_array(X)
    found = GroupMoments.from_rows(given, groups, sample_weight=weights)
    np.testing.assert_allclose(found.mean, dense.mean, rtol=0, atol=1e-14)
    size = np.abs(dense.scatter).max()
    np.testing.assert_allclose(found.scatter, dense.scatter, rtol=0, atol=1e-13 * size)
    np.testing.assert_array_equal(given.toarray(), X)
