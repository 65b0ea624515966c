"""KernelFairPCA: explicit features, certificates, landmarks, pre-images, contract, bad input."""

import pickle
import re
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairpca import (
    AtMost,
    Equal,
    FairnessWarning,
    FairPCA,
    GroupMoments,
    KernelFairPCA,
    MinMax,
    Problem,
)
from fairpca import kernel as kernel_features
from fairpca.data import prepare_rows
from fairpca.kernel import draw_landmarks

from texts import refused, warned


@pytest.mark.filterwarnings("ignore:.*here are no groups:fairpca.FairnessWarning")
@parametrize_with_checks([KernelFairPCA(), KernelFairPCA(1, kernel="linear")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def grouped_rows(k=3, n=60, d=5, seed=0):
    """Groups of different sizes, means and covariances."""
    rng = np.random.default_rng(seed)
    groups = np.sort(np.concatenate([np.arange(k), rng.integers(0, k, n - k) ** 2 // k]))
    X = rng.normal(size=(n, d))
    for group in range(k):
        turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
        X[groups == group] = X[groups == group] * rng.uniform(0.3, 2, d) @ turn + rng.normal(size=d)
    return X, groups


def same_reduction(kernel, linear, rows, explicit, atol=1e-8):
    """Distances between reduced rows do not depend on how the subspace is turned."""
    first, second = kernel.transform(rows), linear.transform(explicit)
    np.testing.assert_allclose(first @ first.T, second @ second.T, atol=atol)


def same_fairness(kernel, linear, tolerance=1e-8):
    ours, theirs = kernel.group_table_, linear.group_table_
    assert ours.labels == theirs.labels
    for name in ("loss", "disparity", "own_loss", "pca_loss", "variance"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=tolerance)
    assert kernel.certificate_.value == pytest.approx(linear.certificate_.value, abs=tolerance)
    assert kernel.certificate_.status == linear.certificate_.status
    np.testing.assert_allclose(kernel.explained_variance_, linear.explained_variance_, rtol=1e-7)
    ratio = linear.explained_variance_ratio_
    np.testing.assert_allclose(kernel.explained_variance_ratio_, ratio, rtol=1e-7)


# --- Against FairPCA on features that are written down --------------------------


@pytest.mark.parametrize(
    ("k", "r", "choices"),
    [
        (2, 1, {"criterion": "minmax"}),
        (2, 3, {"criterion": "equal"}),
        (3, 2, {"criterion": "minmax"}),
        (3, 4, {"criterion": MinMax("share_lost")}),
        (3, 2, {"criterion": Equal(tolerance=0.3)}),
        (4, 5, {"criterion": MinMax("kept_variance")}),
        (5, 2, {"criterion": MinMax(max_extra_loss=0.02)}),
        (2, 2, {"criterion": AtMost(1.5)}),
        (3, 2, {"criterion": "balanced"}),
    ],
)
def test_linear_kernel_is_fair_pca(k, r, choices):
    X, groups = grouped_rows(k, d=6)
    linear = FairPCA(r, **choices).fit(X, sensitive_features=groups)
    kernel = KernelFairPCA(r, kernel="linear", **choices).fit(X, sensitive_features=groups)
    same_fairness(kernel, linear)
    new = grouped_rows(k, d=6, seed=1)[0]
    for rows in (X, new):
        same_reduction(kernel, linear, rows, rows)
    errors = ((new - linear.inverse_transform(linear.transform(new))) ** 2).sum(axis=1)
    np.testing.assert_allclose(kernel.reconstruction_errors(new), errors, atol=1e-8)
    per_group = [kernel.reconstruction_errors(X)[groups == g].mean() for g in range(k)]
    np.testing.assert_allclose(per_group, linear.group_table_.loss, atol=1e-8)


def test_solvers_that_use_more_dimensions():
    X, groups = grouped_rows(5, d=6)
    linear = FairPCA(2, solver="mw", criterion="minmax").fit(X, sensitive_features=groups)
    kernel = KernelFairPCA(2, solver="mw", kernel="linear").fit(X, sensitive_features=groups)
    assert linear.n_components_ == kernel.n_components_ > 2
    assert kernel.certificate_.status == "relaxed"
    same_reduction(kernel, linear, X, X, atol=1e-5)
    errors = ((X - linear.inverse_transform(linear.transform(X))) ** 2).sum(axis=1)
    np.testing.assert_allclose(kernel.reconstruction_errors(X), errors, atol=1e-5)
    means = [kernel.reconstruction_errors(X)[groups == g].mean() for g in range(5)]
    np.testing.assert_allclose(means, kernel.group_table_.loss, atol=1e-8)


def test_columns_of_low_rank():
    X, groups = grouped_rows(3, d=3)
    X = X @ np.random.default_rng(5).normal(size=(3, 7))
    for r in (1, 2, 3):
        linear = FairPCA(r, criterion="minmax").fit(X, sensitive_features=groups)
        kernel = KernelFairPCA(r, kernel="linear").fit(X, sensitive_features=groups)
        np.testing.assert_allclose(
            kernel.group_table_.disparity, linear.group_table_.disparity, atol=1e-7
        )
        same_reduction(kernel, linear, X, X, atol=1e-6)
    with refused(ValueError, "n_components=4", "rank", "60 rows, 3:"):
        KernelFairPCA(4, kernel="linear").fit(X, sensitive_features=groups)


def polynomial_features(X, gamma, coef0):
    """Features whose inner product is (gamma x.y + coef0)^2."""
    d = X.shape[1]
    pairs = [(i, j) for i in range(d) for j in range(i + 1)]
    squares = [gamma * X[:, i] * X[:, j] * (1.0 if i == j else np.sqrt(2)) for i, j in pairs]
    linear = [np.sqrt(2 * gamma * coef0) * X[:, i] for i in range(d)]
    return np.column_stack([*squares, *linear, np.full(len(X), coef0)])


@pytest.mark.parametrize(("k", "r", "n_landmarks"), [(2, 2, None), (3, 4, None), (3, 3, 40)])
def test_polynomial_kernel_is_fair_pca_of_all_monomials(k, r, n_landmarks):
    (X, groups), (new, _) = grouped_rows(k, d=4), grouped_rows(k, d=4, seed=1)
    options = {"kernel": "poly", "degree": 2, "gamma": 0.7, "coef0": 0.4}
    explicit, of_new = (polynomial_features(rows, 0.7, 0.4) for rows in (X, new))
    linear = FairPCA(r, criterion="minmax").fit(explicit, sensitive_features=groups)
    # 40 landmarks span all 15 dimensions.
    kernel = KernelFairPCA(r, n_landmarks=n_landmarks, **options).fit(X, sensitive_features=groups)
    same_fairness(kernel, linear)
    same_reduction(kernel, linear, new, of_new, atol=1e-7)
    errors = ((of_new - linear.inverse_transform(linear.transform(of_new))) ** 2).sum(axis=1)
    np.testing.assert_allclose(kernel.reconstruction_errors(new), errors, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(kernel.landmark_share_, 1.0, atol=1e-9)


@pytest.mark.parametrize("groups", ["intersections", "marginals", "both"])
def test_several_sensitive_columns_of_a_table(groups):
    X, _ = grouped_rows()
    people = pd.DataFrame(X, columns=list("abcde"))
    people["sex"] = ["f", "m"] * 30
    people["age"] = pd.Categorical(["young", "old", "old"] * 20, ["young", "old"], ordered=True)
    names = ["sex", "age"]
    linear = FairPCA(2, groups=groups, criterion="minmax").fit(people, sensitive_features=names)
    for n_landmarks in (None, 30):
        kernel = KernelFairPCA(2, kernel="linear", groups=groups, n_landmarks=n_landmarks)
        kernel.fit(people, sensitive_features=names)
        same_fairness(kernel, linear)
        assert kernel.sensitive_names_ == ("sex", "age")
        assert list(kernel.feature_names_in_) == list("abcde")
        same_reduction(kernel, linear, people, people)
        same_reduction(kernel, linear, people[list("abcde")], people)
    people["sex"] = np.arange(60) % 2
    kept = KernelFairPCA(2, kernel="linear", keep_sensitive=True)
    kept.fit(people.drop(columns="age"), sensitive_features="sex")
    assert kept.n_features_in_ == 6


def test_missing_labels():
    X, groups = grouped_rows()
    labels = np.array([None, "x", *map(str, groups[2:])], dtype=object)
    options = {"kernel": "linear", "missing_labels": "drop"}
    with warned(FairnessWarning, "1 of 60", "left out"):
        kernel = KernelFairPCA(2, **options).fit(X, sensitive_features=labels)
    linear = FairPCA(2, criterion="minmax").fit(X[1:], sensitive_features=labels[1:])
    same_fairness(kernel, linear)
    same_reduction(kernel, linear, X, X)
    with refused(ValueError, "1 missing", "60 rows"):
        KernelFairPCA(2).fit(X, sensitive_features=labels)
    as_group = KernelFairPCA(2, missing_labels="group").fit(X, sensitive_features=labels)
    assert as_group.group_table_.labels[-1] == "(missing)"


# --- What the certificate says ------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "poly", "cosine"])
@pytest.mark.parametrize("choices", [{}, {"criterion": MinMax("share_lost")}], ids=str)
def test_no_subspace_of_the_span_beats_the_bound(kernel, choices):
    X, groups = grouped_rows(3, n=45)
    fair = KernelFairPCA(2, kernel=kernel, **choices).fit(X, sensitive_features=groups)
    bound = fair.certificate_.lower_bound
    assert bound <= fair.certificate_.value <= (1 + 1e-3) * bound
    # Features of all rows by another factorisation than that of the estimator.
    matrix = KernelFairPCA(2, kernel=kernel)
    matrix.gamma_ = 1.0 / 5
    center = np.eye(45) - 1 / 45
    left, values, _ = np.linalg.svd(center @ matrix._kernel_matrix(X, X) @ center)
    d = len(fair.solution_.basis)
    features = left[:, :d] * np.sqrt(values[:d])
    problem = Problem(GroupMoments.from_rows(features, groups), 2, **choices)
    here = (left[:, :d] / np.sqrt(values[:d])).T @ fair.transform(X)
    assert problem.measures(here).max() == pytest.approx(fair.certificate_.value, rel=1e-7)
    rng = np.random.default_rng(0)
    for size in 10.0 ** rng.uniform(-6, 1, 200) / np.sqrt(d):
        basis = np.linalg.qr(here + size * rng.normal(size=here.shape))[0]
        assert problem.measures(basis).max() >= bound * (1 - 1e-9)


def test_impossible_and_bad_news_are_said():
    X, groups = grouped_rows()
    with warned(FairnessWarning, "impossible"):
        fair = KernelFairPCA(2, criterion=AtMost(0.001)).fit(X, sensitive_features=groups)
    assert fair.certificate_.status == "infeasible"
    with warned(FairnessWarning, "one group", "'a'"):
        KernelFairPCA(2).fit(X, sensitive_features=["a"] * 60)
    with warned(FairnessWarning, "y is ignored", "groups=None"):
        KernelFairPCA(2).fit(X, groups)
    few = ["few"] * 2 + ["many"] * 58
    with warned(FairnessWarning, "'few' (2", "Merge") as seen:
        KernelFairPCA(2, gamma=1e-3).fit(X, sensitive_features=few)
    assert "column" not in str(seen[0].message).lower()  # coordinates are none


# --- One group: scikit-learn's KernelPCA ---------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "cosine"])
def test_one_group_is_kernel_pca(kernel):
    (X, _), (new, _) = grouped_rows(), grouped_rows(seed=1)
    options = {"kernel": kernel, "gamma": 0.3}
    theirs = KernelPCA(3, eigen_solver="dense", **options).fit(X)
    ours = KernelFairPCA(3, groups=None, **options).fit(X)
    signs = np.sign((ours.transform(X) * theirs.transform(X)).sum(axis=0))
    for rows in (X, new):
        np.testing.assert_allclose(ours.transform(rows), theirs.transform(rows) * signs, atol=1e-8)
    np.testing.assert_allclose(ours.explained_variance_ * 59, theirs.eigenvalues_, rtol=1e-9)


# --- Landmarks ----------------------------------------------------------------


def test_all_rows_as_landmarks_are_the_exact_fit():
    X, groups = grouped_rows()
    exact = KernelFairPCA(3).fit(X, sensitive_features=groups)
    all_rows = KernelFairPCA(3, n_landmarks=60).fit(X, sensitive_features=groups)
    np.testing.assert_array_equal(all_rows.dual_coef_, exact.dual_coef_)
    np.testing.assert_array_equal(exact.landmark_share_, np.ones(3))
    assert exact.group_table_.notes == ()
    # Coordinates by division, as other rows have them, are those without.
    rows, groups_read, _ = prepare_rows(X, groups, exact)
    values, vectors = exact._span(rows)
    moments, outside = exact._mapped(rows, groups_read, vectors / np.sqrt(values))
    whole = GroupMoments.from_rows(vectors * np.sqrt(values), groups)
    np.testing.assert_allclose(moments.scatter, whole.scatter, atol=1e-8)
    assert outside.max() < 1e-8


@pytest.mark.parametrize("seed", [0, 1])
def test_losses_and_what_lies_outside_add_up(seed, monkeypatch):
    monkeypatch.setattr(kernel_features, "BLOCK_VALUES", 7 * 20)  # several blocks
    X, groups = grouped_rows()
    fair = KernelFairPCA(2, n_landmarks=20, random_state=seed).fit(X, sensitive_features=groups)
    # The same by features of landmarks and rows together, which are written down.
    new = grouped_rows(seed=1)[0]
    every = np.vstack([fair.X_fit_, X, new])
    values, vectors = np.linalg.eigh(rbf_kernel(every, gamma=fair.gamma_))
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    landmarks, rows, of_new = np.split(features, [20, 80])
    start = landmarks.mean(axis=0)
    span = np.linalg.svd(landmarks - start)[2][:19].T
    inside, inside_new = ((part - start) @ span for part in (rows, of_new))
    linear = FairPCA(2, criterion="minmax").fit(inside, sensitive_features=groups)
    np.testing.assert_allclose(fair.group_table_.loss, linear.group_table_.loss, atol=1e-7)
    same_reduction(fair, linear, X, inside, atol=1e-6)
    same_reduction(fair, linear, new, inside_new, atol=1e-6)
    rebuilt = linear.inverse_transform(linear.transform(inside)) @ span.T + start
    errors = ((rows - rebuilt) ** 2).sum(axis=1)
    np.testing.assert_allclose(fair.reconstruction_errors(X), errors, atol=1e-7)
    center = inside.mean(axis=0) @ span.T + start
    about = ((rows - center) ** 2).sum(axis=1)  # k_c(x, x)
    table, share = fair.group_table_, fair.landmark_share_
    for g in range(3):
        own = groups == g
        assert table.variance[g] / share[g] == pytest.approx(about[own].mean(), abs=1e-7)
        outside = table.variance[g] * (1 / share[g] - 1)
        assert table.loss[g] + outside == pytest.approx(errors[own].mean(), abs=1e-7)
    kept = fair.transform(X).var(axis=0)
    np.testing.assert_allclose(fair.explained_variance_ratio_, kept / about.mean(), rtol=1e-6)
    worst = int(share.argmin())
    said = f"20 landmarks: outside it lies {100 * (1 - share[worst]):.2g} % of the variance of"
    assert f"{said} {worst} in" in table.notes[0]
    assert table.notes[0] in " ".join(str(table).split())


def test_landmarks_never_make_a_matrix_of_all_rows(monkeypatch):
    monkeypatch.setattr(kernel_features, "BLOCK_VALUES", 2**14)
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(8000, 3)), np.arange(8000) % 2
    fair = KernelFairPCA(2, n_landmarks=40)
    tracemalloc.start()
    try:
        fair.fit(X, sensitive_features=groups)
        fair.transform(X)
        fair.reconstruction_errors(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * 8000 * 40  # not even one number for each row and landmark
    assert fair.X_fit_.shape == (40, 3)


def test_landmarks_are_drawn_by_group():
    codes = np.repeat([0, 1, 2], [900, 90, 3])
    expected = {9: [3, 3, 3], 50: [39, 8, 3], 400: [331, 66, 3], 990: [897, 90, 3]}
    for n, count in expected.items():
        drawn = draw_landmarks(codes, n, 3, seed=1)
        assert len(set(drawn)) == n
        assert np.bincount(codes[drawn]).tolist() == count
    assert list(draw_landmarks(codes, 50, 3, 1)) == list(draw_landmarks(codes, 50, 3, 1))
    assert list(draw_landmarks(codes, 50, 3, 1)) != list(draw_landmarks(codes, 50, 3, 2))
    X, groups = grouped_rows()
    one = KernelFairPCA(2, groups=None, n_landmarks=30)
    drawn = [one.fit(X, sensitive_features=of).X_fit_ for of in (groups, None)]
    np.testing.assert_array_equal(*drawn)  # without groups, labels are not used
    with refused(ValueError, "n_landmarks=8", "3 groups need 9"):
        draw_landmarks(codes, 8, 3, seed=1)


# --- Kinds of rows and kernels ------------------------------------------------


def test_callable_sparse_and_single_precision():
    X, groups = grouped_rows()
    train, of_train = X[::2], groups[::2]
    named = KernelFairPCA(2, gamma=0.2).fit(train, sensitive_features=of_train)

    def own(a, b):
        return np.exp(-0.2 * ((a - b) ** 2).sum())

    called = KernelFairPCA(2, kernel=own).fit(train, sensitive_features=of_train)
    np.testing.assert_allclose(called.transform(X), named.transform(X), atol=1e-8)
    errors = named.reconstruction_errors(X)
    np.testing.assert_allclose(called.reconstruction_errors(X), errors, atol=1e-8)
    for n_landmarks in (None, 20):
        fair = KernelFairPCA(2, gamma=0.2, n_landmarks=n_landmarks)
        fair.fit(train, sensitive_features=of_train)
        sparse = clone(fair).fit(scipy.sparse.csr_array(train), sensitive_features=of_train)
        np.testing.assert_allclose(
            sparse.transform(scipy.sparse.csc_array(X)), fair.transform(X), atol=1e-8
        )
        errors = sparse.reconstruction_errors(scipy.sparse.csr_array(X))
        np.testing.assert_allclose(errors, fair.reconstruction_errors(X), atol=1e-8)
    single = clone(named).fit(train.astype(np.float32), sensitive_features=of_train)
    reduced = single.transform(X.astype(np.float32))
    assert reduced.dtype == np.float32
    np.testing.assert_allclose(reduced, named.transform(X), atol=1e-4)


def test_clones_pickles_pipelines_and_routing():
    X, groups = grouped_rows()
    before = X.copy()
    pipe = make_pipeline(StandardScaler(), KernelFairPCA(2, n_landmarks=30, random_state=3))
    with sklearn.config_context(enable_metadata_routing=True):
        pipe.fit(X, sensitive_features=groups)
    fair = pipe[-1]
    assert fair.group_table_.labels == tuple(sorted(set(groups.tolist())))
    again = pickle.loads(pickle.dumps(pipe))
    np.testing.assert_array_equal(again.transform(X), pipe.transform(X))
    scaled = StandardScaler().fit_transform(X)
    other = clone(fair).fit(scaled, sensitive_features=groups)
    np.testing.assert_array_equal(other.transform(scaled), pipe.transform(X))
    other.set_params(random_state=4).fit(scaled, sensitive_features=groups)
    assert not np.array_equal(other.X_fit_, fair.X_fit_)
    framed = other.set_output(transform="pandas").transform(scaled)
    assert list(framed.columns) == ["kernelfairpca0", "kernelfairpca1"]
    np.testing.assert_array_equal(X, before)
    rows = X.copy()
    kept = KernelFairPCA(2).fit(rows, sensitive_features=groups)
    expected = kept.transform(X)
    rows[:] = 0.0  # what becomes of the rows later does not change the kernel
    np.testing.assert_array_equal(kept.transform(X), expected)


# --- Bad input ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_components": 0}, "n_components 0"),
        ({"n_components": 0.5}, "n_components 0.5"),
        ({"kernel": "magic"}, "kernel"),
        ({"gamma": -1.0}, "gamma"),
        ({"gamma": "auto"}, "gamma"),
        ({"degree": -1}, "degree -1"),
        ({"coef0": np.inf}, "coef0 inf"),
        ({"coef0": np.nan}, "coef0 nan"),
        ({"n_landmarks": 1}, "n_landmarks 1"),
        ({"n_landmarks": 61}, "n_landmarks=61 60"),
        ({"n_landmarks": 4}, "n_landmarks=4 few 3 groups"),
        ({"criterion": "kind"}, "criterion"),
        ({"criterion": Equal}, "class criterion=Equal()."),
        ({"criterion": Equal(-1.0)}, "tolerance -1.0"),
        ({"solver": "magic"}, "solver"),
        (
            {"solver": "sdp", "criterion": MinMax("relative_disparity")},
            "criterion own MinMax(measure='relative_disparity')",
        ),
        ({"groups": "some"}, "groups"),
        ({"random_state": -1}, "random_state"),
        ({"criterion": AtMost({"nobody": 1.0})}, "nobody"),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(options, words):
    X, groups = grouped_rows()
    with refused(ValueError, *words.split()) as caught:
        KernelFairPCA(**options).fit(X, sensitive_features=groups)
    assert not re.search(r"[.!?] [A-Z]", str(caught.value))


def test_kernels_that_are_none():
    X, groups = grouped_rows()
    fair = KernelFairPCA(2, kernel=lambda a, b: -np.exp(-((a - b) ** 2).sum()))
    with refused(ValueError, "positive semidefinite", "eigenvalue"):
        fair.fit(X, sensitive_features=groups)
    with refused(ValueError, "not symmetric"):
        fair.set_params(kernel=lambda a, b: a[0] * b[1]).fit(X, sensitive_features=groups)
    with pytest.raises(NotFittedError):
        fair.transform(rbf_kernel(X))


@pytest.mark.parametrize("n_landmarks", [None, 30])
def test_values_that_cannot_be_used(n_landmarks):
    X, groups = grouped_rows()
    fair = KernelFairPCA(2, kernel="linear", n_landmarks=n_landmarks)
    for value, words in ((np.nan, "NaN"), (np.inf, "infinity"), (1e200, "squared")):
        rows = X.copy()
        rows[::7, 1] = value
        with refused(ValueError, *words.split()):
            fair.fit(rows, sensitive_features=groups)
    rows = X.copy()
    free = np.flatnonzero(~np.isin(np.arange(60), draw_landmarks(groups, 30, 2, 0)))[0]
    rows[free, 1] = 1e200  # of a row that is no landmark
    with refused(ValueError, "squared"):
        fair.fit(rows, sensitive_features=groups)


def test_a_kernel_matrix_that_does_not_fit_is_refused_before_any_work():
    rows = np.zeros((1_000_000, 1))
    with refused(MemoryError, "1,000,000 rows", "n_landmarks"):
        KernelFairPCA(1).fit(rows, sensitive_features=np.arange(len(rows)) % 2)


# --- Ugly rows ----------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_ugly_rows(seed):
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(6, 30)), int(rng.integers(1, 5)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, d))
    kind = rng.choice(["duplicates", "constant", "tied", "single rows"])
    groups = rng.integers(0, k, n)
    if kind == "duplicates":
        X = X[rng.integers(0, 3, n)]
    elif kind == "constant":
        X = np.full((n, d), 3.7)
    elif kind == "tied":
        X = np.vstack([np.eye(d), -np.eye(d)])[rng.integers(0, 2 * d, n)]
    else:
        groups[:3] = [7, 8, 9]
    kernel = str(rng.choice(["linear", "rbf", "poly"]))
    rank = np.linalg.matrix_rank(
        _centred_kernel(X, kernel, 1.0 / d), tol=1e-9 * n * max(1.0, np.abs(X).max() ** 6)
    )
    r = int(rng.integers(1, 4))
    n_landmarks = int(rng.integers(n // 2, n + 1)) if rng.random() < 0.5 else None
    fair = KernelFairPCA(r, kernel=kernel, n_landmarks=n_landmarks)
    refused = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        try:
            fair.fit(X, sensitive_features=groups)
        except ValueError as error:
            refused = str(error)
    if refused is not None:
        words = "is too few|is more than the rank" if n_landmarks else "is more than the rank"
        assert re.search(words, refused)
        assert n_landmarks or r > rank
        return
    assert r <= rank
    table = fair.group_table_
    assert np.isfinite(table.disparity).all()
    assert (fair.landmark_share_ > -1e-9).all()
    assert (fair.landmark_share_ <= 1.0).all()
    errors = fair.reconstruction_errors(X)
    outside = np.divide(table.variance, fair.landmark_share_) - table.variance
    scale = 1e-7 * max(1.0, float(table.variance.max()))
    for g, label in enumerate(table.labels):
        if fair.landmark_share_[g] > 0:
            mean = errors[groups == label].mean()
            assert mean == pytest.approx(table.loss[g] + outside[g], abs=scale)
    assert fair.certificate_.lower_bound <= fair.certificate_.value + scale


def _centred_kernel(X, kernel, gamma):
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    matrix = {
        "linear": X @ X.T,
        "poly": (gamma * X @ X.T + 1) ** 3,
        "rbf": np.exp(-gamma * distances),
    }[kernel]
    center = np.eye(len(X)) - 1 / len(X)
    return center @ matrix @ center


def test_the_cause_of_a_kernel_that_is_none_is_said():
    X, groups = grouped_rows()
    with refused(ValueError, "degree=2.5", "products"):
        KernelFairPCA(kernel="poly", degree=2.5, coef0=0).fit(X, sensitive_features=groups)
    with refused(ValueError, "far from zero", "centre"):
        KernelFairPCA(kernel=lambda a, b: -float(a @ b)).fit(X, sensitive_features=groups)
