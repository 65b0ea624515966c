"""Criteria: parameters as scikit-learn has them, and a further criterion in one class."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone

from fairpca import (
    AtMost,
    Balanced,
    Equal,
    ExactSolver,
    FairPCA,
    GroupMoments,
    MinMax,
    Problem,
    SoftMinMax,
)
from fairpca.criteria import CRITERIA, FINDINGS, Criterion, Domain, as_criterion
from fairpca.measures import EPS, MEASURES
from fairpca.model_file import save_model

from problems import problem_of, random_matrices
from texts import refused

EVERY = [MinMax("share_lost", 0.1), Equal(0.5), AtMost({"a": 1.0}, "kept_variance"), Balanced()]


@pytest.mark.parametrize("criterion", EVERY, ids=repr)
def test_parameters_are_those_of_scikit_learn(criterion):
    copy = clone(criterion)
    assert copy is not criterion
    assert copy.get_params() == criterion.get_params()
    assert repr(copy) == repr(criterion)
    assert as_criterion(criterion) is criterion


@pytest.mark.parametrize("name", CRITERIA)
def test_names_are_those_of_certificates(name):
    problem = problem_of(random_matrices(np.random.default_rng(0), "general", 3, 4), 2)
    criterion = SoftMinMax(temperature=1.0) if name == "soft" else name
    solution = ExactSolver().solve(problem.with_criterion(criterion))
    assert solution.certificate.goal == name
    assert solution.certificate.status in FINDINGS[name]


def test_applied_to_a_problem_a_criterion_stays_as_it_is():
    problem = problem_of(random_matrices(np.random.default_rng(0), "general", 3, 4), 2)
    for criterion in (MinMax(), MinMax(max_extra_loss=0.1), Equal(0.1), AtMost(1.0), Balanced()):
        before = dict(vars(criterion))
        applied = problem.with_criterion(criterion).goal
        assert vars(criterion) == before
        assert applied.get_params() == criterion.get_params()


@pytest.mark.parametrize("measure", MEASURES)
def test_every_measure_has_words(measure):
    problem = problem_of(random_matrices(np.random.default_rng(1), "general", 3, 4), 2)
    for criterion in (MinMax(measure), Equal(0.0, measure), MinMax(measure, 0.01)):
        certificate = ExactSolver(n_starts=2).solve(problem.with_criterion(criterion)).certificate
        assert MEASURES[measure].noun in certificate.measure
        assert all("{" not in sentence for sentence in certificate.sentences())
        kinds = [statement.kind for statement in certificate.statements()]
        assert any(kind.startswith(certificate.goal) for kind in kinds)


def test_parameters_of_a_named_criterion_can_be_set():
    fair = FairPCA(2, criterion="minmax").set_params(criterion__max_extra_loss=0.1, whiten=True)
    assert repr(fair.criterion) == repr(MinMax(max_extra_loss=0.1))
    assert fair.whiten is True
    with refused(ValueError, "'tolerance'", "MinMax"):
        FairPCA(2, criterion="minmax").set_params(criterion__tolerance=0.1)


# --- A further criterion ------------------------------------------------------


class TwoLargest(Criterion):
    """Minimise the mean of the two largest measures."""

    name = "two largest"
    findings = {  # noqa: RUF012
        "optimal": "Proven optimal: the two largest {plural} have the mean {at_most}.",
        "bounded": "The two largest {plural} have the mean {at_most}, at least {at_least}.",
    }

    def value(self, measures):
        return float(np.sort(measures)[-2:].mean())

    def domain(self, near=None, unit=1.0):
        # Weights of at most one half that sum to one, with what is left to a half as slack.
        k = len(self.affine.weights)
        if k <= 2:
            return Domain.at(np.full(k, 1 / k))
        balance = np.zeros((k + 1, 2 * k))
        balance[0, :k] = 1.0
        balance[1:, :k] = balance[1:, k:] = np.eye(k)
        start = np.concatenate([np.full(k, 1 / k), np.full(k, 0.5 - 1 / k)])
        directions = np.hstack([np.eye(k), np.zeros((k, k))])
        return Domain(np.zeros(k), directions, np.zeros(2 * k), balance, start)

    def bound(self, multipliers, slack, start):
        weights = _project(multipliers)
        return self.problem.least_weighted(weights, start) - 4 * EPS * self.affine.scale

    def smooth(self, measures, state, rho):
        moved = _project(state + rho * (measures - measures.max()))
        value = float(moved @ measures - ((moved - state) ** 2).sum() / (2 * rho))
        free = ((moved > 0) & (moved < 0.5)).astype(float)
        projector = np.diag(free) - np.outer(free, free) / max(free.sum(), 1.0)
        return moved, value, np.sqrt(rho) * projector


def _project(point):
    """The nearest weights from 0 to 1/2 that sum to one."""
    low, high = point.min() - 1.0, point.max()
    for _ in range(200):
        level = (low + high) / 2
        total = np.clip(point - level, 0.0, 0.5).sum()
        low, high = (level, high) if total > 1.0 else (low, level)
    weights = np.clip(point - level, 0.0, 0.5)
    return weights / weights.sum()


@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_a_new_criterion_is_solved_and_certified(k):
    rng = np.random.default_rng(k)
    angles = np.linspace(0, np.pi, 20_001)
    lines = np.array([np.cos(angles), np.sin(angles)])
    for kind in ("general", "diagonal", "other scales"):
        problem = problem_of(random_matrices(rng, kind, k, 2), 1).with_criterion(TwoLargest())
        kept = np.einsum("an,kab,bn->nk", lines, problem.matrices, lines)
        values = np.sort(problem.own_gains - kept, axis=1)[:, -2:].mean(axis=1)
        certificate = ExactSolver().solve(problem).certificate
        assert certificate.lower_bound <= values.min()
        assert certificate.value <= values.min() + 1e-6 * problem.scale
        assert certificate.value == pytest.approx(np.sort(certificate.measures)[-2:].mean())
        assert problem.dual_bound(certificate.multipliers) == certificate.lower_bound
        assert certificate.sentences()[0].startswith(("Proven optimal", "The two largest"))


def test_a_new_criterion_is_that_of_the_estimator(tmp_path):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(300, 5)) * [3, 2, 2, 1, 1], np.arange(300) % 4
    X[groups == 1] = X[groups == 1][:, ::-1]
    fair = FairPCA(2, criterion=TwoLargest()).fit(X, sensitive_features=groups)
    assert fair.certificate_.goal == "two largest"
    least = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    two = np.sort(least.group_table_.disparity)[-2:].mean()
    assert fair.certificate_.value <= two * (1 + 1e-9)
    with refused(ValueError, "TwoLargest"):
        save_model(fair, tmp_path / "m.fairpca")


def test_defaults_of_criteria_are_right_for_functions_other_than_the_largest():
    rng = np.random.default_rng(0)
    for seed in range(20):
        X, groups = rng.normal(size=(90, 4)) * rng.uniform(0.5, 3, 4), np.arange(90) % 3
        moments = GroupMoments.from_rows(X, groups)
        for measure in ("disparity", "loss", "share_lost", "kept_variance"):
            problem = Problem(moments, 2, TwoLargest(measure))
            goal, floor = problem.goal, problem.affine.floor
            assert goal.least == np.sort(floor)[-2:].mean()
            np.testing.assert_allclose(goal.plain_multipliers() @ floor, goal.least, rtol=1e-6)
            found = ExactSolver(random_state=seed).solve(problem).certificate
            assert found.value == pytest.approx(goal.value(found.measures))
            assert found.lower_bound <= found.value


def test_a_bound_above_the_value_is_refused_and_findings_need_a_name():
    class TooHigh(MinMax):
        name = "too high"
        findings: ClassVar[dict[str, str]] = {"optimal": "{at_most}", "bounded": "{at_most}"}
        has_root = False

        def bound(self, multipliers, slack, start):
            return 1.0005 * super().bound(multipliers, slack, start) + self.affine.scale / 2000

    moments = GroupMoments.from_rows(
        np.random.default_rng(0).normal(size=(90, 4)) * [3, 2, 1, 1], np.arange(90) % 3
    )
    with refused(RuntimeError, "TooHigh.bound", "above"):
        ExactSolver().solve(Problem(moments, 2, TooHigh()))
    with refused(TypeError, "name"):
        type("Nameless", (MinMax,), {"findings": {"optimal": "{at_most}"}})
    with refused(TypeError, "Thief", "MinMax", "'minmax'"):
        type("Thief", (MinMax,), {"name": "minmax", "findings": {"optimal": "{at_most}"}})


def test_balanced_beside_a_column_that_dwarfs_the_others():
    """Its size changes nothing but the directions of what is left."""
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(240, 6)) * [3, 2, 1.5, 1, 1, 1], np.repeat([*"abc"], [150, 70, 20])
    X[groups == "b"] = X[groups == "b"][:, [1, 0, 3, 2, 4, 5]]
    values = []
    for size in (1e5, 1e8):
        Y = X * [1, 1, 1, 1, 1, size]
        certificate = (
            FairPCA(2, criterion="balanced").fit(Y, sensitive_features=groups).certificate_
        )
        assert certificate.status == "optimal"
        values.append(certificate.value)
    np.testing.assert_allclose(values[1], values[0], rtol=1e-5)


def test_a_criterion_with_a_parameter_of_its_own_is_approached_as_before():
    class Named(MinMax):
        def __init__(self, note, measure="disparity", max_extra_loss=None):
            super().__init__(measure, max_extra_loss)
            self.note = note

    assert Named("x").is_approached
    assert not Named("x", max_extra_loss=0.1).is_approached
    assert not MinMax("share_lost").is_approached
