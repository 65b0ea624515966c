"""What the repository promises: public names, examples, README, committed tables, extras."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from matplotlib import pyplot as plt
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import StandardScaler

import fairpca
from fairpca.datasets import load_adult
from said import piped

pytestmark = pytest.mark.untraced

ROOT = Path(__file__).parents[1]


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
        f"print(fair.certificate_.status, sorted(asked & set({unasked!r})))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "optimal []"


def test_the_readme_example_prints_what_the_readme_shows(capsys):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w+)\n(.*?)```", readme, re.DOTALL)
    (_, example), (_, shown), (_, pipeline), (_, audit_example), (_, held_out) = blocks
    scope = {}
    exec(example, scope)
    assert capsys.readouterr().out == shown
    assert scope["X_reduced"].shape == (32561, 5)
    exec(pipeline, scope)
    assert scope["pipe"][-1].certificate_.status == "optimal"
    exec(audit_example, scope)
    out = capsys.readouterr().out
    assert re.search("PCA +audited +audited\n", out)
    assert re.search("PCA +audited +audited disparity\n", out)
    exec(held_out, scope)
    assert "those of the training rows" in capsys.readouterr().out


def test_the_readme_counts_are_those_of_the_committed_table():
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    page = (ROOT / "studies" / "exact_cases.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in page.splitlines() if re.match(r"\| \d", line)]
    statuses = [row[2].strip() for row in rows]
    gaps = [float(row[7]) for row in rows if row[2].strip() == "bounded"]
    assert f"all {len(rows)} cases" in readme
    assert f"{statuses.count('optimal')} optimal, {len(gaps)} bounded with gaps from" in readme
    assert f"from {min(gaps):.0e}".replace("e-0", "e-") in readme
    assert f"to {100 * max(gaps):.1f} %, {statuses.count('infeasible')} proven infeasible" in readme
    assert "BENCH" not in readme


@pytest.fixture(scope="module")
def fitted():
    """What the demo has to show, from Python."""
    found = {}
    for sensitive in ("sex", "race"):
        adult = load_adult(sensitive=sensitive, keep_sensitive=False, as_frame=False)
        X = StandardScaler().fit_transform(adult.data)
        found[sensitive] = fairpca.FairPCA(5).fit(X, sensitive_features=adult.sensitive_features)
    return found


def test_the_readme_numbers_are_those_of_adult():
    parts = [
        load_adult(subset=subset, encoding="onehot", sensitive="sex", keep_sensitive=False)
        for subset in ("train", "test")
    ]
    numbers = [name for name in parts[0].data if "=" not in name]
    scale = make_column_transformer((StandardScaler(), numbers), remainder="passthrough")
    X, unseen = scale.fit_transform(parts[0].data), scale.transform(parts[1].data)
    fair = fairpca.FairPCA(5).fit(X, sensitive_features=parts[0].sensitive_features)
    table = fair.group_table_
    women, men = table.pca_disparity
    assert (round(women / men), table.labels) == (5, ("Female", "Male"))
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "five times as large for women as for men" in readme
    assert f"{women:.2f} against {men:.2f}" in readme
    shares = 100 * table.pca_disparity / table.variance
    assert f"or {shares[0]:.1f} % of their variance against {shares[1]:.1f} %" in readme
    most = np.ceil(100 * table.disparity.max()) / 100  # not less than is true
    extra = 100 * (table.loss @ table.count / (table.pca_loss @ table.count) - 1)
    assert f"disparity of more than {most:.2f}, for {extra:.1f} % more total loss" in readme
    new = fairpca.audit(
        fair,
        unseen,
        sensitive_features=parts[1].sensitive_features,
        baseline="training",
        n_resamples=0,
    )
    assert f"{new.count.sum():,} people whom the fit has not seen" in readme
    fell = f"falls from {new.pca_disparity.max():.2f} to {new.disparity.max():.2f}"
    assert f"the largest disparity {fell}" in readme


@pytest.mark.parametrize(
    "name",
    [
        "index.md",
        "beyond_the_sample.md",
        "choosing.md",
        "custom_objective.md",
        "fairlearn.md",
        "federated.md",
        "groups.md",
        "large_data.md",
        "which_method.md",
        *(f"guide/{page.name}" for page in sorted((ROOT / "docs" / "guide").glob("*.md"))),
    ],
)
def test_pages_print_what_they_show(name, capsys):
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    scope = {}
    with sklearn.config_context():  # which a page may change
        for kind, block in re.findall(r"```(\w+)\n(.*?)```", page, re.DOTALL):
            if kind == "python":
                exec(block, scope)
            else:
                assert capsys.readouterr().out == block
    assert not capsys.readouterr().out
    plt.close("all")


def test_the_guide_links_to_what_is_there():
    guide = ROOT / "docs" / "guide"
    pages = {page.name: page.read_text(encoding="utf-8") for page in guide.glob("*.md")}
    contents = pages["index.md"].rpartition("```{toctree}")[2]
    assert {f"{line}.md" for line in contents.split() if line.isidentifier()} == {*pages} - {
        "index.md"
    }


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


def test_the_demo_prints_both_tables_and_certificates_and_writes_reports(fitted, tmp_path, capsys):
    import demo

    (tmp_path / "output").mkdir()
    (tmp_path / "output" / "adult-by-sex.html").touch()  # as from an earlier run
    reports = demo.run(tmp_path / "output")
    out = capsys.readouterr().out
    assert "3.65 % more loss" in out
    for sensitive, fair in fitted.items():
        assert piped(fair.group_table_) in out
        assert fair.certificate_.sentences()[0] in out
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


def test_what_the_readme_says_of_equality():
    adult = load_adult(sensitive="race", keep_sensitive=False, as_frame=False)
    X, race = StandardScaler().fit_transform(adult.data), adult.sensitive_features
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "reduced to 6 columns), where all five lose" in readme
    with pytest.warns(fairpca.FairnessWarning, match="Every group is worse off than with ordinary"):
        equal = fairpca.FairPCA(6, criterion="equal").fit(X, sensitive_features=race)
    assert equal.group_table_.n_worse_off == 5
    fair = fairpca.FairPCA(6).fit(X, sensitive_features=race)
    assert fair.group_table_.n_worse_off < 5


def test_the_claims_are_counted():
    page = (ROOT / "studies" / "reproduction" / "claims.md").read_text(encoding="utf-8")
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "at most 2 % of it are left on Adult in all 34 cases" in readme
    assert "| at most 2 % | 34 of 34 |" in page[page.index("| difference left |") :]
    assert "and at most half in 98 of 99 on both data sets" in readme
    assert (
        "| 3a | the mean \\|difference\\| is at most half of PCA's | **holds in part** (98 of 99)"
        in page
    )
    assert "What it says of the mean disparity does not" in readme
    assert (
        "| 3b | the mean disparity is at most half of PCA's | **does not hold** (0 of 99)" in page
    )
