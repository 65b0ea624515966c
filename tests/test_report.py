"""What a report says, and that its numbers are those of the front."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.preprocessing import StandardScaler

from fairpca import FairnessWarning, FairPCA, GroupMoments, Problem, pareto_front
from fairpca.datasets import load_adult
from fairpca.report import _resampling as resampling
from fairpca.report import report
from fairpca.report._names import isolated, shown_names
from fairpca.report._resampling import disparity_intervals
from fairpca.report._words import percent

from hostile import HOSTILE


def two_groups(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)) * [3, 3, 2, 2, 1, 1]
    X[: n // 3] = X[: n // 3, ::-1]
    return X, np.array(["a"] * (n // 3) + ["b"] * (n - n // 3))


@pytest.fixture(scope="module")
def adult_race():
    adult = load_adult(sensitive="race")
    X = StandardScaler().set_output(transform="pandas").fit_transform(adult.data)
    return (
        X,
        adult.sensitive_features,
        report(X, sensitive_features=adult.sensitive_features, n_components=5, n_points=20),
    )


def test_numbers_are_those_of_the_front_and_of_fits(adult_race):
    X, groups, made = adult_race
    summary = made.summary
    front = pareto_front(X, sensitive_features=groups, n_components=5, n_points=20)
    assert [point["spread"] for point in summary["points"]] == front.spread.tolist()
    fair = FairPCA(5).fit(X, sensitive_features=groups)
    last = summary["points"][-1]
    np.testing.assert_allclose(last["losses"], fair.group_table_.loss, atol=1e-6)
    np.testing.assert_allclose(summary["pca"]["disparities"], fair.group_table_.pca_disparity)
    own = [group["own_loss"] for group in summary["groups"]]
    np.testing.assert_allclose(np.subtract(last["losses"], own), last["disparities"], atol=1e-9)
    assert summary["rows"] == 32561
    assert [group["rows"] for group in summary["groups"]] == fair.group_table_.count.tolist()
    point = summary["points"][3]
    model = made.front.estimator(3)
    for shown, component in zip(point["components"], model.components_, strict=True):
        for name, weight in shown:
            assert weight == component[X.columns.get_loc(name)]
        assert abs(shown[0][1]) == np.abs(component).max()


def test_finding_of_adult_by_race(adult_race):
    *_, made = adult_race
    first, second, third = made.summary["finding"]
    disparities = made.summary["pca"]["disparities"]
    ratio = max(disparities) / min(disparities)
    assert f"Amer-Indian-Eskimo loses {ratio:.2g} times as much as the group White" in first
    extra = made.front.extra_loss[-1]
    assert f"costs {100 * extra:.3g} % more loss" in second
    assert "proven that none is cheaper" in second
    cheap = made.front.select(max_extra_loss=0.01)
    cut = 1 - made.front.spread[cheap] / made.front.spread[0]
    assert third == (
        f"At most 1 % more loss already cuts the difference between groups by {100 * cut:.3g} %."
    )
    assert [warning["title"] for warning in made.summary["warnings"]] == ["Equality levels down"]
    assert made.summary["minmax_disparities"] is not None
    assert "every group is better off" in made.summary["warnings"][0]["text"]
    assert str(made).startswith(first)


def test_summary_is_made_once_and_json_is_all_of_it(adult_race):
    *_, made = adult_race
    assert made.summary is made.summary
    assert json.loads(made.json()) == made.summary


def test_page_is_self_contained_and_small(adult_race, tmp_path):
    *_, made = adult_race
    page = made.html()
    assert len(page.encode()) < 300_000
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    for outside in ("http://", "https://", "src=", "@import", "url("):
        found = page.replace("http://www.w3.org/2000/svg", "")  # a name, not an address
        assert outside not in found
    path = tmp_path / "report.html"
    path.write_text("before")
    made.write_html(path)
    assert path.read_text(encoding="utf-8") == page
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(FileNotFoundError):
        made.write_html(tmp_path / "missing" / "report.html")


def test_large_report_stays_below_five_megabytes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 120)) * np.linspace(2.0, 0.5, 120)
    X[:400] = X[:400, ::-1]
    made = report(X, sensitive_features=np.arange(800) // 400, n_components=40, n_resamples=2)
    assert len(made.front) == 50
    assert len(made.html().encode()) < 5_000_000
    assert len(made.summary["points"][0]["components"]) == 10


def test_open_shows_the_written_page(monkeypatch, tmp_path):
    X, groups = two_groups()
    made = report(X, sensitive_features=groups, n_components=2, n_points=2, n_resamples=0)
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made.open()
    (page,) = tmp_path.rglob("*.html")
    assert opened == [page.as_uri()]
    assert page.read_text(encoding="utf-8") == made.html()


def test_shown_code_makes_the_report_and_the_model(monkeypatch):
    X, groups = two_groups()
    weights = np.linspace(1.0, 2.0, len(X))
    made = report(
        X,
        sensitive_features=groups,
        n_components=2,
        n_points=7,
        loss="sum",
        centering="group",
        sample_weight=weights,
        random_state=3,
    )
    opened = []
    monkeypatch.setattr("fairpca.report.Report.open", lambda self: opened.append(self))
    names = {"X": X, "groups": groups, "weights": weights}
    exec(made.code.replace("{point}", "4"), names)
    assert opened[0].json() == made.json()
    np.testing.assert_array_equal(names["fair"].components_, made.front.estimator(4).components_)


def test_finding_where_there_is_nothing_to_find():
    X, _ = two_groups()
    with pytest.warns(FairnessWarning, match="one group only"):
        alone = report(X, sensitive_features=["all"] * len(X), n_components=2)
    assert alone.summary["finding"] == [
        "There is one group only: ordinary PCA is as fair as can be."
    ]
    same = np.vstack([X, X])
    equal = report(same, sensitive_features=[0] * len(X) + [1] * len(X), n_components=2)
    assert "already takes the same" in equal.summary["finding"][0]
    assert len(equal.summary["points"]) == 1
    assert 'type="range"' not in equal.html()


def test_finding_where_one_group_pays_nothing():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(400, 3)) * [9, 0.1, 0.1], rng.normal(size=(40, 3))])
    groups = ["main"] * 400 + ["side"] * 40
    made = report(X, sensitive_features=groups, n_components=1, n_resamples=20)
    assert "main next to nothing" in made.summary["finding"][0]


def test_impossible_equality_is_said():
    # Two groups along one axis that differ in size, so that only that axis is fair to both, and
    # a third along the other axis.
    rng = np.random.default_rng(0)
    first = rng.normal(size=(200, 2)) * [3, 0.1]
    second = rng.normal(size=(200, 2)) * [0.1, 3]
    third = rng.normal(size=(200, 2)) * [6, 0.1]
    X = np.vstack([first, second, third])
    made = report(X, sensitive_features=np.repeat(["x", "y", "z"], 200), n_components=1, n_points=5)
    cut = 1 - made.front.spread[-1] / made.front.spread[0]
    assert made.summary["finding"][1].startswith(
        "It is proven that no subspace of 1 dimension takes the same from every group. The fairest "
        f"one found cuts the difference between groups by {100 * cut:.3g} % and costs "
    )
    titles = {warning["title"]: warning["text"] for warning in made.summary["warnings"]}
    assert f"{made.front.spread_bound:.4g}" in titles["Equality is impossible"]
    assert made.summary["spread_bound"] > 0


def test_small_groups_and_a_dominant_column_are_said():
    X, groups = two_groups()
    groups = groups.astype(object)
    groups[:12] = "few"
    X[:, 2] *= 100
    made = report(X, sensitive_features=groups, n_components=2, n_points=3, n_resamples=50)
    titles = {warning["title"]: warning["text"] for warning in made.summary["warnings"]}
    assert titles["Small groups"].startswith("few (12 rows): so few rows say little")
    share = X[:, 2].var() / X.var(axis=0).sum()
    assert f"column 2 has {100 * share:.3g} %" in titles["One column decides"]


def test_chance_is_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    made = report(X, sensitive_features=[0, 1] * 40, n_components=2, n_points=3)
    low, high = made.summary["resampling"]["difference"]
    assert low < 0 < high
    assert made.summary["finding"][-1].startswith("The difference with ordinary PCA may be chance")
    X, groups = two_groups(3000)
    made = report(X, sensitive_features=groups, n_components=2, n_points=3)
    assert made.summary["resampling"]["difference"][0] > 0
    assert "chance" not in " ".join(made.summary["finding"])


@pytest.mark.parametrize("n", [25, 200])
def test_intervals_cover_the_truth(n):
    """Rows from a known distribution: its disparity lies in 95 % of the intervals, nearly."""
    rng = np.random.default_rng(n)
    d, r, runs = 6, 2, 300
    spectrum = np.array([4.0, 3.0, 1.5, 1.0, 0.5, 0.2])
    covered = 0
    for _ in range(runs):
        basis = np.linalg.qr(np.eye(d)[:, :r] + 0.4 * rng.normal(size=(d, r)))[0]
        truth = spectrum[:r].sum() - np.trace(basis.T * spectrum @ basis)
        X = rng.normal(size=(n, d)) * np.sqrt(spectrum)
        problem = Problem(GroupMoments.from_rows(X), r, centering="group")
        found = disparity_intervals(problem, X, np.zeros(n, int), None, [basis], 100, rng)
        covered += found.low[0, 0] <= truth <= found.high[0, 0]
    # 95 % less what a small sample and 100 draws cost; far above what no allowance for bias gives.
    assert 0.90 <= covered / runs <= 0.99


def test_pieces_of_large_groups_give_the_same_intervals(monkeypatch):
    X, groups = two_groups(3000)
    codes = (groups == "b").astype(int)
    problem = Problem(GroupMoments.from_rows(X, groups), 2)
    widths = []
    for pieces in (5000, 150):
        monkeypatch.setattr(resampling, "_PIECES", pieces)
        found = disparity_intervals(
            problem, X, codes, None, [problem.pca_basis], 1000, np.random.default_rng(0)
        )
        widths.append(found.high - found.low)
    np.testing.assert_allclose(widths[1], widths[0], rtol=0.2)


def test_intervals_in_the_span_of_what_matters(monkeypatch):
    rng = np.random.default_rng(0)
    spectrum = 1.0 / np.arange(1, 41)
    X = rng.normal(size=(600, 40)) * np.sqrt(spectrum)
    X[:300, :4] = X[:300, 3::-1]
    codes = np.repeat([0, 1], 300)
    problem = Problem(GroupMoments.from_rows(X, codes), 3)
    bases = [problem.pca_basis, problem.own_subspaces[0]]
    found = []
    for most in (200, 20):
        monkeypatch.setattr(resampling, "_MOST_COLUMNS", most)
        drawn = disparity_intervals(problem, X, codes, None, bases, 200, np.random.default_rng(0))
        found.append(np.array([drawn.low, drawn.high]))
    np.testing.assert_allclose(found[1], found[0], atol=0.05 * spectrum.sum() / 4)
    assert (found[0][1] > found[0][0]).all()


@pytest.mark.parametrize("loss", ["mean", "sum"])
@pytest.mark.parametrize("centering", ["global", "group"])
def test_weights_count_as_rows(loss, centering):
    """A row of weight 3 in every piece moves the estimate as three rows do."""
    X, groups = two_groups(120)
    weights = np.random.default_rng(1).integers(0, 4, len(X)).astype(float)
    weights[0] = 0.0
    options = {
        "n_components": 2,
        "n_points": 2,
        "n_resamples": 50,
        "loss": loss,
        "centering": centering,
    }
    weighted = report(X, sensitive_features=groups, sample_weight=weights, **options).summary
    times = weights.astype(int)
    repeated = report(
        np.repeat(X, times, axis=0), sensitive_features=np.repeat(groups, times), **options
    ).summary
    np.testing.assert_allclose(
        weighted["pca"]["disparities"], repeated["pca"]["disparities"], rtol=1e-9
    )
    for summary in (weighted, repeated):
        assert np.less(summary["pca"]["low"], summary["pca"]["high"]).all()


def test_a_group_of_one_row_has_no_interval():
    X, groups = two_groups()
    groups = groups.astype(object)
    groups[0] = "alone"
    with pytest.warns(FairnessWarning, match="single row"):
        made = report(X, sensitive_features=groups, n_components=2, n_points=2, n_resamples=5)
    assert made.summary["pca"]["low"][1:] != [None, None]
    assert made.summary["pca"]["low"][made.front.problem.moments.labels.index("alone")] is None
    assert "unknown" in made.html()


def test_sparse_rows_and_missing_labels():
    X, groups = two_groups()
    options = {"n_components": 2, "n_points": 3, "n_resamples": 20}
    dense = report(X, sensitive_features=groups, **options).summary
    sparse = report(scipy.sparse.csr_array(X), sensitive_features=groups, **options).summary
    np.testing.assert_allclose(sparse["pca"]["low"], dense["pca"]["low"], rtol=1e-8)
    groups = groups.astype(object)
    groups[:50] = None
    made = report(X, sensitive_features=groups, missing_labels="group", **options)
    assert "(missing)" in [group["name"] for group in made.summary["groups"]]


def test_progress_is_told():
    X, groups = two_groups()
    told = []
    report(
        X,
        sensitive_features=groups,
        n_components=2,
        n_points=4,
        n_resamples=10,
        progress=lambda *what: told.append(what),
    )
    assert told[:4] == [("finding the points of the front", done, 4) for done in (1, 2, 3, 4)]
    assert told[-1] == ("drawing rows anew", 20, 20)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"n_resamples": 1}, "n_resamples must be 0 or at least 2"),
        ({"n_resamples": -1}, "n_resamples must be an integer of at least 0"),
        ({"n_points": 1}, "n_points must be at least 2"),
        ({"title": 3}, "title must be text"),
        ({"code": b"x"}, "code must be text"),
        ({"n_components": 0.9}, "n_components must be an integer"),
        ({"sensitive_features": None}, "sensitive_features must name the group"),
        ({"loss": "median"}, "loss must be"),
    ],
)
def test_wrong_options_are_refused_before_any_work(wrong, words, monkeypatch):
    X, groups = two_groups()
    monkeypatch.setattr("fairpca.front.sweep", lambda *_: pytest.fail("work was done"))
    with pytest.raises(ValueError, match=words):
        report(X, **({"sensitive_features": groups, "n_components": 2} | wrong))


def test_missing_jinja2_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    X, groups = two_groups()
    with pytest.raises(ImportError, match=r"fairpca\[report\]"):
        report(X, sensitive_features=groups, n_components=2)


def test_names_are_short_distinct_and_harmless():
    shown = shown_names([*HOSTILE, "y" * 99 + "1", "y" * 99 + "2", "", "a\u200db"])
    assert len(set(shown)) == len(shown)
    assert max(map(len, shown)) <= 45
    assert not any(c in name for name in shown for c in "\x1b\u202e\u2066\n\r\t")
    assert "👩‍👩‍👧 ✓" in shown
    assert shown[-1] == "a\u200db"
    assert shown[-2] == "(no name)"
    assert isolated("plain") == "plain"
    assert isolated("שלום") == "\u2068" + "שלום" + "\u2069"


def test_hostile_names_do_not_reach_the_markup():
    rng = np.random.default_rng(0)
    k = len(HOSTILE)
    # Groups that do not differ are found to be alike without a search.
    X = pd.DataFrame(np.tile(rng.normal(size=(10, k)), (k, 1)), columns=list(HOSTILE))
    made = report(
        X,
        sensitive_features=np.repeat(np.array(HOSTILE, dtype=object), 10),
        n_components=2,
        n_points=2,
        n_resamples=2,
        title='"><img src=x onerror=alert(1)>',
    )
    page = made.html()
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "<img" not in page
    assert "x" * 41 not in page
    frame = made._repr_html_()
    assert frame.count("<") == 2
    json.loads(made.json())


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (-1e-17, "0 %"),
        (1e-7, "less than 0.001 %"),
        (0.00024, "0.024 %"),
        (0.0402, "4.02 %"),
        (0.9999, "100 %"),
        (1.5, "150 %"),
        (1234.5, "123,450 %"),
    ],
)
def test_percent(share, text):
    assert percent(share) == text
