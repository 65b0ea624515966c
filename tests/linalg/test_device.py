"""Rows of PyTorch and CuPy: the CPU's tensors everywhere, a GPU's where there is one."""

import importlib
import pickle
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairpca import ExactSolver, FairnessWarning, FairPCA, GroupMoments, Problem
from fairpca._linalg import device as device_module
from fairpca._linalg.backends import device_library, is_cpu, namespace, to_host
from fairpca._linalg.device import DeviceBackend, DeviceStack, scatter_matrices

from devices import missing
from same_fit import assert_same_choice, assert_same_fit
from texts import refused, warned


def _kinds():
    """Pairs of a library and a device on which it can be tried here."""
    kinds = []
    try:
        torch = importlib.import_module("torch")
        importlib.import_module("array_api_compat")
        kinds.append(("torch", "cpu"))
        if torch.cuda.is_available():
            kinds.append(("torch", "cuda"))
            importlib.import_module("cupy")
            kinds.append(("cupy", "cuda"))
    except ImportError as error:
        if not kinds:
            kinds.append(("missing", error.name))
    return kinds


@pytest.fixture(params=_kinds(), ids="-".join)
def put(request, monkeypatch):
    """A function that puts a NumPy array where the library keeps its own, and solves there."""
    monkeypatch.setattr(device_module, "_NUMPY_SOLVES_ON_CPU", False)
    library, device = request.param
    if library == "missing":
        missing(device)
    module = importlib.import_module(library)
    if library == "torch":
        return lambda array: module.asarray(np.asarray(array), device=device)
    return module.asarray


def rows(n=600, d=8, k=3, seed=0, mean=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / np.sqrt(np.arange(1, d + 1))
    groups = rng.choice(k, n, p=np.arange(k, 0, -1) / (k * (k + 1) / 2))
    for group in range(k):
        members = groups == group
        own = rng.normal(size=(3, d)) / np.sqrt(d)
        X[members] += rng.normal(size=(members.sum(), 3)) @ own
    return X + mean, groups


def matrices_of(moments):
    return scatter_matrices(moments.scatter, moments.offsets, moments.weight)


@pytest.mark.parametrize("mean", [0.0, 1e6])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_those_of_numpy(put, mean, weighted):
    X, groups = rows(mean=mean)
    weights = np.random.default_rng(1).uniform(0, 2, len(X)) if weighted else None
    expected = GroupMoments.from_rows(X, groups, sample_weight=weights)
    given = None if weights is None else put(weights)
    found = GroupMoments.from_rows(put(X), put(groups), sample_weight=given)
    assert found.labels == expected.labels
    np.testing.assert_array_equal(found.count, expected.count)
    np.testing.assert_allclose(found.weight, expected.weight, rtol=1e-13)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-12)
    largest = np.abs(expected.scatter).max()
    np.testing.assert_allclose(found.scatter, expected.scatter, atol=1e-9 * largest)
    np.testing.assert_array_equal(found.scatter, found.scatter.transpose(0, 2, 1))


def test_blocks_and_panels_add_up(put, monkeypatch):
    monkeypatch.setattr("fairpca.moments.sums._DEVICE_BLOCK_BYTES", 8 * 40 * 70)
    monkeypatch.setattr(device_module, "_PANEL", 7)
    X, groups = rows(d=40, k=2)
    expected = GroupMoments.from_rows(X, groups)
    found = GroupMoments.from_rows(put(X), put(groups))
    np.testing.assert_allclose(found.scatter, expected.scatter, atol=1e-10)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_folds_and_what_is_estimated_from_them_are_those_of_numpy(put, kind):
    X, groups = rows(n=300, d=5)
    X, weights = X.astype(kind), np.random.default_rng(1).integers(1, 4, len(X)).astype(float)
    for choices in ({}, {"sample_weight": weights}):
        given = {name: put(value) for name, value in choices.items()}
        found = GroupMoments.from_rows(put(X), put(groups), folds=True, **given)
        expected = GroupMoments.from_rows(X, groups, folds=True, **choices)
        assert isinstance(found.without_folds().scatter, DeviceStack)
        assert found.labels == expected.labels
        np.testing.assert_array_equal(found.count, expected.count)
        np.testing.assert_allclose(found.effective_count, expected.effective_count)
        np.testing.assert_allclose(found.scatter, expected.scatter, atol=1e-9)
    groups = np.minimum(groups, 1)  # of two groups, which are solved quickly
    fitted = FairPCA(2, criterion="soft").fit(put(X), sensitive_features=groups, **given)
    reference = FairPCA(2, criterion="soft").fit(X, sensitive_features=groups, **choices)
    assert_same_choice(fitted, reference)


def test_sums_of_more_groups_than_half_the_columns(put):
    X, groups = rows(d=8, k=6)
    here, there = (matrices_of(GroupMoments.from_rows(given, groups)) for given in (X, put(X)))
    weights = np.linspace(0.5, 2.0, 6)
    np.testing.assert_allclose(there.dense(weights), here.dense(weights), atol=1e-10)


@pytest.mark.parametrize("groups", ["marginals", "both", None])
def test_overlapping_groups_stay_on_the_device(put, groups):
    X, first = rows(n=900, d=8, k=2)
    labels = pd.DataFrame({"first": first, "second": np.arange(900) % 3})
    found = GroupMoments.from_rows(put(X), labels).overlapping(groups)
    expected = GroupMoments.from_rows(X, labels).overlapping(groups)
    assert isinstance(found.scatter, DeviceStack)
    assert found.group_texts == expected.group_texts
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-12)
    np.testing.assert_allclose(found.scatter, expected.scatter, rtol=1e-10, atol=1e-9)
    options = {"criterion": "minmax", "groups": groups}
    fitted = FairPCA(2, **options).fit(put(X), sensitive_features=labels)
    assert_same_fit(fitted, FairPCA(2, **options).fit(X, sensitive_features=labels))


def test_rows_without_labels_are_left_out(put):
    X, groups = rows(n=900, d=8, k=2)
    labels = np.array(groups, dtype=object)
    labels[::9] = None
    some = np.arange(900) % 9 > 0
    fair = FairPCA(2, missing_labels="drop", criterion="minmax")
    with warned(FairnessWarning, "100 of 900", "left out") as caught:
        fair.fit(put(X), sensitive_features=labels)
    assert ["rows are left out" in str(each.message) for each in caught].count(True) == 1
    assert_same_fit(
        fair, FairPCA(2, criterion="minmax").fit(X[some], sensitive_features=groups[some])
    )


@pytest.mark.parametrize(
    ("d", "k", "r"), [(8, 1, 2), (8, 2, 3), (8, 4, 4), (330, 2, 6), (330, 4, 5)]
)
def test_fit_is_that_of_numpy(put, d, k, r):
    X, groups = rows(n=900, d=d, k=k)
    kind = None if k == 1 else "intersections"
    reference = FairPCA(r, groups=kind, criterion="minmax").fit(X, sensitive_features=groups)
    fitted = FairPCA(r, groups=kind, criterion="minmax").fit(put(X), sensitive_features=put(groups))
    assert_same_fit(fitted, reference)
    reduced = fitted.transform(put(X))
    assert device_library(reduced) == device_library(put(X))
    assert str(reduced.device) == str(put(X).device)
    np.testing.assert_allclose(to_host(reduced), fitted.transform(X), atol=1e-9)
    restored = fitted.inverse_transform(reduced)
    np.testing.assert_allclose(
        to_host(restored), fitted.inverse_transform(fitted.transform(X)), atol=1e-9
    )
    assert fitted.score(put(X)) == pytest.approx(fitted.score(X))


def test_on_the_cpu_numpy_solves_without_a_copy(put, monkeypatch):
    monkeypatch.setattr(device_module, "_NUMPY_SOLVES_ON_CPU", True)
    X, groups = rows(n=900, d=330, k=3)
    reference = FairPCA(4, criterion="minmax").fit(X, sensitive_features=groups)
    assert_same_fit(
        FairPCA(4, criterion="minmax").fit(put(X), sensitive_features=put(groups)), reference
    )
    moments = GroupMoments.from_rows(put(X), put(groups))
    matrices = matrices_of(moments)
    if is_cpu(put(X)):
        assert not isinstance(matrices.backend, DeviceBackend)
        assert np.shares_memory(matrices.scatter, to_host(moments.scatter.array))
    else:
        assert isinstance(matrices.backend, DeviceBackend)


@pytest.mark.parametrize("options", [{"aggregation": "sum"}, {"centering": "group"}, {}], ids=str)
def test_choices_with_many_columns(put, options):
    X, groups = rows(n=900, d=320, k=3, mean=2.0)
    X[groups == 1] += 0.5
    weights = np.random.default_rng(0).uniform(0.5, 1.5, len(X))
    fits = []
    for rows_, labels, w in ((put(X), put(groups), put(weights)), (X, groups, weights)):
        if options:
            moments = GroupMoments.from_rows(rows_, labels, sample_weight=w)
            problem = Problem(moments, 4, **options)
            fits.append(FairPCA.from_solution(problem, ExactSolver().solve(problem)))
        else:
            fits.append(
                FairPCA(4, criterion="minmax").fit(
                    rows_, sensitive_features=labels, sample_weight=w
                )
            )
    assert_same_fit(*fits)


def test_a_search_that_leaves_a_gap_goes_on_in_more_directions(put):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(3000, 150)), rng.integers(0, 6, 3000)
    for i in range(6):
        X[groups == i, :5] = X[groups == i, :5] @ rng.normal(size=(5, 5)) * 2.0
    fits = [
        FairPCA(3, solver=ExactSolver(n_starts=4), criterion="minmax").fit(
            rows, sensitive_features=labels
        )
        for rows, labels in ((X, groups), (put(X), put(groups)))
    ]
    assert fits[0].certificate_.status == fits[1].certificate_.status == "bounded"
    assert fits[1].certificate_.value == pytest.approx(fits[0].certificate_.value, rel=1e-8)
    for fit in fits:  # five starts, and five more in the wider space
        assert len(fit.solution_.history["starts"]) == 10


def test_float32_keeps_its_kind_and_float64_sums(put):
    X, groups = rows(n=2000, d=12, mean=50.0)
    X = X.astype(np.float32)
    fitted = FairPCA(3, criterion="minmax").fit(put(X), sensitive_features=put(groups))
    assert_same_fit(
        fitted, FairPCA(3, criterion="minmax").fit(X.astype(np.float64), sensitive_features=groups)
    )
    reduced = fitted.transform(put(X))
    assert reduced.dtype == put(X).dtype
    np.testing.assert_allclose(to_host(reduced), fitted.transform(X), atol=1e-4)


@pytest.mark.parametrize("kind", ["text", "bool", "two columns", "missing"])
def test_labels_of_all_kinds(put, kind):
    X, groups = rows()
    options = {}
    if kind == "text":
        labels, given = np.array(["a", "b", "c"])[groups], np.array(["a", "b", "c"])[groups]
    elif kind == "bool":
        labels, given = groups == 1, put(groups == 1)
    elif kind == "two columns":
        labels = np.column_stack([groups, np.arange(len(X)) % 2])
        given = put(labels)
    else:
        labels = np.where(groups == 0, np.nan, groups)
        given, options = put(labels), {"missing_labels": "group"}
    fitted = FairPCA(3, **options).fit(put(X), sensitive_features=given)
    assert_same_fit(fitted, FairPCA(3, **options).fit(X, sensitive_features=labels))


def test_integers_and_rows_without_weight(put):
    X, groups = rows()
    whole = np.round(20 * X).astype(np.int64)
    weights = np.where(groups == 2, 0.0, 1.0)
    given = {"sensitive_features": put(groups), "sample_weight": put(weights)}
    with warned(FairnessWarning, "'2'", "sample_weight", "left out"):
        fitted = FairPCA(2, criterion="minmax").fit(put(whole), **given)
    kept = groups != 2
    assert_same_fit(
        fitted, FairPCA(2, criterion="minmax").fit(whole[kept], sensitive_features=groups[kept])
    )


def test_batches_merge_with_those_of_numpy(put):
    X, groups = rows()
    parts = [
        GroupMoments.from_rows(put(X[:300]), put(groups[:300])),
        GroupMoments.from_rows(X[300:], groups[300:]),
    ]
    reference = FairPCA(3, criterion="minmax").fit(X, sensitive_features=groups)
    assert_same_fit(
        FairPCA(3, criterion="minmax").fit_moments(GroupMoments.merge(parts)), reference
    )


def test_moments_do_on_a_device_what_they_do_elsewhere(put, tmp_path):
    X, groups = rows(d=12, mean=3.0)
    X[:, 4] = 7.0
    reference = GroupMoments.from_rows(X, groups)
    moments = GroupMoments.from_rows(put(X), put(groups))

    def assert_same(found, expected):
        assert found.labels == expected.labels
        np.testing.assert_array_equal(found.count, expected.count)
        np.testing.assert_allclose(found.mean, expected.mean, atol=1e-11)
        np.testing.assert_allclose(found.scatter, expected.scatter, atol=1e-9)

    standardized = moments.standardized()
    assert device_library(standardized.scatter.array) == device_library(put(X))
    assert_same(standardized, reference.standardized())
    named = replace(moments, feature_names=tuple("abcdefghijkl"))
    assert named.scatter is moments.scatter
    assert_same(named, reference)
    assert_same(moments + moments, reference + reference)
    assert_same(GroupMoments.merge([reference, moments]), reference + reference)
    assert_same(GroupMoments.from_bytes(moments.to_bytes()), reference)
    moments.save(tmp_path / "site.moments")
    assert_same(GroupMoments.load(tmp_path / "site.moments"), reference)
    sent = pickle.loads(pickle.dumps(moments))
    assert device_library(sent.scatter.array) == device_library(put(X))
    assert_same(sent, reference)
    np.testing.assert_allclose(moments.total_covariance(), reference.total_covariance(), atol=1e-11)
    matrices = [Problem(part, 1).matrices for part in (moments, reference)]
    np.testing.assert_allclose(*matrices, atol=1e-11)
    assert sys.getsizeof(moments) == sys.getsizeof(reference)
    fitted = FairPCA(3, criterion="minmax").fit_moments(reference.standardized())
    assert_same_fit(FairPCA(3, criterion="minmax").fit_moments(standardized), fitted)


def test_what_stays_on_the_device_is_not_copied(put, monkeypatch):
    X, groups = rows(n=900, d=330, k=3)
    moments = GroupMoments.from_rows(put(X), put(groups))

    def refuse(*_):
        raise AssertionError("a copy of all scatters")

    monkeypatch.setattr(device_module.DeviceStack, "_host", property(refuse))
    assert moments.is_finite
    assert len(moments.scatter) == 3
    assert moments.scatter.shape == (3, 330, 330)
    standardized = replace(moments, feature_names=None).standardized()
    assert FairPCA(4, criterion="minmax").fit_moments(standardized).certificate_.status == "optimal"


def test_gradients_are_left_behind(put):
    X, groups = rows()
    given = put(X)
    if device_library(given) != "torch":
        pytest.skip("only PyTorch has gradients")
    given.requires_grad_()
    fitted = FairPCA(3, criterion="minmax").fit(given, sensitive_features=groups)
    assert not fitted.transform(given).requires_grad


def test_a_missed_direction_is_found_on_the_device(put):
    X, groups = rows(n=900, d=30, k=2)
    on_host = Problem(GroupMoments.from_rows(X, groups), 3)
    matrices = matrices_of(GroupMoments.from_rows(put(X), put(groups)))
    assert isinstance(matrices.backend, DeviceBackend)
    weights = np.array([0.7, -0.2])
    matrix = on_host.weighted_sum(weights)
    np.testing.assert_allclose(matrices.dense(weights), matrix, atol=1e-12)
    device, there = matrices.weighted_sum(weights), matrices.backend.put
    values, vectors = np.linalg.eigh(matrix)
    # All but the largest are known, so that one is above the level.
    known, drops, level = vectors[:, -4:-1], values[-4:-1] - values[-4], values[-4] + 1e-9
    missed = device.disproof(there(known), drops, level)
    direction = to_host(missed)[:, 0]
    rest = matrix - known * drops @ known.T
    assert direction @ rest @ direction > level * (direction @ direction)
    known, drops = vectors[:, -3:], values[-3:] - values[-4]
    assert device.disproof(there(known), drops, level) is None
    found, leading = device.leading(2)
    np.testing.assert_allclose(found, values[::-1][:2])
    np.testing.assert_allclose(
        np.abs(to_host(leading).T @ vectors[:, :-3:-1]), np.eye(2), atol=1e-8
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X: X[0], "2D array"),
        (lambda X: X[:1], "minimum 2"),
        (lambda X: X[:, :2], "n_components=3 n_features=2"),
        (lambda X: np.where(X[3, 1] == X, np.nan, X), "NaN infinity"),
        (lambda X: X * 1e200, "squared"),
        (lambda X: X + 1j, "Complex data"),
    ],
)
def test_bad_rows_are_refused(put, change, words):
    X, groups = rows()
    bad = put(change(X))
    labels = groups[: bad.shape[0]] if bad.ndim == 2 else groups
    with np.errstate(all="ignore"), refused(ValueError, *words.split()):
        FairPCA(3, criterion="minmax").fit(bad, sensitive_features=labels)


def test_wrong_lengths_and_features_are_refused(put):
    X, groups = rows()
    with refused(ValueError, "label", "each row"):
        FairPCA(3, criterion="minmax").fit(put(X), sensitive_features=put(groups[:-1]))
    with refused(ValueError, "sample_weight"):
        FairPCA(3, criterion="minmax").fit(
            put(X), sensitive_features=groups, sample_weight=put(np.ones(3))
        )
    fitted = FairPCA(3, criterion="minmax").fit(put(X), sensitive_features=groups)
    with refused(ValueError, "5 features", "FairPCA", "expecting 8"):
        fitted.transform(put(X[:, :5]))
    with refused(ValueError, "NaN", "infinity"):
        fitted.transform(put(np.full((2, 8), np.nan)))


def test_the_page_on_gpus_runs(put):
    page = (Path(__file__).parents[2] / "docs" / "gpu.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    scope = {}
    exec(block, scope)
    assert scope["reduced"].shape == (2000, 5)
    assert scope["reduced"].dtype == scope["X"].dtype
    assert scope["fair"].certificate_.status in ("optimal", "bounded")


def test_missing_helper_names_the_extra(put, monkeypatch):
    X, groups = rows()
    monkeypatch.setitem(sys.modules, "array_api_compat", None)
    with refused(ImportError, "fairpca[gpu]"):
        FairPCA(3, criterion="minmax").fit(put(X), sensitive_features=groups)


def test_names_of_libraries():
    assert device_library(np.ones(2)) is None
    assert device_library([1.0]) is None
    with pytest.raises((ImportError, TypeError)):
        namespace("text")
