"""What a report says, and that its numbers are those of the front."""

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from markupsafe import escape
from sklearn.preprocessing import StandardScaler

from fairpca import (
    ExactSolver,
    FairnessWarning,
    FairPCA,
    GroupMoments,
    MinMax,
    compare,
    pareto_front,
)
from fairpca.data import GroupedData
from fairpca.datasets import load_adult
from fairpca.folds import row_folds
from fairpca.measures import MEASURES
from fairpca.report import report
from fairpca.report._facts import Facts, describe
from fairpca.report._names import (
    harmless,
    in_quotes,
    number,
    percent,
    shown_names,
)
from fairpca.report._words import compared, finding, spoken

from hostile import HOSTILE
from texts import recorded, refused, warned


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
    # The moments are summed up by fold, so that the last digits differ.
    for name, expected in (("unfairness", front.largest), ("spread", front.spread)):
        np.testing.assert_allclose([each[name] for each in summary["points"]], expected, rtol=1e-9)
    fair = FairPCA(5, criterion="minmax").fit(X, sensitive_features=groups)
    last = summary["points"][-1]
    np.testing.assert_allclose(last["losses"], fair.group_table_.loss, atol=1e-6)
    np.testing.assert_allclose(summary["pca"]["disparities"], fair.group_table_.pca_disparity)
    assert summary["pca"]["measures"] == summary["pca"]["disparities"]
    np.testing.assert_allclose(last["measures"], front.measures[-1], rtol=1e-9)
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
    who, cost = made.summary["finding"]
    pays = made.summary["points"][-1]["compared"]
    disparities = np.array(made.summary["pca"]["disparities"])
    front, variance = made.front, made.front.problem.traces
    worst, best = disparities.argmax(), disparities.argmin()
    with_pca = f"{100 * disparities[worst] / variance[worst]:.3g} %"
    least = f"{100 * disparities[best] / variance[best]:.3g} %"
    recorded(who, "“race”", f"“Amer-Indian-Eskimo” loses {with_pca}", f"“White” {least}")
    # Rounded as on the button.
    most = percent(front.largest[-1] / variance[worst])
    recorded(cost, "5 dimensions", f"{most} of the variance of “Amer-Indian-Eskimo”", with_pca)
    recorded(cost, f"{100 * front.extra_loss[-1]:.3g} % more loss", "proven")
    recorded(pays, "4 of 5 groups are better off", "1 is worse off")
    fair = made.front.estimator(-1)
    assert pays == fair.group_table_.sentences()
    assert made.summary["warnings"] == []
    assert str(made).startswith(made.summary["headline"])
    assert made.sentences()[2] == who
    assert made.summary["unfairness_bound"] == front.unfairness_bound


@pytest.mark.parametrize(
    ("measure", "who", "cost", "compares"),
    [
        (
            "relative_disparity",
            ("“Amer-Indian-Eskimo” loses 40.5 % of its variance", "“White” 3.89 %"),
            ("relative disparity is 7.61 % of the variance of “Amer-Indian-Eskimo”",),
            ("Amer-Indian-Eskimo loses 32.9 % of its variance less",),
        ),
        (
            "loss",
            ("“Amer-Indian-Eskimo” loses 55.9 % of its variance", "“White” 51.2 %"),
            ("largest loss is 27.6 % of the variance of “Asian-Pac-Islander”", "55.9 %"),
            ("Amer-Indian-Eskimo loses 33.2 % of its variance less",),
        ),
        (
            "kept_variance",
            ("“White” keeps 48.8 % of its variance", "“Asian-Pac-Islander” 57.7 %"),
            ("least kept variance is 52.6 % of the variance of “White”", "48.8 %"),
            ("White loses 3.8 % of its variance less",),
        ),
        (
            "share_kept",
            ("“Amer-Indian-Eskimo” keeps 44.1 % of its variance", "“Other” 59.1 %"),
            ("least share kept is 49.4 % of the variance of “Amer-Indian-Eskimo”", "44.1 %"),
            ("Amer-Indian-Eskimo loses 5.3 % of its variance less",),
        ),
    ],
)
def test_words_of_other_measures(adult_race, measure, who, cost, compares):
    X, groups, _ = adult_race
    given = {"sensitive_features": groups, "n_components": 5, "n_points": 3}
    made = report(X, measure=measure, **given)
    recorded(made.summary["finding"][0], *who)
    recorded(made.summary["finding"][1], *cost)
    recorded(made.summary["points"][-1]["compared"], *compares)
    points = made.summary["points"]
    words = [*made.summary["finding"], *made.summary["chance"]]
    words += [point[name] for point in points for name in ("spoken", "compared")]
    assert not re.search(r"-\d", " ".join(words))
    sign = -1 if measure in ("kept_variance", "share_kept") else 1
    for point, measures in zip(points, made.front.measures, strict=True):
        np.testing.assert_allclose(point["measures"], sign * measures)
        assert point["unfairness"] == sign * measures.max()
        for low, value, high in zip(point["low"], point["measures"], point["high"], strict=True):
            assert 0 <= low < high
            if measure != "relative_disparity":  # whose estimates have no bias to speak of
                assert low < value < high
    assert (
        made.summary["order"]
        == np.argsort(-sign * np.array(made.summary["pca"]["measures"])).tolist()
    )


def test_a_share_of_dimensions(adult_race):
    X, groups, _ = adult_race
    made = report(X, sensitive_features=groups, n_components=0.8, n_points=2, n_resamples=0)
    fair = FairPCA(0.8, criterion="minmax").fit(X, sensitive_features=groups)
    assert made.summary["dimensions"] == fair.n_components_
    assert "n_components=0.8" in made.code


def test_summary_is_made_once_and_json_is_all_of_it(adult_race):
    *_, made = adult_race
    assert made.summary is made.summary
    assert json.loads(made.json()) == made.summary


def test_page_is_self_contained_and_small(adult_race, tmp_path):
    *_, made = adult_race
    page = made.html()
    assert len(page.encode()) < 300_000
    assert "content=\"default-src 'none'; " in page
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
    X = rng.normal(size=(800, 120)) * np.linspace(3.0, 0.1, 120)
    X[:300] = X[:300, ::-1]
    made = report(X, sensitive_features=np.arange(800) // 300 > 0, n_components=40, n_resamples=2)
    assert len(made.front) == 21
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


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"measure": "relative_disparity"},
        {"measure": "share_kept", "n_components": np.float64(0.7)},
    ],
)
def test_shown_code_makes_the_report_and_the_model(choices, monkeypatch):
    X, groups = two_groups()
    weights = np.linspace(1.0, 2.0, len(X))
    made = report(
        X,
        sensitive_features=groups,
        n_points=7,
        sample_weight=weights,
        n_resamples=30,
        title='It\'s "quoted"',
        solver=ExactSolver(random_state=3),
        **{"n_components": 2, **choices},
    )
    opened = []
    monkeypatch.setattr("fairpca.report.Report.open", lambda self: opened.append(self))
    names = {"X": X, "groups": groups, "weights": weights}
    exec(made.code.replace("{point}", "4"), names)
    assert opened[0].json() == made.json()
    expected = made.front.estimator(4).components_
    np.testing.assert_allclose(names["fair"].components_, expected, rtol=0.0, atol=1e-12)


def test_finding_where_there_is_nothing_to_find():
    X, _ = two_groups()
    with warned(FairnessWarning, "one group"):
        alone = report(X, sensitive_features=["all"] * len(X), n_components=2)
    (only,) = alone.summary["finding"]
    recorded(only, "one group", "as fair as can be")
    same = np.vstack([X, X])
    equal = report(same, sensitive_features=[0] * len(X) + [1] * len(X), n_components=2)
    recorded(equal.summary["finding"][0], "same disparity")
    assert len(equal.summary["points"]) == 1
    assert 'type="range"' not in equal.html()


def test_finding_where_one_group_pays_nothing():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(400, 3)) * [9, 0.1, 0.1], rng.normal(size=(40, 3)) * [1, 1, 9]])
    groups = ["main"] * 400 + ["side"] * 40
    made = report(X, sensitive_features=groups, n_components=1, n_resamples=0)
    recorded(made.summary["finding"][0], "“main” less than 0.001 %")


def test_small_groups_and_a_dominant_column_are_said():
    X, groups = two_groups()
    groups = groups.astype(object)
    groups[:12] = "few"
    X[:, 2] *= 100
    made = report(X, sensitive_features=groups, n_components=2, n_points=3, n_resamples=50)
    titles = {warning["title"]: warning["text"] for warning in made.summary["warnings"]}
    recorded(titles["Small groups"], "“few” (12 rows)", "fewer than 30")
    share = X[:, 2].var() / X.var(axis=0).sum()
    recorded(titles["One column decides"], "“column 2”", f"{100 * share:.3g} %")


def test_chance_is_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    made = report(X, sensitive_features=[0, 1] * 40, n_components=2, n_points=3)
    low, high = made.summary["resampling"]["difference"]
    assert low < 0 < high
    assert made.summary["finding"][0] == made.summary["chance"][0]
    recorded(made.summary["chance"][0], "no group loses significantly more")
    X, groups = two_groups(3000)
    made = report(X, sensitive_features=groups, n_components=2, n_points=3)
    assert made.summary["resampling"]["difference"][0] > 0
    recorded(made.summary["chance"][0], "hardly by chance")
    assert "chance" not in " ".join(made.summary["finding"])


def test_a_group_of_one_row_has_no_interval():
    X, groups = two_groups()
    groups = groups.astype(object)
    groups[0] = "alone"
    with warned(FairnessWarning, "'alone' (1"):
        made = report(X, sensitive_features=groups, n_components=2, n_points=2, n_resamples=5)
    assert made.front.problem.moments.labels == ("a", "alone", "b")
    assert [low is None for low in made.summary["pca"]["low"]] == [False, True, False]
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
    assert told[0] == ("reading the rows", 0, 1)
    assert told[1:6] == [("comparing methods on held-out rows", done, 5) for done in range(5)]
    assert told[6:11] == [("finding the points of the front", done, 4) for done in range(5)]
    assert told[-1] == ("resampling the rows of groups", 2, 2)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"n_resamples": 1}, "n_resamples 0 2"),
        ({"n_resamples": -1}, "n_resamples integer"),
        ({"n_points": 0}, "n_points"),
        ({"title": 3}, "title text"),
        ({"title": " "}, "title empty"),
        ({"data_name": 0}, "data_name"),
        ({"rows_shown": -1}, "rows_shown"),
        ({"left_out": {"late": -1}}, "left_out['late']"),
        ({"n_components": 1.9}, "n_components"),
        ({"measure": "range"}, "measure 'disparity' 'range'"),
        ({"measure": MinMax()}, "measure 'disparity' MinMax()"),
        ({"sensitive_features": None}, "sensitive_features"),
    ],
)
def test_wrong_options_are_refused_before_any_work(wrong, words, monkeypatch):
    X, groups = two_groups()
    monkeypatch.setattr(GroupMoments, "from_groups", lambda *_: pytest.fail("work was done"))
    with refused(ValueError, *words.split()):
        report(X, **({"sensitive_features": groups, "n_components": 2} | wrong))


def test_missing_jinja2_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    X, groups = two_groups()
    with refused(ImportError, "fairpca[report]"):
        report(X, sensitive_features=groups, n_components=2)


def test_names_are_short_distinct_and_harmless():
    given = [*HOSTILE, "y" * 99 + "1", "y" * 99 + "2", "a\u200db", "", "\u3164", "n", "n ", "n (1)"]
    shown = shown_names(given)
    assert len(set(shown)) == len(shown)
    assert max(map(len, shown)) <= 45
    assert not any(c in name for name in shown for c in "\x1b\u202e\u2066\n\r\t")
    assert "👩‍👩‍👧 ✓" in shown
    assert "a\u200db" in shown
    assert shown[-5:] == ["(no name) (1)", "(no name) (2)", "n (2)", "n (3)", "n (1)"]
    assert in_quotes("plain") == "“plain”"
    assert in_quotes("שלום") == "“\u2068" + "שלום" + "\u2069”"
    assert harmless("a\ud800\x00\u202eb\n\tc") == "a\ufffd\ufffd\ufffdb\n\tc"


def test_title_and_code_cannot_break_the_page(tmp_path):
    X, groups = two_groups()
    made = report(
        X,
        sensitive_features=groups,
        n_components=2,
        n_points=2,
        n_resamples=0,
        title="a\ud800\u202eb",
    )
    made = replace(made, code="x\x00\n\ud800")
    made.write_html(tmp_path / "page.html")
    assert made.title == "a\ufffd\ufffdb"
    assert made.summary["code"] == "x\ufffd\n\ufffd"


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
        (1.5, "150 %"),
        (1234.5, "123,000 %"),
    ],
)
def test_percent(share, text):
    assert percent(share) == text


def test_bounds_are_rounded_to_the_safe_side():
    assert percent(0.008235, up=True) == "0.83 %"
    assert percent(0.9996, up=False) == "99.9 %"
    assert percent(1e-9, up=True) == "0.001 %"
    assert percent(0.9996) == "100 %"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),  # noqa: RUF001
        (1e-13, "0"),
        (0.00012345, "0.0001234"),
        (-3.0, "-3"),
        (326012.3, "326,000"),
        (3.26e12, "3.26\u00a0×\u00a010¹²"),  # noqa: RUF001
        (-1.5e-7, "-1.5\u00a0×\u00a010⁻⁷"),  # noqa: RUF001
    ],
)
def test_number(value, text):
    assert number(value, rounding=1e-12) == text


def facts_of(front, **changes):
    """Facts of a front whose fairest point has another certificate."""
    certificate = replace(front[-1].certificate, **changes)
    last = replace(front[-1], certificate=certificate)
    front = replace(front, solutions=(*front.solutions[:-1], last))
    names = [str(label) for label in front.problem.moments.labels]
    moments = front.problem.moments
    data = describe(
        GroupedData(moments, rows=np.zeros((2, moments.n_features))), moments, None, None
    )
    return Facts(front, names, data, None, np.ones(len(names), dtype=bool))


def test_words_for_every_end():
    X, groups = two_groups()
    given = {"sensitive_features": groups, "n_components": 2, "n_points": 5}
    front = pareto_front(X, **given)
    bounded = facts_of(front, status="bounded", lower_bound=6.12345)
    recorded(finding(bounded)[1], "proven", "below 22.9 %")
    recorded(spoken(bounded, 4), "the best that was found")
    recorded(spoken(bounded, 1), "proven optimal")
    kept = facts_of(pareto_front(X, criterion=MinMax("kept_variance"), **given), status="bounded")
    recorded(finding(kept)[1], "proven", "above")
    alone = facts_of(replace(front, solutions=front.solutions[:1]))
    least = np.floor(100 * front.largest[0]) / 100
    recorded(finding(alone)[1], "proven", "2 dimensions", f"at least {least:g} squared units")
    alone = facts_of(replace(front, solutions=front.solutions[:1]), status="bounded")
    recorded(finding(alone)[1], "fairer than ordinary PCA", "found")
    recorded(compared(facts_of(front), 0), "Every group is as well off")


def test_more_than_five_small_groups():
    X = np.tile(np.random.default_rng(0).normal(size=(20, 4)), (7, 1))
    made = report(X, sensitive_features=np.arange(140) // 20, n_components=2, n_points=2)
    text = made.summary["warnings"][0]["text"]
    recorded(text, "“0” (20 rows), “1” (20 rows)", "“4” (20 rows) and 2 more", "30 rows")
    assert made.summary["pca"]["low"] == [None] * 7


def test_constant_columns_are_said():
    made = report(np.ones((100, 4)), sensitive_features=[0, 1] * 50, n_components=2)
    assert made.summary["finding"] == []
    recorded(made.summary["headline"], "do not vary")
    assert "one group" not in made.html()


@pytest.mark.parametrize("measure", MEASURES)
def test_a_group_without_variance_is_not_compared_with(measure):
    X, groups = two_groups()
    X -= X.mean(axis=0)
    X, groups = np.vstack([X, np.zeros((50, 6))]), np.append(groups, ["still"] * 50)
    given = {"sensitive_features": groups, "n_components": 2, "n_points": 2}
    made = report(X, measure=measure, **given)
    assert "“still”" not in " ".join([*made.summary["finding"], *made.summary["chance"]])
    assert "“still”" not in made.summary["points"][-1]["compared"]
    for shown in (made.summary["pca"], *made.summary["points"]):
        assert max(abs(shown[name][2]) for name in ("low", "measures", "high")) < 1e-12


def test_who_is_worst_off_by_squared_units_need_not_be_by_per_cent():
    # Ordinary PCA takes the line between two groups; the one that varies more loses more beyond
    # what it must, but less of its variance.
    rng = np.random.default_rng(0)
    turn = np.array([[np.cos(0.35), np.sin(0.35)], [-np.sin(0.35), np.cos(0.35)]])
    wide = np.column_stack([rng.normal(size=(400, 2)) * [10, 5] @ turn, 8 * rng.normal(size=400)])
    narrow = np.column_stack([rng.normal(size=(2000, 2)) * [4, 1] @ turn.T, np.zeros(2000)])
    groups = ["wide"] * 400 + ["narrow"] * 2000
    X = np.vstack([wide, narrow])
    made = report(X, sensitive_features=groups, n_components=1, n_points=2, n_resamples=0)
    least, most = made.summary["pca"]["measures"]  # of "narrow" and "wide"
    shares = np.divide([least, most], made.front.problem.traces)
    assert most > least
    assert shares[1] < shares[0]
    words = f"squared units: {most:.4g} against {least:.4g}"
    recorded(made.summary["finding"][0], words)


def test_the_comparison_is_that_of_compare(adult_race):
    X, groups, made = adult_race
    found = compare(X, sensitive_features=groups, n_components=5)
    shown = made.summary["comparison"]
    assert shown["verdict"] == str(found.verdict)
    assert shown["kind"] == found.verdict.kind
    assert made.sentences()[1] == f"Is fair PCA needed? {found.verdict}"
    assert [each["name"] for each in shown["methods"]] == list(found.methods)
    for j, method in enumerate(shown["methods"]):
        np.testing.assert_allclose(method["lost"], found.share_lost.value[j])
        estimate, base = (found.change, found.share_lost.value[0]) if j else (found.share_lost, 0.0)
        np.testing.assert_allclose(method["low"], base + estimate.low[j])
        np.testing.assert_allclose(method["high"], base + estimate.high[j])
        numbers = method["largest_lost"], method["largest_disparity"], method["total_lost"]
        expected = found.worst_lost[j], found.largest_disparity[j], found.total_lost[j]
        np.testing.assert_allclose(numbers, expected)
        assert method["largest_disparity_group"] == found.largest_disparity_group[j]
        assert method["better_off"] == len(found.better_off(j))
    assert str(escape(str(found.verdict))).replace(" %", "\u00a0%") in made.html()


def test_the_comparison_shows_no_name_that_few_rows_have():
    X, groups = two_groups()
    groups = groups.astype(object)
    groups[:3] = "the mayor"
    X[:3] *= 9.0
    given = {"sensitive_features": groups, "n_components": 2, "n_points": 2, "n_resamples": 0}
    made = report(X, **given)
    assert "(name not shown)" in made.summary["comparison"]["verdict"]
    assert "mayor" not in made.html()


def test_nothing_is_compared_where_rows_cannot_be_held_out():
    # No variance, and two different rows that are in one fold.
    fills = (
        fill for fill in range(1, 99) if np.ptp(row_folds(np.array([[0.0, 0.0], [fill, 0.0]]))) == 0
    )
    for fill in (0, next(fills)):
        X = np.zeros((60, 2))
        X[::4, 0] = fill
        made = report(X, sensitive_features=[0, 1] * 30, n_components=1, n_points=2, n_resamples=0)
        assert made.summary["comparison"] is None
        assert "Is fair PCA needed?" not in made.html()


def test_a_page_on_what_may_be_chance_has_no_trade_off():
    X = np.random.default_rng(0).normal(size=(600, 6)) * [3, 2, 2, 1, 1, 1]
    made = report(X, sensitive_features=[0, 1, 1] * 200, n_components=1)
    assert made.summary["comparison"]["kind"] == "no difference"
    assert made.summary["use_pca"]
    assert len(made.front) == 1
    assert made.front.total_loss[0] == pytest.approx(made.summary["pca"]["total_loss"])
    assert made.summary["unfairness_bound"] is None
    page = made.html()
    assert "The page has no trade-off" in page
    assert 'type="range"' not in page
    assert 'id="measures"' not in page
    assert "data-point" not in page.split("<script")[0]
    assert "proven that ordinary PCA is as fair" not in page
