"""What the repository promises: public names, examples, README, committed tables, extras."""

import json
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import StandardScaler

import fairpca
from docs import held_out_pictures
from fairpca.datasets import load_adult
from said import piped
from studies import genomes
from tools.pages import PAGES, rewritten

from texts import warned

pytestmark = pytest.mark.untraced

ROOT = Path(__file__).parents[1]

ON_THE_HOME_PAGE = {"index", "development", "contributing", "changelog", "studies"}
"""Pages that do not belong to the guide."""


def test_public_names_exist_and_have_docstrings():
    for name in fairpca.__all__:
        assert getattr(fairpca, name).__doc__


def test_hard_dependencies_are_three():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in project["dependencies"]}
    assert names == {"numpy", "scipy", "scikit-learn"}


def test_version_agrees_everywhere():
    assert f"version: {fairpca.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"## {fairpca.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_private_modules_of_other_packages_are_found():
    grimp = pytest.importorskip("grimp", reason="import-linter comes with the tools to develop")
    from tools.contracts import PrivateModulesContract

    graph = grimp.ImportGraph()
    for importer, imported in (
        ("p.cli.app", "p.cli._words"),
        ("p.cli.app", "p._rows.checks"),
        ("p.solvers.exact", "p.solvers._exact.dual"),
        ("p.front", "p.solvers._exact.dual"),
        ("p.cli.app", "p.report._page"),
    ):
        graph.add_import(importer=importer, imported=imported)
    options = {"name": "private", "open": ["p._rows"]}
    contract = PrivateModulesContract("private", {"root_packages": ["p"]}, options)
    assert contract.check(graph, verbose=False).metadata["broken"] == [
        "p.cli.app -> p.report._page",
        "p.front -> p.solvers._exact.dual",
    ]


def test_importing_and_fitting_need_no_extra_and_look_for_none():
    """One process for all: whoever looks for a library of another place is told that it is missing.

    scikit-learn looks for pandas by itself, so that one only has to be unnecessary.
    """
    extras = "pandas polars duckdb pyarrow cvxpy fairlearn matplotlib typer jinja2".split()
    unasked = "dask distributed pyspark torch cupy array_api_compat".split()
    code = (
        "import sys\n"
        "from importlib.abc import MetaPathFinder\n"
        "asked = set()\n"
        "class Missing(MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.split('.')[0] in {[*extras, *unasked]!r}:\n"
        "            asked.add(name)\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "import fairpca, fairpca.cli, fairpca.datasets, fairpca.metrics, fairpca.sources\n"
        "import fairpca.model_file\n"
        "adult = fairpca.datasets.load_adult(as_frame=False)\n"
        "fairpca.datasets.load_credit(as_frame=False)\n"
        "groups = adult.sensitive_features\n"
        "fair = fairpca.FairPCA(2).fit(adult.data, sensitive_features=groups)\n"
        "fair.transform(adult.data), fair.fit_transform(adult.data, sensitive_features=groups)\n"
        f"print(fair.n_components_, sorted(asked & set({unasked!r})))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "2 []"


def test_exact_cases_are_counted():
    guide = " ".join((ROOT / "docs" / "guide" / "certificate.md").read_text("utf-8").split())
    page = (ROOT / "studies" / "exact_cases.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in page.splitlines() if re.match(r"\| \d", line)]
    statuses = [row[2].strip() for row in rows]
    gaps = [float(row[7]) for row in rows if row[2].strip() == "bounded"]
    assert f"all {len(rows)} cases" in guide
    assert f"{statuses.count('optimal')} optimal, {len(gaps)} bounded with gaps from" in guide
    assert f"from {min(gaps):.0e}".replace("e-0", "e-") in guide
    assert f"to {100 * max(gaps):.1f} %, {statuses.count('infeasible')} proven infeasible" in guide


def adult_without_weights(sensitive, subset="train"):
    adult = load_adult(subset=subset, sensitive=sensitive, keep_sensitive=False)
    return adult.data.drop(columns="fnlwgt"), adult.sensitive_features


def words_of(*path):
    return " ".join(ROOT.joinpath(*path).read_text(encoding="utf-8").split())


def test_the_readme_numbers_are_those_of_adult():
    readme, home = words_of("README.md"), words_of("docs", "index.md")
    (train, sex), (test, test_sex) = (
        adult_without_weights("sex", subset) for subset in ("train", "test")
    )
    scale = StandardScaler().fit(train)
    X = scale.transform(train)
    fitted = fairpca.FairPCA(5).fit(X, sensitive_features=sex)
    table = fitted.group_table_
    assert table.labels == ("Female", "Male")
    own, pca, fair = (
        f"{100 * table.share_of(loss)[0]:.1f} %"
        for loss in (table.own_loss, table.pca_loss, table.loss)
    )
    assert f"Women lose {pca} of their variance with PCA, and would lose {own} with" in home
    assert f"brings that down to {fair}, and men pay" in home

    new = fairpca.audit(
        fitted,
        scale.transform(test),
        sensitive_features=test_sex,
        baseline="training",
        n_resamples=0,
    )
    before, after = (100 * new.share_of(loss) for loss in (new.pca_loss, new.loss))
    extra = 100 * (new.loss @ new.count / (new.pca_loss @ new.count) - 1)
    assert f"{new.count.sum():,} people whom the fit has not seen" in home
    assert f"women lose {after[0]:.1f} % instead of {before[0]:.1f} %" in home
    assert f"men {after[1]:.1f} % instead of {before[1]:.1f} %" in home
    worst = int(new.pca_disparity.argmax())
    assert new.labels[worst] == new.labels[int(new.disparity.argmax())] == "Female"
    shares = map(new.share_of, (new.pca_disparity, new.disparity))
    first, last = (100 * share[worst] for share in shares)
    fell = f"falls from {first:.1f} to {last:.1f} % of their variance"
    assert f"women's disparity {fell}" in home
    assert f"The total loss there is {extra:.1f} % higher" in home

    equal = fairpca.FairPCA(5, criterion="equal").fit(X, sensitive_features=sex).group_table_
    assert np.ptp(equal.disparity) < 1e-6
    assert f"The exact solver reaches {equal.disparity[0]:.3f} for both groups" in readme
    more = fairpca.audit(
        fairpca.FairPCA(6, groups=None).fit(X), X, sensitive_features=sex, n_resamples=0
    )
    assert (more.loss < table.loss).all()
    assert "PCA with 6 components serves both groups above better than fair PCA with 5" in readme


def test_the_readme_numbers_are_those_of_its_pictures():
    data = json.loads(held_out_pictures.DATA.read_text(encoding="utf-8"))["regions"]

    def figure(method, what, r):
        return f"{100 * np.mean(data[method][str(r)][what]):.0f}"

    ours, lda, shuffled = "minmax, share", "LDA of 50 components", "minmax, share, shuffled labels"
    four = [figure(method, "accuracy", 4) for method in (ours, lda, shuffled, "PCA")]
    worst = [figure(method, "worst", 4) for method in (ours, lda, shuffled, "PCA")]
    page = words_of("README.md")
    assert f"a balanced accuracy of {four[0]} %, PCA of {four[3]} %" in page
    assert f"In the worst region, recall is {worst[0]} and {worst[3]} %" in page
    assert f"reaches {four[1]} % with four and {figure(lda, 'accuracy', 6)} % from six on" in page
    shown = "fair PCA by share lost is at {} %, LDA at {}, fair PCA with shuffled labels at {}"
    assert shown.format(*four) + f" and PCA at {four[3]}." in page
    assert "recall of the worst region: {}, {}, {} and {} %".format(*worst) in page
    # Which dimensions of the default are clearly better than PCA: two alone.
    better = [r for r in data["PCA"] if np.subtract(*interval_of(data, "soft", r)) > 0.0]
    assert better == ["2"]

    found = held_out_pictures.adult_by_race()
    pca, fair, balanced, six = (found[name][:, 0] for name in held_out_pictures.ADULT)
    own, white = found[held_out_pictures.OWN_PCA], held_out_pictures.RACES.index("White")
    worst = (pca - own).argmax()
    assert held_out_pictures.RACES[worst] == "Asian-Pac-Islander"
    assert abs(pca - own)[white] < 0.2
    assert [(fair < pca).sum(), (six < pca).all(), (six < fair).all()] == [3, True, True]
    assert (balanced - own).max() == pytest.approx((fair - own).max(), abs=2.0)
    excess = f"{pca[worst] - own[worst]:.0f} percentage points more"
    for page in (words_of("README.md"), words_of("docs", "index.md")):
        assert f"{found['people'][white]:,} White people what a PCA of their own" in page
        assert f"{found['people'][worst]} Asian-Pac-Islanders lose {excess}" in page
        assert f"lowers the largest one to {(fair - own).max():.0f} points" in page
        assert held_out_pictures.RACES[(fair - own).argmax()] == "Amer-Indian-Eskimo"
        assert f"now that of {found['people'][(fair - own).argmax()]} Amer-Indian-Eskimos" in page
        more = {f"{(fair - pca)[i]:.1f}" for i in np.flatnonzero(fair > pca)}
        assert more <= {"2.4", "2.5"}
        assert "these and White people lose 2.4 points more" in page
        extra = 100 * (found["total"][1] / found["total"][0] - 1)
        assert f"all together {extra:.1f} % more" in page
        assert "fair PCA lowers three losses and raises two; six components lower all" in page


def interval_of(data, method, r):
    """The difference in accuracy from PCA, and half of its interval."""
    return genomes.against(data, method, r, "accuracy")


def test_the_pictures_of_held_out_rows_show_their_figures():
    data = json.loads(held_out_pictures.DATA.read_text(encoding="utf-8"))
    figure = held_out_pictures.genomes(data)
    for ax, what in zip(figure.axes, held_out_pictures.PANELS, strict=True):
        for bars, method in zip(ax.containers, held_out_pictures.METHODS, strict=True):
            found = data["regions"][method]
            means = [100 * np.mean(found[r][what]) for r in sorted(found, key=int)]
            np.testing.assert_allclose(np.asarray(bars[0].get_ydata(), float), means)
    found = held_out_pictures.adult_by_race()
    (ax,) = held_out_pictures.adult(found).axes
    for bars, method in zip(ax.containers, held_out_pictures.ADULT, strict=True):
        np.testing.assert_allclose(np.sort(bars[0].get_xdata()), np.sort(found[method][:, 0]))
    plt.close("all")
    for name in ("genomes.png", "adult.png"):
        assert (ROOT / "docs" / name).stat().st_size > 20_000


def test_the_numbers_of_the_guides_first_picture():
    page = words_of("docs", "guide", "unfair.md")
    guide = (ROOT / "docs" / "guide" / "unfair.md").read_text(encoding="utf-8")
    scope = {}
    exec(re.findall(r"```python\n(.*?)```", guide, re.DOTALL)[0].replace("print", "repr"), scope)
    table = scope["fair"].group_table_
    small = table.labels.index("small")
    pca, own = (100 * table.share_of(loss)[small] for loss in (table.pca_loss, table.own_loss))
    assert f"loses {pca:.0f} % of its variance, and would lose {own:.0f} % with" in page
    large, few = sorted(table.count, reverse=True)
    assert f"{large} rows stretch to the right, {few} upwards" in page


@pytest.mark.parametrize("name", ["../README.md", *PAGES])
def test_pages_print_what_they_show(name):
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert rewritten(page) == page
    plt.close("all")


def test_the_guide_links_to_what_is_there():
    guide = ROOT / "docs" / "guide"
    pages = {page.name: page.read_text(encoding="utf-8") for page in guide.glob("*.md")}
    contents = " ".join(re.findall(r"```{toctree}\n(.*?)```", pages["index.md"], re.DOTALL))
    listed = re.findall(r"(?<=\s)(?:\.\./)?\w+(?=\s)", contents.partition(":hidden:")[2])
    here = {name for name in listed if (guide / f"{name}.md").exists()}
    assert {f"{name}.md" for name in here if "/" not in name} == {*pages} - {"index.md"}
    others = {page.stem for page in (ROOT / "docs").glob("*.md")} - ON_THE_HOME_PAGE
    assert {name.removeprefix("../") for name in here if "/" in name} == others


def test_links_between_pages_of_the_repository_lead_somewhere():
    written = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/guide/*.md")]
    written += ROOT.glob("studies/**/*.md")
    lost = []
    for path in written:
        for link in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
            if "://" not in link and not (path.parent / link).exists():
                lost.append(f"{path.relative_to(ROOT)} links to {link}")
    assert lost == []


def test_every_study_is_listed():
    listed = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT) for path in ROOT.glob("studies/**/*.md")]
    assert [page for page in pages if f"(../{page.as_posix()})" not in listed] == []
    made = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    scripts = {path.stem: path.read_text("utf-8") for path in ROOT.glob("studies/*.py")}
    for page in ROOT.glob("studies/*.md"):
        (script,) = (name for name, text in scripts.items() if f'with_name("{page.name}")' in text)
        assert any(f"-m studies.{script}" in line for line in made)


def test_the_demo_prints_both_tables_and_certificates_and_writes_reports(tmp_path, capsys):
    import demo

    (tmp_path / "output").mkdir()
    (tmp_path / "output" / "adult-by-sex.html").touch()  # as from an earlier run
    reports = demo.run(tmp_path / "output")
    out = capsys.readouterr().out
    assert "0.59 % more loss" in out
    assert "Is fair PCA needed? PCA with 6 components serves every group at least as well" in out
    for sensitive in ("sex", "race"):
        adult = load_adult(encoding="onehot", sensitive=sensitive, keep_sensitive=False)
        people, groups = adult.data.drop(columns="fnlwgt"), adult.sensitive_features
        numbers = [name for name in people if "=" not in name]
        scaler = make_column_transformer((StandardScaler(), numbers), remainder="passthrough")
        X = scaler.fit_transform(people)
        fair = fairpca.FairPCA(5, criterion="minmax").fit(X, sensitive_features=groups)
        table = replace(fair.group_table_, name="min-max")
        for text in (piped(table), fair.certificate_.sentences()[0]):
            assert text in out
        command = re.search(rf"\$ (.*fairpca report .*--sensitive {sensitive} .*)", out)[1]
        assert command.endswith(str(reports[sensitive]))
        assert f"\nReport: {reports[sensitive]}\n" in out
        assert "Amer-Indian-Eskimo" in reports["race"].read_text("utf-8")
    # The file has the words of UCI, and their codes are those of the library.
    written = pd.read_csv(tmp_path / "output" / "adult.csv", keep_default_na=False)
    words = written.drop(columns="income").select_dtypes(exclude="number").columns
    assert len(words) == 8
    codes = written[words].apply(lambda column: column.astype("category").cat.codes)
    adult = load_adult()
    assert (codes == adult.data[words]).all(axis=None)
    assert (written.drop(columns=["income", *words]) == adult.data.drop(columns=words)).all(
        axis=None
    )
    assert ((written["income"] == ">50K") == adult.target).all()


def test_what_the_guide_says_of_equality():
    X, race = adult_without_weights("race")
    X = StandardScaler().fit_transform(X)
    guide = " ".join((ROOT / "docs" / "guide" / "criterion.md").read_text("utf-8").split())
    assert "on Adult by race, at six dimensions, it leaves all five groups worse off" in guide
    with warned(fairpca.FairnessWarning, "Every group", "worse off"):
        equal = fairpca.FairPCA(6, criterion="equal").fit(X, sensitive_features=race)
    assert len(equal.group_table_.worse_off) == 5
    for criterion in ("soft", "minmax"):
        fair = fairpca.FairPCA(6, criterion=criterion).fit(X, sensitive_features=race)
        assert len(fair.group_table_.worse_off) < 5


def test_the_claims_are_counted():
    page = (ROOT / "studies" / "reproduction" / "claims.md").read_text(encoding="utf-8")
    guide = " ".join((ROOT / "docs" / "guide" / "paper.md").read_text("utf-8").split())
    assert "at most 2 % of it are left on Adult in all 34 cases" in guide
    assert "| at most 2 % | 34 of 34 |" in page[page.index("| difference left |") :]
    assert "and at most half in 98 of 99 on both data sets" in guide
    assert (
        "| 3a | the mean \\|difference\\| is at most half of PCA's | **mostly holds** (98 of 99)"
        in page
    )
    assert "Its claim about the mean disparity does not" in guide
    assert (
        "| 3b | the mean disparity is at most half of PCA's | **does not hold** (0 of 99)" in page
    )
