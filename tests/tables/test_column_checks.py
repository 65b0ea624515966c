"""Which columns of numbers are taken for keys or weights, and which for measurements."""

import numpy as np
import pytest

from fairpca.tables.column_checks import ColumnSummary


def refusal(values, name="x", batches=1):
    summary = ColumnSummary(name)
    for part in np.array_split(np.asarray(values, dtype=float), batches):
        summary.see(part)
    return summary.refusal()


def drawn(n, width, seed=0):
    """So many different whole numbers, in no order."""
    return np.random.default_rng(seed).choice(width, n, replace=False)


@pytest.mark.parametrize("batches", [1, 7])
@pytest.mark.parametrize(
    ("values", "name", "is_key"),
    [
        (drawn(23, 365), "birthday", False),  # with probability 0.493 all of 23 people differ
        (drawn(60, 365), "birthday", True),  # 0.006
        (drawn(300, 100_000), "income", False),  # 0.64
        (drawn(300, 5_000), "patient", True),
        ([*drawn(299, 5_000), 7, 7], "patient", False),
        (np.arange(50), "number", True),
        (np.arange(9), "number", False),  # so few rows say nothing
        (1000 + 17 * np.arange(60) + np.arange(60) % 3, "time", False),
        (np.arange(60) / 2, "time", False),
        (drawn(60, 10**6), "rownames", True),
        (drawn(60, 10**6), "index", True),
        (np.arange(60) % 20, "id", True),  # of people with several rows
        (np.arange(60) % 20, "price_index", False),
        (np.arange(60) % 2, "id", False),
        (drawn(60, 10**6), "paid", False),
    ],
)
def test_keys_are_what_chance_does_not_make(values, name, is_key, batches):
    found = refusal(values, name, batches)
    assert (found is not None) == is_key
    if is_key:
        assert found.fix == {"drop": (name,)}
        assert f"--as-number {name}" in found.in_options


def test_the_chance_that_all_differ_is_that_of_draws():
    """The rule's probability, against tables of whole numbers that are drawn at random."""
    rng = np.random.default_rng(0)
    n, width = 40, 400
    tables = rng.integers(0, width, (20_000, n))
    differ = np.mean([len(set(row)) == n for row in tables])
    expected = np.exp(np.log1p(-np.arange(n) / width).sum())
    assert differ == pytest.approx(expected, abs=4 * np.sqrt(expected / len(tables)))


WEIGHTS = ["fnlwgt", "sampling_weight", "Person Weight", "WTFINL", "perwt", "wgt08", "hh_weight"]


@pytest.mark.parametrize("name", [*WEIGHTS, "weight", "wt", "birth_weight", "lwt", "repwt"])
def test_survey_weights_are_told_by_their_names(name):
    found = refusal(np.random.default_rng(0).normal(70, 9, 60), name)
    assert (found is not None) == (name in WEIGHTS)
    if found is not None:
        assert found.fix == {"weights": name}
