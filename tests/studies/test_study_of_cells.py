"""The study of cells: its page is made of its figures, and a split of it is computed again."""

import json

import numpy as np
import pytest

from studies import cells

DATA = json.loads(cells.DATA.read_text("utf-8"))


def test_the_page_is_made_of_the_figures():
    assert cells.TARGET.read_text("utf-8") == cells.page(DATA)


def test_every_scenario_has_all_splits_of_all_methods():
    assert list(DATA) == list(cells.SCENARIOS)
    for scenario, found in DATA.items():
        expected = {*cells.METHODS} | ({cells.HARMONY} if scenario in cells.SIMULATED else set())
        assert set(found) == expected
        for figures in found.values():
            assert {len(values) for values in figures.values()} == {cells.N_SPLITS}


@pytest.mark.parametrize("scenario", cells.SIMULATED)
@pytest.mark.parametrize("method", ["PCA", "balanced", "averaged own subspaces", "soft", "minmax"])
def test_a_simulated_split_is_as_it_was(scenario, method):
    split = cells.SCENARIOS[scenario](cells.FIRST_SEED)
    loadings = cells.METHODS[method](split)
    Z = loadings.transform(split.new)
    known = {name: values[0] for name, values in DATA[scenario][method].items()}
    assert cells.lost(split, loadings)[0] == pytest.approx(known["worst"], abs=2e-5)
    one_cell = 1.0 / min((split.new_types == name).sum() for name in split.rare)
    assert cells.recall(split, Z) == pytest.approx(known["recall"], abs=one_cell)
    assert cells.mixing(split, Z) == pytest.approx(known["mixing"], abs=1e-3)


def test_recall_and_mixing_of_cells_that_lie_apart():
    split = cells.simulated_split(0)
    _, types = np.unique(split.new_types, return_inverse=True)
    _, batches = np.unique(split.new_groups, return_inverse=True)
    noise = np.random.default_rng(0).normal(size=(len(types), 2)) * 1e-3
    assert cells.recall(split, types[:, None] + noise) == 1.0
    assert cells.recall(split, noise) < 0.2
    assert cells.mixing(split, types[:, None] + noise) == pytest.approx(1.0, abs=0.05)
    assert cells.mixing(split, batches[:, None] + noise) < 0.01  # few have too few of their type


@pytest.mark.parametrize(
    ("scenario", "standard_errors", "expected"),
    [("types", 1.5, 0), ("types", 2.5, 1), ("batches alike", 1.5, 0), ("batches alike", 2.5, 1)],
)
def test_clear_is_beyond_two_standard_errors(scenario, standard_errors, expected):
    n = cells.N_SPLITS
    noise = np.resize([1.0, -1.0], n)
    share = 1 / n + (0 if scenario in cells.SIMULATED else 1)
    error = np.sqrt(share * noise.var(ddof=1))
    found = {"PCA": {"worst": [0.0] * n}, "soft": {"worst": noise - standard_errors * error}}
    assert cells.verdict(scenario, found, "soft", "worst") == expected
