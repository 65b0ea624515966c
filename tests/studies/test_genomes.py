"""The study of genomes and words: its page, its intervals, its coordinates, and a sample anew."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA

from studies import genomes
from studies.new_data import halves

pytestmark = pytest.mark.untraced

DATA = json.loads(genomes.DATA.read_text(encoding="utf-8"))


def test_page_and_data_follow_from_each_other():
    assert genomes.TARGET.read_text(encoding="utf-8") == genomes.page(DATA)
    assert genomes.DATA.read_text(encoding="utf-8") == genomes.dumped(DATA)
    assert genomes.PICTURE.stat().st_size > 20_000


def test_the_guide_and_the_paper_have_the_figures_of_the_study():
    root = genomes.TARGET.parents[1]
    page, paper = (
        " ".join((root / name).read_text(encoding="utf-8").split())
        for name in ("docs/guide/criterion.md", "paper/paper.md")
    )

    def accuracy(method, r):
        return f"{100 * np.mean(DATA['regions'][method][str(r)]['accuracy']):.0f} %"

    def auc(history, method):
        return f"{np.mean(DATA['small'][history]['20'][method]['auc']):.2f}"

    def inflation(method):
        values = [
            found[method]["inflation"] for part in DATA["small"].values() for found in part.values()
        ]
        return f"{max(np.mean(each) for each in values):.2f}"

    ours, lda = "minmax, share", "LDA of 50 components"
    four = accuracy(ours, 4), accuracy("PCA", 4), accuracy(lda, 4)
    assert f"recognised: {accuracy('balanced PCA', 2)}, PCA {accuracy('PCA', 2)}" in page
    assert "with four: {}, PCA {}, LDA {}".format(*four) in page
    assert (
        f"{auc('out of Africa', 'minmax')} out of Africa (PCA {auc('out of Africa', 'PCA')})"
        in page
    )
    assert f"{auc('stepping stones', 'minmax')} among stepping stones" in page
    assert f"inflation up to {inflation('minmax')} with" in page
    assert f"and {inflation(ours)} with" in page
    assert f"PCA at most {inflation('PCA')}" in page
    assert "balanced accuracy of {}, those of PCA with {}".format(*four) in paper
    assert f"reaches {four[2]} there and {accuracy(lda, 6)} with six" in paper


def test_an_interval_is_a_t_interval_that_allows_for_shared_rows():
    values = [1.0, 2.0, 3.0, 4.0]
    mean, half = genomes.interval(values, halves=False)
    assert mean == 2.5
    # 3.182 is the quantile of Student's t with three degrees of freedom.
    assert half == pytest.approx(3.182 * math.sqrt(5 / 3 / 4), rel=1e-3)
    assert genomes.interval(values, halves=True)[1] == pytest.approx(half * math.sqrt(5))


def test_coordinates_in_the_span_keep_distances_and_losses():
    rng = np.random.default_rng(0)
    fitted, others = rng.normal(size=(30, 200)), rng.normal(size=(20, 200))
    inside, reduced, outside = genomes.in_their_span(fitted, others)
    centred = fitted - fitted.mean(axis=0)
    np.testing.assert_allclose(inside @ inside.T, centred @ centred.T, atol=1e-9)
    labels = np.repeat(["a", "b"], 10)
    one, other = PCA(3).fit(inside), PCA(3).fit(fitted)
    left = np.square(others - other.inverse_transform(other.transform(others))).sum(axis=1)
    whole = np.square(others - fitted.mean(axis=0)).sum(axis=1)
    expected = max(left[labels == x].sum() / whole[labels == x].sum() for x in ("a", "b"))
    assert genomes.share_lost(one, reduced, labels, outside) == pytest.approx(expected)


def test_a_discriminant_of_equal_priors_sees_a_small_group():
    rng = np.random.default_rng(0)
    labels = np.repeat(["large", "small"], [300, 30])
    X = rng.normal(size=(330, 6)) * [5, 1, 1, 1, 1, 1]
    X[labels == "small", 1] += 3.0
    assert genomes.discriminated(PCA(2).fit(X), X, labels, X, labels) > 0.85
    assert genomes.discriminated(PCA(1).fit(X), X, labels, X, labels) < 0.65
    assert genomes.chosen_method(X, labels, 1, 0) in genomes.CANDIDATES


def test_inflation_is_that_of_a_regression():
    rng = np.random.default_rng(0)
    covariates, variants, y = (rng.normal(size=shape) for shape in ((80, 2), (80, 9), 80))
    statistics = []
    for g in variants.T:
        design = np.column_stack([np.ones(80), covariates, g])
        slope, residual = np.linalg.lstsq(design, y, rcond=None)[:2]
        variance = residual[0] / 76 * np.linalg.inv(design.T @ design)[3, 3]
        statistics.append(slope[3] ** 2 / variance)
    expected = np.median(statistics) / genomes.MEDIAN_CHI2
    assert genomes._inflation(covariates, variants, y) == pytest.approx(expected)


def test_a_sample_is_found_again():
    pytest.importorskip("rdata")
    folder = Path(os.environ.get("R_LIBS_SITE", "/usr/lib/R/site-library"))
    if not (folder / "adegenet").exists():
        pytest.skip("R's adegenet is not installed")
    X, groups, _ = genomes.alleles("microbov")
    chosen = halves(groups, genomes.FIRST_SPLIT)
    X = genomes.filled(X, chosen)
    inside, others, outside = genomes.in_their_span(X[chosen], X[~chosen])
    for name in ("PCA", "minmax, share"):
        model = genomes.METHODS[name](inside, groups[chosen], 4, 0)
        train, test = (inside, groups[chosen]), (others, groups[~chosen])
        accuracy, _ = genomes.recognised(model, name, train, test)
        known = DATA["breeds"][name]["4"]
        assert accuracy == pytest.approx(known["accuracy"][0], abs=0.02)
        lost = genomes.share_lost(model, others, groups[~chosen], outside)
        assert lost == pytest.approx(known["lost"][0], abs=0.002)
